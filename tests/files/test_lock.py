"""The lock of a folder: one holder at a time, and none after its end, however that came."""

from __future__ import annotations

import errno
import multiprocessing
import os
import re
import signal
import subprocess
import sys

import pytest

from rflvm.files import lock
from rflvm.files.lock import LockedError, held

HOLDER = """
import sys, time
from rflvm.files.lock import held
with held(sys.argv[1]):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path):
    """Another process that holds the lock of the folder."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, tmp_path], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.communicate()


def try_to_hold(folder):
    try:
        with held(folder):
            return "held"
    except LockedError as error:
        return str(error)


def test_another_process_is_refused_and_told_whose_it_is(tmp_path, other):
    refused = pytest.raises(LockedError, match=re.escape(f"{tmp_path} is in use by process {other.pid} on "))
    with refused as error, held(tmp_path):
        pass
    assert "wait until it has ended, or use another folder" in str(error.value)


@pytest.mark.skipif(os.name == "nt", reason="kills are sudden elsewhere")
def test_the_lock_of_a_killed_process_stops_nobody(tmp_path, other):
    other.send_signal(signal.SIGKILL)
    other.wait()
    assert (tmp_path / lock.NAME).exists()
    assert try_to_hold(tmp_path) == "held"
    assert not (tmp_path / lock.NAME).exists()


def test_a_second_thread_or_call_of_the_same_process_is_refused(tmp_path):
    with held(tmp_path / "run"):
        assert f"process {os.getpid()}" in try_to_hold(tmp_path / "run")
    assert try_to_hold(tmp_path / "run") == "held"


def test_an_error_within_lets_go(tmp_path):
    with pytest.raises(RuntimeError), held(tmp_path):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_removed_between_opening_and_locking_is_not_taken_for_the_lock(tmp_path, monkeypatch):
    take, taken = lock._lock, []

    def remove_first(descriptor):
        if not taken:
            (tmp_path / lock.NAME).unlink()
        taken.append(descriptor)
        take(descriptor)

    monkeypatch.setattr(lock, "_lock", remove_first)
    with held(tmp_path):
        assert len(taken) == 2
        assert "is in use" in try_to_hold(tmp_path)


def test_a_file_system_without_locks_is_named(tmp_path, monkeypatch, caplog):
    def refuse(descriptor):
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(lock, "_lock", refuse)
    assert try_to_hold(tmp_path) == "held"
    assert f"the file system of {tmp_path} has no locks" in caplog.text


def enter_many_times(folder, counter, n):
    for _ in range(n):
        while True:
            try:
                with held(folder):
                    before = counter.value
                    counter.value = before + 1
                break
            except LockedError:
                pass


def test_processes_take_turns(tmp_path):
    """Each adds to a number without any other protection: additions would be lost if two were inside at once."""
    context = multiprocessing.get_context("spawn")
    counter = context.RawValue("i", 0)
    processes = [context.Process(target=enter_many_times, args=(tmp_path, counter, 300)) for _ in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert counter.value == 900
