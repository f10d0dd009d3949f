"""Tables in every format, and what is taken for names, labels, classes, the offset and missing cells."""

from __future__ import annotations

import gzip
import sys
import types
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from scipy import sparse
from scipy.io import mmwrite

from rflvm.cli import reading
from rflvm.cli.columns import Wanted
from rflvm.data import tables
from rflvm.files.npz import FileError

Y = np.array([[1.0, 0, 3], [np.nan, 2, 0.5]])


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def read(text: str | bytes, name: str = "t.csv", **wanted):
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return reading.read(name, Wanted(**wanted))


def check(table, columns=("a", "b", "c"), labels=None):
    np.testing.assert_array_equal(table.values, Y)
    assert table.columns == columns
    assert table.labels == labels
    back = tables.read(table.frame())
    np.testing.assert_array_equal(back.values, Y)
    assert back.columns == columns
    assert (None if back.index is None else list(back.index)) == labels


@pytest.mark.parametrize("mark", ["", "NA", "n/a", "NaN", "NULL", "None", "#N/A", " "])
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_and_missing_cells(delimiter, mark):
    check(read(f"a,b,c\n1,0,3\n{mark},2,.5\n".replace(",", delimiter)))


def test_text_that_is_packed_or_has_a_byte_order_mark_or_other_line_ends_or_blank_lines():
    text = "a,b,c\n1,0,3\n,2,0.5\n"
    check(read(gzip.compress(text.encode()), "t.csv.gz"))
    check(read(gzip.compress(text.replace(",", "\t").encode()), "T.TSV.GZ"))
    check(read(b"\xef\xbb\xbf" + text.encode()))
    check(read(text.replace("\n", "\r\n")))
    blank = read("\n\n" + text.replace("\n", "\n\n"))
    check(blank)
    assert blank.lines == [5, 7]
    check(read('"a","b","c"\n"1",0, 3 \n,"2",5e-1\n'))


def test_without_a_header_columns_have_no_names():
    check(read("1,0,3\n,2,0.5\n"), None)


def test_the_first_column_may_hold_labels():
    named = read("name,a,b,c\nx,1,0,3\n7,,2,0.5\n")
    check(named, labels=["x", "7"])
    assert named.label_name == "name"
    assert named.notes == ["t.csv: the first column is taken as row labels ('x' is not a number)"]
    nameless = read(",a,b,c\n1,1,0,3\n2,,2,0.5\n")
    check(nameless, labels=["1", "2"])
    assert nameless.label_name == "row"
    late = read("name,a,b,c\nNA,1,0,3\nx,,2,0.5\n")
    check(late, labels=["NA", "x"])


def test_a_first_line_that_might_be_a_row_is_remarked_on():
    table = read("x,1,2\ny,3,4\n")
    assert table.columns == ("1", "2")
    assert "the first line is taken as column names; if it is a row put names above it" in table.notes[0]
    assert read("name,2001,b\ny,3,4\n").notes[0].startswith("t.csv: the first column")


def test_columns_are_named_or_numbered():
    text = "a,id,party,b,log,c,junk\n1,x,D,0,0.5,3,?\nNA,y,R,2,1.5,0.5,?\n"
    table = read(text, labels="id", classes=("party",), offset="5", ignored=("junk",))
    check(table, labels=["x", "y"])
    assert table.classes == {"party": ["D", "R"]}
    assert table.offset is not None
    assert table.offset.tolist() == [0.5, 1.5]
    assert table.row_names() == ["x", "y"]


def test_own_marks_for_missing_cells():
    check(read("a,b,c\n1,0,3\n-999,2,0.5\n", missing=("-999",)))
    check(read("a,b,c\n1,0,3\nX12,2,0.5\n", missing=("x12",)))


def test_rows_for_a_model_are_put_in_its_order():
    Path("t.csv").write_text("party,c,a,name,b\nD,3,1,x,0\nR,0.5,,y,2\n")
    table = reading.read("t.csv", Wanted(known=("a", "b", "c"), labels="name"))
    check(table, labels=["x", "y"])
    assert table.notes == ["t.csv: left out, because the model was not fitted to them: 'party'"]
    with pytest.raises(FileError, match=r"has no column 'd' \(and 1 more\), which the model was fitted to; its"):
        reading.read("t.csv", Wanted(known=("a", "d", "e")))


def test_npy_and_npz():
    np.save("t.npy", Y)
    np.savez("one.npz", anything=Y)
    np.savez_compressed("two.npz", other=np.ones(3), counts=Y)
    sparse.save_npz("sparse.npz", sparse.csr_array(Y))
    for path, layer in (("t.npy", None), ("one.npz", None), ("two.npz", "counts"), ("sparse.npz", None)):
        check(reading.read(path, Wanted(layer=layer)), None)
    np.save("more.npy", np.column_stack([[7, 8], np.nan_to_num(Y, nan=-1), [0, 1], [0.5, 0.6]]))
    table = reading.read("more.npy", Wanted(labels="1", classes=("5",), offset="6", missing=("-1",)))
    check(table, None, ["7", "8"])
    assert table.classes == {"5": ["0", "1"]}
    assert table.row(1) == "row 2"


def test_matrix_market():
    counts = sparse.coo_array(np.nan_to_num(Y, nan=4))
    mmwrite("t.mtx", counts)
    Path("t.mtx.gz").write_bytes(gzip.compress(Path("t.mtx").read_bytes()))
    for path in ("t.mtx", "t.mtx.gz"):
        np.testing.assert_array_equal(reading.read(path, Wanted()).values, counts.toarray())


def test_parquet():
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(Y, columns=["a", "b", "c"])
    frame.to_parquet("t.parquet")
    check(reading.read("t.parquet", Wanted()))
    frame.set_index(pd.Index(["x", "y"], name="name")).to_parquet("t.parquet")
    table = reading.read("t.parquet", Wanted())
    check(table, labels=["x", "y"])
    assert table.label_name == "name"
    frame.assign(party=["D", "R"], log=[1, 2]).to_parquet("t.parquet")
    table = reading.read("t.parquet", Wanted(classes=("party",), offset="log"))
    check(table)
    assert table.classes == {"party": ["D", "R"]}
    assert table.offset is not None
    assert table.offset.tolist() == [1, 2]
    with pytest.raises(FileError, match=r"column 'party': 'D' is not a number; .* give --classes party"):
        reading.read("t.parquet", Wanted(offset="log"))


class Cells:
    """What a reader sees of an AnnData."""

    def __init__(self, obs: Any):
        self.X, self.layers, self.obsm = np.zeros((2, 3)), {"counts": Y}, {}
        self.obs, self.obs_names, self.var_names = obs, ["x", "y"], ["a", "b", "c"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("real", [False, True])
def test_h5ad(real, monkeypatch):
    """With a stand-in for anndata too, which not every environment has."""
    pd = pytest.importorskip("pandas")
    obs = pd.DataFrame({"type": ["T", "B"], "log": [1.0, 2.0]}, index=["x", "y"])
    if real:
        anndata = pytest.importorskip("anndata")
        data = anndata.AnnData(np.zeros((2, 3)), obs, pd.DataFrame(index=["a", "b", "c"]), layers={"counts": Y})
        data.write_h5ad("t.h5ad")
    else:
        stub: Any = types.ModuleType("anndata")
        stub.read_h5ad = lambda path: Cells(obs)
        monkeypatch.setitem(sys.modules, "anndata", stub)
        monkeypatch.setattr("rflvm.cli.frames.find_spec", lambda name: name)
        with h5py.File("t.h5ad", "w") as file:
            file["X"] = np.zeros((2, 3))
    table = reading.read("t.h5ad", Wanted(layer="counts", classes=("type",), offset="log"))
    check(table, labels=["x", "y"])
    assert table.classes == {"type": ["T", "B"]}
    assert table.offset is not None
    assert table.offset.tolist() == [1, 2]
    with pytest.raises(FileError, match="it has no layer 'raw'; its layers: 'counts'"):
        reading.read("t.h5ad", Wanted(layer="raw"))
    with pytest.raises(FileError, match=r"has no column 'kind' in obs; it has type, log"):
        reading.read("t.h5ad", Wanted(classes=("kind",)))
