"""Files found in a folder, downloaded, missing, or not what they should be."""

import functools
import gzip
import hashlib
import http.server
import sys
import threading

import pooch
import pytest

from rflvm import FileError
from rflvm.datasets import fetch, load_hippocampus, load_newsgroups, load_yale
from rflvm.datasets.registry import SOURCES, File


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A folder that is served, its address, and a cache of its own for pooch."""
    served, cache = tmp_path / "served", tmp_path / "cache"
    served.mkdir()
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache / project)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, format, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=served)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield served, f"http://127.0.0.1:{server.server_port}", cache / "rflvm"
        server.shutdown()
        thread.join()


def register(monkeypatch, content: bytes, url: str | None):
    file = File(hashlib.sha256(content).hexdigest(), len(content), url)
    monkeypatch.setitem(SOURCES, "spam", SOURCES["spam"]._replace(files={"words.txt": file}))


def test_a_file_is_read_from_the_folder(plant):
    home = plant("spam", {"words.txt": b"ham"})
    assert fetch.read("spam", "words.txt", home) == b"ham"
    assert fetch.read("spam", "words.txt", str(home)) == b"ham"


def test_the_folder_can_be_named_by_the_environment(plant, monkeypatch):
    home = plant("spam", {"words.txt": b"ham"})
    monkeypatch.setenv("RFLVM_DATA", str(home))
    assert fetch.read("spam", "words.txt", None) == b"ham"


def test_an_argument_goes_before_the_environment(plant, monkeypatch):
    home = plant("spam", {"words.txt": b"ham"})
    monkeypatch.setenv("RFLVM_DATA", str(home / "elsewhere"))
    assert fetch.read("spam", "words.txt", home) == b"ham"


def test_another_content_is_refused_with_both_digests(plant):
    home = plant("spam", {"words.txt": b"ham"}, url="https://example.org/words.txt")
    (home / "spam" / "words.txt").write_bytes(b"sham")
    with pytest.raises(FileError) as caught:
        fetch.read("spam", "words.txt", home)
    for part in (hashlib.sha256(b"ham"), hashlib.sha256(b"sham")):
        assert part.hexdigest() in str(caught.value)
    assert "(3 bytes), found" in str(caught.value)
    assert "(4 bytes): replace it by https://example.org/words.txt" in str(caught.value)


def test_a_file_that_is_far_too_large_is_not_read(plant, monkeypatch):
    home = plant("spam", {"words.txt": b"ham"})
    monkeypatch.setattr(fetch, "LARGEST", 2)
    with pytest.raises(FileError, match=r"found not computed \(3 bytes\)"):
        fetch.read("spam", "words.txt", home)


def test_the_same_content_packed_otherwise_is_as_good(plant, monkeypatch):
    content = b"digits" * 100
    home = plant("spam", {"words.gz": gzip.compress(content, 9)}, inside=hashlib.sha256(content).hexdigest())
    other = gzip.compress(content, 1)
    (home / "spam" / "words.gz").write_bytes(other)
    assert fetch.read("spam", "words.gz", home) == other
    for wrong in (gzip.compress(content + b"!"), other[:-1], b"no archive"):
        (home / "spam" / "words.gz").write_bytes(wrong)
        with pytest.raises(FileError, match="not the file that it should be"):
            fetch.read("spam", "words.gz", home)


def test_a_missing_file_of_the_folder_is_not_downloaded(plant):
    home = plant("spam", {"words.txt": b"ham"}, url="https://example.org/words.txt")
    (home / "spam" / "words.txt").unlink()
    with pytest.raises(
        FileNotFoundError, match=r"words\.txt is not there: put https://example.org/words.txt there, or"
    ):
        fetch.read("spam", "words.txt", home)


@pytest.mark.parametrize("load", [load_yale, load_hippocampus])
def test_restricted_files_come_with_their_terms(load, tmp_path, monkeypatch):
    monkeypatch.delenv("RFLVM_DATA", raising=False)
    with pytest.raises(
        FileNotFoundError, match=r"(?s)is not downloaded: .*http.*data_home= or RFLVM_DATA.*Restricted: "
    ):
        load()
    with pytest.raises(FileNotFoundError, match=r"(?s)\.mat is not there: .*http.*put it there\. .*Restricted: "):
        load(data_home=tmp_path)


def test_what_is_published_in_no_fixed_form_comes_with_a_recipe(monkeypatch):
    monkeypatch.delenv("RFLVM_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"is not downloaded: .*tar czf .*<folder>/newsgroups/20news"):
        load_newsgroups()


def test_a_file_is_downloaded_once(server, monkeypatch):
    served, address, cache = server
    monkeypatch.delenv("RFLVM_DATA", raising=False)
    (served / "a file.txt").write_bytes(b"ham")
    register(monkeypatch, b"ham", f"{address}/a%20file.txt")
    assert fetch.read("spam", "words.txt", None) == b"ham"
    assert [path.relative_to(cache).as_posix() for path in cache.rglob("*.txt")] == ["spam/words.txt"]
    (served / "a file.txt").unlink()
    assert fetch.read("spam", "words.txt", None) == b"ham"


def test_a_download_with_another_content_is_refused(server, monkeypatch):
    served, address, cache = server
    monkeypatch.delenv("RFLVM_DATA", raising=False)
    (served / "words.txt").write_bytes(b"sham")
    register(monkeypatch, b"ham", f"{address}/words.txt")
    with pytest.raises(ValueError, match=hashlib.sha256(b"ham").hexdigest()):
        fetch.read("spam", "words.txt", None)
    assert not list(cache.rglob("*.txt"))


def test_a_download_that_fails_says_what_to_do(server, monkeypatch):
    _, address, _ = server
    monkeypatch.delenv("RFLVM_DATA", raising=False)
    register(monkeypatch, b"ham", f"{address}/words.txt")
    with pytest.raises(ConnectionError, match=r"words.txt could not be downloaded \(HTTPError\): put http.*RFLVM_DATA"):
        fetch.read("spam", "words.txt", None)


def test_without_pooch_the_message_says_how_to_install_it(monkeypatch):
    monkeypatch.delenv("RFLVM_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    register(monkeypatch, b"ham", "https://example.org/words.txt")
    with pytest.raises(ImportError, match=r"needs pooch: pip install 'rflvm\[datasets\]', or put https://example.org"):
        fetch.read("spam", "words.txt", None)
