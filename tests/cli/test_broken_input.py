"""Files that are no table, or none for the model asked for: one line says where and why, and nothing is written."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from click.testing import CliRunner

from rflvm.cli import main

HEADER, ROWS = b"a,b,c\n", b"1,2,3\n4,5,6\n7,8,9\n"
MTX = b"%%MatrixMarket matrix coordinate integer general\n"


def npy(array: np.ndarray, pickled: bool = False) -> bytes:
    file = io.BytesIO()
    np.save(file, array, allow_pickle=pickled)
    return file.getvalue()


def npz(**arrays: Any) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


class Broken(NamedTuple):
    name: str
    content: bytes
    message: str  # part of it
    options: tuple[str, ...] = ()
    code: int = 1


BROKEN = {
    "empty": Broken("t.csv", b"", "t.csv is empty: expected a line of column names"),
    "blank lines only": Broken("t.csv", b"\n\n  \n", "t.csv is empty"),
    "header only": Broken("t.csv", HEADER, "has a header and no rows"),
    "ragged": Broken("t.csv", HEADER + b"1,2\n", "line 2: 2 cells where the first line has 3"),
    "ragged later": Broken("t.csv", HEADER + ROWS + b"1,2,3,4\n", "line 5: 4 cells where the first line has 3"),
    "no delimiter": Broken("t.csv", b"a|b\n1|2\n", "no column of numbers"),
    "columns without names": Broken("t.csv", b'a,"",""\n' + ROWS, "no column of numbers", ("--labels", "a")),
    "Latin-1": Broken("t.csv", HEADER + "1,2,3\né,2,3\n".encode("latin1"), "line 3 is not UTF-8 (byte 0xe9"),
    "UTF-16": Broken("t.csv", "a,b\n1,2\n".encode("utf-16-le"), "line 1 has NUL bytes"),
    "NUL bytes": Broken("t.csv", HEADER + b"1,2,3\n4,\0,6\n", "line 3 has NUL bytes"),
    "garbage": Broken("t.csv", np.random.default_rng(0).bytes(500), "UTF-8"),
    "a quote that is not closed": Broken("t.csv", b'a,b\n"1,2\n3,4\n', "look for a quote that is not closed"),
    "text": Broken(
        "t.csv", HEADER + b"1,2,3\n4,x12,6\n",
        "line 3, column 'b': 'x12' is not a number; if it marks a missing value give --missing x12; if the column "
        "holds labels give --colour b",
    ),
    "text without a header": Broken("t.csv", b"1,2\n3,x\n", "line 2, column 2: 'x' is not a number"),
    "an underscore": Broken("t.csv", HEADER + b"1,2,1_0\n4,5,6\n", "line 2, column 'c': '1_0' is not a number"),
    "infinite": Broken("t.csv", HEADER + b"1,2,3\n4,5,inf\n", "line 3, column 'c': 'inf' is infinite"),
    "beyond double precision": Broken("t.csv", HEADER + b"1,2,1e999\n", "'1e999' is infinite"),
    "a comma that may be either": Broken(
        "t.csv", b"a;b\n1;2,500\n2;3\n", "may be a decimal one or separate thousands: write 2.500 or 2500"
    ),
    "decimal commas and points": Broken(
        "t.csv", b"a;b\n1;2,5\n2.5;3\n", "may be a decimal one, and line 3, column 'a' has a decimal point"
    ),
    "nothing but missing cells": Broken("t.csv", b"a,b\n,\n,NA\n,\n", "all of their cells are missing: 'a', 'b'"),
    "a missing row": Broken("t.csv", b"a,b\n1,2\nNA,\n3,4\n", "t.csv: line 3 has no observed cell"),
    "fewer rows than dimensions": Broken("t.csv", HEADER + b"1,2,3\n", "fewer rows (1 sample) than latent dimensions"),
    "negative counts": Broken(
        "t.csv", HEADER + b"1,2,3\n4,-5,6\n", "needs counts >= 0, got line 3, column 'b' = -5",
        ("--likelihood", "poisson"),
    ),
    "fractions for counts": Broken(
        "t.csv", HEADER + b"1,2,3\n4,5,6.5\n",
        "column 'c' = 6.5 (1 such cell); for real numbers give --likelihood gaussian",
        ("--likelihood", "negative_binomial"),
    ),
    "counts for yes or no": Broken("t.csv", HEADER + ROWS, "cells that are 0 or 1", ("--likelihood", "bernoulli")),
    "no such label column": Broken("t.csv", HEADER + ROWS, "has no column 'name'", ("--labels", "name")),
    "no such class column": Broken("t.csv", b"party,b\nD,2\n", "did you mean 'party'?", ("--classes", "partyy")),
    "no offset": Broken("t.csv", HEADER + b"1,2,3\n4,5,\n", "line 3: the offset is missing", ("--offset", "c")),
    "nothing left": Broken("t.csv", b"a,b\n1,2\n", "no column of numbers", ("--ignore", "a", "--ignore", "2")),
    "a layer of a CSV file": Broken("t.csv", HEADER + ROWS, "has no layers", ("--layer", "counts")),
    "truncated gzip": Broken("t.csv.gz", gzip.compress(HEADER + ROWS * 50)[:40], "t.csv.gz is not a whole gzip file"),
    "no gzip": Broken("t.csv.gz", HEADER + ROWS, "t.csv.gz is not a whole gzip file"),
    "unknown kind": Broken("t.ods", b"PK", "does not say what kind of table this is"),
    "no workbook": Broken("t.xlsx", b"PK", "t.xlsx is not a whole Excel workbook"),
    "no extension": Broken("t", HEADER + ROWS, "expected .csv, .tsv"),
    "NPY named CSV": Broken("t.csv", npy(np.ones((3, 3))), "not UTF-8"),
    "CSV named NPY": Broken("t.npy", HEADER + ROWS, "t.npy is not an NPY file: check that its name fits its content"),
    "truncated NPY": Broken("t.npy", npy(np.ones((9, 9)))[:200], "t.npy is damaged"),
    "pickled NPY": Broken("t.npy", npy(np.array([[{}]]), True), "holds Python objects, which are never loaded"),
    "three dimensions": Broken("t.npy", npy(np.ones((2, 3, 4))), "must have 2 dimensions, got shape (2, 3, 4)"),
    "one dimension": Broken("t.npy", npy(np.ones(4)), "must have 2 dimensions, got shape (4,)"),
    "complex": Broken("t.npy", npy(np.ones((3, 3), complex)), "must hold real numbers"),
    "strings in NPY": Broken("t.npy", npy(np.array([["a"]])), "must hold numbers"),
    "no rows in NPY": Broken("t.npy", npy(np.ones((0, 3))), "has 0 rows and 3 columns"),
    "infinite in NPY": Broken("t.npy", npy(np.array([[1.0, 2], [np.inf, 3]])), "t.npy: row 2, column 1 is infinite"),
    "a named column of NPY": Broken("t.npy", npy(np.ones((3, 3))), "give a number from 1 to 3", ("--labels", "name")),
    "NPY with a header that is no Python": Broken(
        "t.npy", npy(np.ones((3, 3))).replace(b"'shape': (3, 3)", b"'shape': (((((("), "t.npy is damaged"
    ),
    "NPY with a shape beyond the file": Broken(
        "t.npy", npy(np.ones((3, 3))).replace(b"(3, 3), }  ", b"(3, 33), } "), "takes 792 bytes, and there are 72"
    ),
    "sparse NPZ with wild indices": Broken(
        "t.npz",
        npz(format=b"csr", shape=[2, 2], data=[1.0, 2], indices=[0, 10**9], indptr=[0, 1, 2]),
        "t.npz is a sparse table that cannot be: its indices include 1000000000, and must be from 0 to 1",
    ),
    "sparse NPZ with a wild indptr": Broken(
        "t.npz", npz(format=b"csr", shape=[2, 2], data=[1.0, 2], indices=[0, 1], indptr=[0, 2**40, 2]), "t.npz"
    ),
    "sparse NPZ of an unknown format": Broken("t.npz", npz(format=b"xyz", shape=[2, 2], data=[1.0], a=[0]), "'xyz'"),
    "sparse NPZ with fractions as indices": Broken(
        "t.npz", npz(format=b"csr", shape=[1, 1], data=[1.0], indices=[0.5], indptr=[0, 1]), "not whole numbers"
    ),
    "a count that no float holds": Broken(
        "t.csv", HEADER + b"1,2,3\n4,1e30,6\n",
        "got line 3, column 'b' = 1e+30 (1 such cell); count in larger units, or for real numbers give --likelihood",
        ("--likelihood", "poisson"),
    ),
    "a cell without a separator": Broken("t.csv", b"x" * 200_000, "or for another separator than comma"),
    "truncated NPZ": Broken("t.npz", npz(Y=np.ones((9, 9)))[:300], "t.npz is damaged"),
    "pickled NPZ": Broken("t.npz", npz(Y=np.array([[{}]])), "holds Python objects, which are never loaded"),
    "several arrays": Broken("t.npz", npz(a=np.ones(2), b=np.ones(2)), "more than one array: name one by --layer"),
    "CSV named NPZ": Broken("t.npz", HEADER + ROWS, "t.npz is not an NPZ file"),
    "no such array": Broken("t.npz", npz(a=np.ones(2)), "has no array 'b'", ("--layer", "b")),
    "mtx index out of range": Broken("t.mtx", MTX + b"2 2 1\n3 1 5\n", "not a whole Matrix Market file"),
    "mtx with too few entries": Broken("t.mtx", MTX + b"2 2 3\n1 1 5\n", "not a whole Matrix Market file"),
    "mtx without a banner": Broken("t.mtx", b"2 2 1\n1 1 5\n", "not a whole Matrix Market file"),
    "symmetric mtx that is not square": Broken(
        "t.mtx", b"%%MatrixMarket matrix array real symmetric\n2 400\n" + b"1\n" * 600, "2 x 400 cannot be symmetric"
    ),
    "mtx with too many entries": Broken("t.mtx", MTX + b"1 1 1\n1 1 5\n1 1 5\n", "it has 2 lines of 3 numbers, not 1"),
    "mtx with an odd last line": Broken("t.mtx", MTX + b"1 1 1\n1 1 4\xd7", "could not convert string"),
    "mtx of an unknown kind": Broken("t.mtx", MTX.replace(b"integer", b"quaternion"), "says 'quaternion' where one"),
    "mtx with text as sizes": Broken("t.mtx", MTX + b"2 x 1\n", "the line with its sizes is '2 x 1'"),
    "mtx with an endless line": Broken("t.mtx", MTX + b"1" * 2000, "a line is longer than 1024 characters"),
    "mtx with a large whole number": Broken("t.mtx", MTX + b"1 1 1\n1 1 9007199254740993\n", "2**53 or beyond"),
    "truncated mtx.gz": Broken("t.mtx.gz", gzip.compress(MTX + b"2 2 1\n1 1 5\n")[:-12], "t.mtx.gz is not a whole"),
    "complex mtx": Broken(
        "t.mtx", b"%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 5 1\n", "must hold real numbers"
    ),
    "pixels that do not fit": Broken("t.csv", HEADER + ROWS, "is 4 pixels, and", ("--image-shape", "2x2"), 2),
    "images and curves": Broken(
        "t.csv", HEADER + ROWS, "--ordered draws curves, --image-shape", ("--image-shape", "2x2", "--ordered"), 2
    ),
    "no shape": Broken("t.csv", HEADER + ROWS, "not height x width, such as 28x28", ("--image-shape", "4"), 2),
}  # fmt: skip


def fails(arguments: list[str], message: str, code: int = 1) -> str:
    """Check that a command fails as it should; its line."""
    result = CliRunner().invoke(main, arguments)
    lines = result.stderr.splitlines()
    assert result.exit_code == code, result.output
    assert len(lines) == 1, lines
    assert lines[0].startswith("rflvm: error: ")
    assert message in lines[0]
    assert "Traceback" not in result.output
    assert result.stdout == ""
    return lines[0]


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_table_is_refused_in_one_line(case, tmp_path, monkeypatch):
    broken = BROKEN[case]
    monkeypatch.chdir(tmp_path)
    Path(broken.name).write_bytes(broken.content)
    print(fails(["fit", broken.name, "--out", "deep/run", *broken.options], broken.message, broken.code))
    assert [path.name for path in tmp_path.iterdir()] == [broken.name]


def test_a_table_that_is_not_there_or_is_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("folder.csv").mkdir()
    fails(["fit", "t.csv", "--out", "run"], "t.csv: no such file or directory; check the path")
    fails(["fit", "folder.csv", "--out", "run"], "folder.csv is a folder")
    for name in ("t.parquet", "t.h5ad", "t.mtx", "t.npz"):
        fails(["fit", name, "--out", "run"], f"{name}: no such file or directory")


@pytest.mark.parametrize("name", ["t.parquet", "t.h5ad"])
def test_a_damaged_file_of_another_library(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(b"PAR1 or HDF")
    fails(["fit", name, "--out", "run"], f"{name} is not a whole")


def test_formats_that_need_more_say_what_to_install(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rflvm.cli.frames.find_spec", lambda name: None)
    Path("t.parquet").touch()
    Path("t.h5ad").touch()
    fails(["fit", "t.parquet", "--out", "run"], "needs pandas and pyarrow: pip install 'rflvm[files]'")
    fails(["fit", "t.h5ad", "--out", "run"], "needs anndata: pip install 'rflvm[files]'")
