"""Compiled programs on disk: shared by processes, and never a reason for one to fail."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import pytest

from rflvm.numerics import programs

# Prints the folder, how many programs were read from it, and a number; as many processes at once as are asked for wait
# for each other before they compile.
CHILD = """
import sys, time, pathlib, warnings
warnings.simplefilter("error")
import jax, jax.monitoring, rflvm
hits = []
jax.monitoring.register_event_listener(lambda name, **_: hits.append(name) if name.endswith("/cache_hits") else None)
kept = rflvm.keep_programs(sys.argv[1])
together = pathlib.Path(sys.argv[2])
together.joinpath(sys.argv[3]).touch()
while len(list(together.iterdir())) < int(sys.argv[4]):
    time.sleep(0.01)
value = float(jax.jit(lambda x: (x @ x.T).sum() + 7)(jax.numpy.ones((4, 4))))
print(kept is not None, len(hits), value)
"""


def start(folder: Path, meeting: Path, which: int = 0, at_once: int = 1) -> subprocess.Popen[str]:
    meeting.mkdir(exist_ok=True)
    without = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    command = [sys.executable, "-c", CHILD, *map(str, (folder, meeting, which, at_once))]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=without, stdout=pipe, stderr=pipe, text=True)


def said(process: subprocess.Popen[str]) -> list[str]:
    out, err = process.communicate(timeout=120)
    assert (process.returncode, err) == (0, "")
    return out.split()


def test_the_next_process_reads_what_one_has_compiled_and_a_damaged_program_is_compiled_anew(tmp_path):
    folder = tmp_path / "folder"
    # Two at once, of which neither sees what the other one has half written.
    first = [start(folder, tmp_path / "1", which, 2) for which in range(2)]
    for process in first:
        assert said(process)[::2] == ["True", "71.0"]
    kept = folder / programs.fingerprint()
    files = sorted(kept.iterdir())
    assert files
    assert all(path.is_file() for path in files)  # the folders of both processes are gone
    assert (kept.stat().st_mode & 0o777) == 0o700
    largest = max(files, key=lambda path: path.stat().st_size)
    content = largest.read_bytes()
    largest.write_bytes(content[:-100] + bytes(100))
    assert said(start(folder, tmp_path / "2"))[::2] == ["True", "71.0"]
    whole = [path for path in sorted(kept.iterdir()) if path.name.rpartition(".")[0] == largest.name.rpartition(".")[0]]
    assert whole
    assert all(zlib.decompress(path.read_bytes()) for path in whole)
    _, hits, _ = said(start(folder, tmp_path / "3"))
    assert int(hits) >= 1


def test_a_folder_that_cannot_be_written_is_done_without(tmp_path):
    (tmp_path / "file").touch()
    assert said(start(tmp_path / "file", tmp_path / "1")) == ["False", "0", "71.0"]


def test_jax_settings_of_the_user_are_left_alone(tmp_path):
    """The tests have a folder of their own (``conftest.py``)."""
    assert programs.keep_programs(tmp_path / "folder") is None
    assert not (tmp_path / "folder").exists()


def entry(folder: Path, name: str, content: bytes, age: float = 0.0) -> Path:
    """A program as ``_publish`` names it."""
    path = folder / f"{name}.{programs.hashlib.sha256(content).hexdigest()}"
    path.write_bytes(content)
    os.utime(path, (time.time() - age, time.time() - age))
    return path


def test_only_whole_programs_are_linked_and_the_oldest_are_deleted_first(tmp_path):
    kept, own = tmp_path / "kept", tmp_path / "kept" / "process-1"
    own.mkdir(parents=True)
    old, new, other = entry(kept, "a", b"x" * 60, 20), entry(kept, "b", b"y" * 60, 10), entry(kept, "b", b"z" * 30)
    damaged = entry(kept, "c", b"w")
    damaged.write_bytes(b"v")
    assert programs._link(kept, own, 120) == {"b"}
    assert not old.exists()
    assert not damaged.exists()
    assert new.exists()
    assert (own / "b").read_bytes() == other.read_bytes()


@pytest.mark.parametrize("links", [True, False])
def test_what_a_process_adds_is_published_if_it_is_whole(tmp_path, monkeypatch, links):
    def refuse(*paths):
        raise OSError

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    kept, own = tmp_path / "kept", tmp_path / "kept" / "process-1"
    own.mkdir(parents=True)
    entry(kept, "a", b"x")
    names = programs._link(kept, own, 1000)
    content = zlib.compress(b"program" * 100)
    (own / "b").write_bytes(content)
    (own / "c").write_bytes(content[:-5])  # as an interrupt leaves it
    programs._publish(own, kept, names, os.getpid() + 1)  # a fork does not
    assert own.exists()
    programs._publish(own, kept, names, os.getpid())
    assert not own.exists()
    assert sorted(path.name.rpartition(".")[0] for path in kept.iterdir()) == ["a", "b"]


def test_other_processors_and_versions_have_a_folder_of_their_own(monkeypatch):
    here = programs.fingerprint()
    monkeypatch.setattr(programs, "processor", lambda: ["another"])
    there = programs.fingerprint()
    monkeypatch.setattr(programs, "version", lambda name: "99")
    assert len({here, there, programs.fingerprint()}) == 3


def test_what_was_not_used_for_long_is_forgotten_and_nothing_else(tmp_path):
    kept = tmp_path / ("0" * programs.DIGITS)
    folders = kept, kept / "process-old", kept / "process-new", tmp_path / ("a" * programs.DIGITS), tmp_path / "letters"
    for folder in folders:
        folder.mkdir(parents=True)
    for folder in (folders[0], folders[1], folders[3], folders[4]):
        os.utime(folder, (0, 0))
    programs._forget(tmp_path, kept)
    assert [folder.exists() for folder in folders] == [True, False, True, False, True]


@pytest.mark.parametrize(
    ("system", "named", "expected"),
    [
        ("linux", "/somewhere", "/somewhere"),
        ("linux", "not/absolute", "/home/me/.cache"),
        ("darwin", "", "/home/me/Library/Caches"),
        ("win32", "", "/local"),
    ],
)
def test_the_folder_for_caches_is_that_of_the_system(monkeypatch, system, named, expected):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv("XDG_CACHE_HOME", named)
    monkeypatch.setenv("LOCALAPPDATA", "/local")
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    assert programs.user_cache() == Path(expected)
