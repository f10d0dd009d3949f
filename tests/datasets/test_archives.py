"""Archives, sound and hostile ones: nothing is written, and nothing larger than the bound is held."""

import gzip
import io
import tarfile
import zipfile

import pytest

from rflvm import FileError
from rflvm.datasets import archives


def tar_of(members) -> bytes:
    """A .tar.gz of (TarInfo or name, content)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for member, content in members:
            info = member if isinstance(member, tarfile.TarInfo) else tarfile.TarInfo(member)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def zip_of(members) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


def test_files_come_back_by_name():
    files = [("a/x", b"1"), ("a/y", b"22")]
    assert archives.untar(tar_of([(special("a", tarfile.DIRTYPE), b""), *files])) == dict(files)
    assert archives.unzip(zip_of([("a/", b""), *files])) == dict(files)
    assert archives.gunzip(gzip.compress(b"1")) == b"1"


@pytest.mark.parametrize("name", ["../outside", "/tmp/outside", "a/../../outside", "C:\\outside"])
def test_names_that_lead_elsewhere_lead_nowhere(name, tmp_path, monkeypatch):
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert list(archives.untar(tar_of([(name, b"1")])).values()) == [b"1"]
    assert list(archives.unzip(zip_of([(name, b"1")])).values()) == [b"1"]
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_links_and_devices_are_refused(kind):
    content = tar_of([("x", b"1"), (special("y", kind, "x"), b"")])
    with pytest.raises(FileError, match="'y' of an archive is not a plain file"):
        archives.untar(content)
    assert archives.digest("some.tar.gz", content) is None


def test_sparse_files_are_refused():
    """A header of 512 bytes that asks for as many zeros as it likes."""
    info = special("y", tarfile.GNUTYPE_SPARSE)
    header = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    header[386:398] = b"00000000000\0"
    header[398:410] = b"00000000000\0"
    header[483:495] = b"77777777777\0"
    header[148:156] = b"        "
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    content = gzip.compress(bytes(header) + bytes(1024))
    with pytest.raises(FileError, match="'y' of an archive is not a plain file"):
        archives.untar(content)


def test_a_size_that_is_only_said_is_not_believed():
    info = tarfile.TarInfo("x")
    info.size = 2**40
    cut = gzip.compress(info.tobuf() + bytes(1024))
    with pytest.raises(FileError, match="unpacks to more than"):
        archives.untar(cut)
    assert archives.digest("some.tar.gz", cut) is None


def test_what_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(archives, "LARGEST", 10_000)
    zeros = bytes(10_001)
    for unpack, content in (
        (archives.gunzip, gzip.compress(zeros)),
        (archives.untar, tar_of([("x", zeros)])),
        (archives.unzip, zip_of([("x", zeros)])),
        (archives.unzip, zip_of([("x", zeros[:6000]), ("y", zeros[:6000])])),
    ):
        with pytest.raises(FileError, match="unpacks to more than 10000 bytes"):
            unpack(content)


def test_two_members_of_one_name_are_refused():
    with pytest.raises(FileError, match="two members of one name"):
        archives.untar(tar_of([("x", b"1"), ("x", b"2")]))
    with pytest.warns(UserWarning, match="Duplicate"):
        content = zip_of([("x", b"1"), ("x", b"2")])
    with pytest.raises(FileError, match="two members of one name"):
        archives.unzip(content)


def test_the_digest_is_of_the_files_alone():
    files = [("a/x", b"1"), ("a/y", b"22")]
    dated = tarfile.TarInfo("a/y")
    dated.mtime, dated.uname = 10**9, "someone"
    digest = archives.digest("some.tar.gz", tar_of(files))
    assert archives.digest("some.tar.gz", tar_of([(dated, b"22"), files[0]])) == digest
    for others in ([("a/x", b"1")], [("a/x", b"1"), ("b/y", b"22")], [("a/x", b"1"), ("a/y", b"2")]):
        assert archives.digest("some.tar.gz", tar_of(others)) != digest
