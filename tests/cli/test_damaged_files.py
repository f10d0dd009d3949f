"""No damaged file ends the process by a signal: each is read, or refused in one line that names it.

The files are damaged at random, in a process of its own, of which only the exit code and the last line are looked at:
run ``python test_damaged_files.py KIND N`` to see it.
"""

from __future__ import annotations

import functools
import gzip
import io
import os
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

N_FILES = 300
FORMS = ("csr", "csc", "coo", "bsr", "dia")
TEXT = [b"0", b"9", b"-", b"99999999", b"\n", b" ", b"%", b"nan", b"1e9", b"symmetric", b"array"]


def table() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.integers(1, 9, (12, 9)) * (rng.random((12, 9)) < 0.4)


@functools.cache
def npz(form: str) -> bytes:
    file = io.BytesIO()
    sparse.save_npz(file, sparse.csr_array(table()).asformat(form))
    return file.getvalue()


@functools.cache
def arrays(form: str) -> dict[str, np.ndarray]:
    with np.load(io.BytesIO(npz(form))) as file:
        return {name: file[name] for name in file.files}


def mtx(rng: random.Random) -> bytes:
    Y = table()
    square = Y[:9] + Y[:9].T
    chosen = rng.choice([sparse.coo_array(Y), Y, sparse.coo_array(square), square, Y * 1.5])
    file = io.BytesIO()
    mmwrite(file, chosen)
    return file.getvalue()


def npy(rng: random.Random) -> bytes:
    file = io.BytesIO()
    array = table().astype(rng.choice(["<f8", ">i4", "u1", "c8", "U3"]))
    np.save(file, rng.choice([array, array.T]))
    return file.getvalue()


def wild_arrays(rng: random.Random) -> bytes:
    """A whole file of a sparse matrix that cannot be."""
    parts = arrays(rng.choice(FORMS))
    name = rng.choice([name for name in parts if name not in ("format", "_is_array")])
    array = parts[name].copy()
    size = 2 ** rng.randrange(3, 62)
    how = rng.randrange(4)
    if how == 0:
        array = array[: rng.randrange(len(array) + 1)]
    elif how == 1:
        array = np.concatenate([array, array])
    elif array.size:
        array = array.astype(rng.choice([array.dtype, np.dtype(np.int64), np.dtype(float)]))
        array.flat[rng.randrange(array.size)] = np.array(rng.randint(-size, size)).astype(array.dtype)
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **(parts | {name: array}))
    return file.getvalue()


def damaged(rng: random.Random, content: bytes) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.choice([1, 1, 2, 4])):
        i = rng.randrange(min(len(changed), rng.choice([80, len(changed)])))
        how = rng.randrange(5)
        if how == 0:
            changed[i] = rng.randrange(256)
        elif how == 1:
            del changed[i : i + rng.randint(1, 20)]
        elif how == 2:
            changed[i:i] = rng.choice(TEXT)
        elif how == 3:
            del changed[max(i, 1) :]
        else:
            j = rng.randrange(len(changed))
            changed[i:i] = changed[j : j + 20]
        changed = changed or bytearray(b"x")
    text = bytes(changed)
    return text.replace(b"general", b"symmetric") if rng.random() < 0.1 else text


KINDS = {
    "sparse.npz": lambda rng: damaged(rng, npz(rng.choice(FORMS))),
    "wild.npz": wild_arrays,
    "table.npy": lambda rng: damaged(rng, npy(rng)),
    "table.mtx": lambda rng: damaged(rng, mtx(rng)),
    "table.mtx.gz": lambda rng: damaged(rng, gzip.compress(mtx(rng))),
}


@pytest.mark.parametrize("kind", KINDS)
def test_no_damaged_file_ends_the_process(kind):
    command = [sys.executable, "-X", "faulthandler", __file__, kind, str(N_FILES)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert result.returncode == 0, result.stderr[-2000:]
    n_read, n_refused = map(int, result.stdout.split())
    assert n_read + n_refused == N_FILES
    assert n_refused > N_FILES / 3


def main(kind: str, n_files: int) -> None:
    """Read so many damaged files, and print how many could be read and how many were refused."""
    from rflvm.cli import reading
    from rflvm.cli.columns import Wanted
    from rflvm.data import memory
    from rflvm.files.npz import FileError

    memory.available = lambda: 10**8  # so that a size that is damaged but possible takes no time
    n_read = n_refused = 0
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for seed in range(n_files):
            Path(kind).write_bytes(KINDS[kind](random.Random(seed)))
            try:
                reading.read(kind, Wanted())
                n_read += 1
            except FileError as error:
                n_refused += kind in str(error) and "\n" not in str(error)
    print(n_read, n_refused)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
