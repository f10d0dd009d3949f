"""Rows divided among processes: the same fit, and an end when one of them is lost."""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import one_of_several as script
import rflvm
from rflvm.numerics.errors import InputError
from rflvm.streaming import landmarks
from rflvm.streaming.shards import Shards

N, J = 700, 30


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_every_row_has_one_process_and_every_block_is_whole(count):
    parts = [Shards(rank, count, "").rows(700, 64) for rank in range(count)]
    assert parts[0][0] == 0
    assert parts[-1][1] == 700
    assert all(one[1] == other[0] for one, other in itertools.pairwise(parts))
    assert all(first % 64 == 0 and first < last for first, last in parts)
    with pytest.raises(InputError, match="11 block"):
        Shards(0, 12, "").check(700, 64)


@pytest.fixture
def table(tmp_path):
    """Counts in a file."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((N, 2))
    angle = 0.6 * X @ rng.standard_normal((2, 100))
    waves = np.concatenate([np.cos(angle), np.sin(angle)], axis=1) / 10
    np.save(tmp_path / "y.npy", rng.poisson(np.exp(1 + waves @ rng.standard_normal((200, J)))).astype(np.uint8))
    return tmp_path


def alone(folder: Path, **more: Any) -> Any:
    """The fit of one process, this one."""
    with pytest.MonkeyPatch.context() as patch:
        for name, size in script.SIZES.items():
            patch.setattr(landmarks, name, size)
        patch.setattr("rflvm.data.blocks.encoding.MOST_ROWS", script.MOST_ROWS)
        return rflvm.stream(folder / "y.npy", "poisson", **script.SETTINGS, **more)


def start(folder: Path, port: int, rank: int, *more: str) -> subprocess.Popen:
    """One of two processes."""
    command = [sys.executable, script.__file__, f"localhost:{port}", "2", str(rank), str(folder), *more]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | {"NPROC": "2"})


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("localhost", 0))
        return probe.getsockname()[1]


def test_two_processes_fit_as_one_does(table):
    port = free_port()
    processes = [start(table, port, rank) for rank in (0, 1)]
    ends = [process.communicate(timeout=300)[1] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], ends
    one, other = (np.load(table / f"fit-{rank}.npz") for rank in (0, 1))
    for name in one:
        np.testing.assert_array_equal(one[name], other[name])
    np.testing.assert_array_equal(np.load(table / "x.npy"), one["X"])
    expected = alone(table)
    away = np.abs(one["X"] - expected.X).max(axis=1)
    # Sums in another order differ in the last bits of single precision, and rows with a flat posterior follow most.
    assert np.quantile(away, 0.95) < 1e-3
    assert np.quantile(away, 0.99) < 2e-3
    np.testing.assert_allclose(one["held_out"], expected.held_out, rtol=1e-5)


@pytest.mark.long
def test_when_one_is_lost_the_other_ends_and_the_run_goes_on(table):
    port = free_port()
    staying, leaving = start(table, port, 0), start(table, port, 1, "wait")
    while not (table / "waiting").exists():
        assert staying.poll() is None
        time.sleep(0.2)
    leaving.kill()
    killed = time.monotonic()
    message = staying.communicate(timeout=60)[1]
    assert time.monotonic() - killed < 15
    assert staying.returncode == 1
    lines = [line for line in message.splitlines() if line.startswith("rflvm:")]
    assert len(lines) == 1
    assert "another process was lost" in lines[0]
    assert str(table / "run") in lines[0]
    leaving.communicate()
    resumed, whole = alone(table, checkpoint=table / "run"), alone(table)
    assert [epoch.rows for epoch in resumed.epochs] == [epoch.rows for epoch in whole.epochs]
    assert np.quantile(np.abs(resumed.X - whole.X).max(axis=1), 0.99) < 1e-3
