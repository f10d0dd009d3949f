"""Tables in every format, and what is taken for names, labels, classes, the offset and missing cells."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import mmread, mmwrite

from rflvm.cli import reading
from rflvm.cli.columns import Wanted
from rflvm.data import memory, tables
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


def test_columns_of_new_rows_may_be_constant_or_missing():
    about = SimpleNamespace(offset=np.zeros(9), exposure=None, coding=())
    model = SimpleNamespace(n_features_in_=3, fitted_=SimpleNamespace(about=about))
    Path("t.csv").write_text("1,0,\n1,2,\n")
    np.testing.assert_array_equal(reading.read_rows("t.csv", Wanted(), model).values, [[1, 0, np.nan], [1, 2, np.nan]])
    model.n_features_in_ = 2
    with pytest.raises(FileError, match="has 3 columns of numbers, the model was fitted to 2"):
        reading.read_rows("t.csv", Wanted(), model)


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


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize(
    ("dense", "field"), [(False, "real"), (False, "integer"), (False, "pattern"), (True, "real"), (True, "integer")]
)
def test_every_kind_of_matrix_market_is_read_as_scipy_reads_it(dense, field, symmetry):
    Z = np.array([[0.0, 2, 0], [1, 0, 0], [0, 7, 0]])
    Z = {"general": Z, "symmetric": Z + Z.T, "skew-symmetric": Z - Z.T}[symmetry]
    mmwrite("t.mtx", Z if dense else sparse.coo_array(Z), comment="two\nlines", field=field, symmetry=symmetry)
    expected = mmread("t.mtx")
    expected = expected if isinstance(expected, np.ndarray) else expected.toarray()
    np.testing.assert_array_equal(reading.read("t.mtx", Wanted()).values, expected)


def test_entries_of_matrix_market_that_are_there_twice_are_added_up():
    table = read(b"%%MatrixMarket MATRIX Coordinate Real General\n\n2 2 2\n1 2 3\n\n1 2 4.5", "t.mtx")
    assert table.values.tolist() == [[0, 7.5], [0, 0]]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("compressed", [False, True])
def test_sparse_matrices_of_every_format_that_scipy_saves(form, compressed):
    Z = np.nan_to_num(Y, nan=4)
    for kind in (sparse.csr_array, sparse.csr_matrix):
        sparse.save_npz("t.npz", kind(Z).asformat(form), compressed=compressed)
        np.testing.assert_array_equal(reading.read("t.npz", Wanted()).values, Z)


def test_a_header_may_be_longer_than_a_cell_of_the_csv_module(monkeypatch):
    names = [f"ENSG{j:011d}" for j in range(15_000)]
    limit = csv.field_size_limit()
    for delimiter in ",;\t":
        text = delimiter.join(names) + "\n" + delimiter.join(["1"] * len(names)) + "\n"
        table = read(text)
        assert table.columns == tuple(names)
        assert table.values.shape == (1, 15_000)
    assert csv.field_size_limit() == limit


def test_delimiters_within_quotes_do_not_count():
    table = read('"a,b,c,d";"say ""x,y"""\n1;2\n')
    assert table.columns == ("a,b,c,d", 'say "x,y"')


def test_tables_that_are_too_large_are_refused_before_they_are_expanded(monkeypatch):
    Z = np.ones((300, 300))
    np.save("t.npy", Z)
    np.savez_compressed("t.npz", Y=Z)
    sparse.save_npz("sparse.npz", sparse.coo_array((300, 300)))
    Path("t.mtx").write_text("%%MatrixMarket matrix coordinate real general\n300 300 1\n1 1 1\n")
    Path("entries.mtx").write_text("%%MatrixMarket matrix coordinate real general\n2 2 100000\n1 1 1\n")
    text = "\n".join(["a,b"] + ["1,2"] * 50_000)
    Path("t.csv.gz").write_bytes(gzip.compress(text.encode()))
    Path("line.csv.gz").write_bytes(gzip.compress(b"a" * 900_000))
    pd = pytest.importorskip("pandas")
    pd.DataFrame(Z).rename(columns=str).to_parquet("t.parquet")
    monkeypatch.setattr(memory, "available", lambda: 1_300_000)
    for name in ("t.npy", "t.npz", "sparse.npz", "t.mtx", "entries.mtx", "t.parquet"):
        with pytest.raises(
            FileError, match=rf"^{name} needs [0-9.]+ GB of memory .* 0.0013 GB are free, .* keep fewer"
        ):
            reading.read(name, Wanted())
    for name in ("t.csv.gz", "line.csv.gz"):
        with pytest.raises(FileError, match=rf"^{name} needs more memory than there is \(.*\): keep fewer columns"):
            reading.read(name, Wanted())
    monkeypatch.setattr(memory, "available", lambda: None)
    assert reading.read("t.npz", Wanted()).values.shape == (300, 300)


def test_the_size_of_an_h5ad_file_is_looked_at_before_it_is_expanded(monkeypatch):
    with h5py.File("t.h5ad", "w") as file:
        file.create_dataset("layers/counts", (1000, 1000), float, compression="gzip", fillvalue=0)
    monkeypatch.setattr(memory, "available", lambda: 15_000_000)
    with pytest.raises(FileError, match=r"^t.h5ad needs 0.008 GB of memory as it is stored in the file, expanded"):
        reading.read("t.h5ad", Wanted())


@pytest.mark.parametrize("name", ["t.npy", "t.npz", "t.mtx", "t.csv", "t.parquet"])
def test_memory_that_runs_out_is_no_damage(name, monkeypatch):
    np.save("t.npy", Y)
    np.savez("t.npz", Y=Y)
    Path("t.mtx").write_text("%%MatrixMarket matrix array real general\n1 1\n1\n")
    Path("t.csv").write_text("a,b\n1,2\n")
    pytest.importorskip("pandas").DataFrame({"a": [1.0]}).to_parquet("t.parquet")

    def fail(*args, **settings):
        raise MemoryError("Unable to allocate 9 TiB")

    for function in (
        "numpy.lib.format.read_array", "numpy.loadtxt", "rflvm.cli.lines._table", "pandas.read_parquet"
    ):  # fmt: skip
        monkeypatch.setattr(function, fail)
    line = rf"^{name} needs more memory than there is \(Unable to allocate 9 TiB\): keep fewer columns or rows$"
    with pytest.raises(FileError, match=line):
        reading.read(name, Wanted())


def test_parquet():
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
    table = reading.read("t.parquet", Wanted(offset="log"))
    check(table)
    assert table.notes == ["t.parquet: left out, because they hold text: 'party'; --labels or --colour takes one"]


@pytest.mark.filterwarnings("ignore")
def test_h5ad():
    import anndata  # slow to import

    obs = pd.DataFrame({"type": ["T", "B"], "log": [1.0, 2.0]}, index=["x", "y"])
    data = anndata.AnnData(np.zeros((2, 3)), obs, pd.DataFrame(index=["a", "b", "c"]), layers={"counts": Y})
    data.write_h5ad("t.h5ad")
    table = reading.read("t.h5ad", Wanted(layer="counts", classes=("type",), offset="log"))
    check(table, labels=["x", "y"])
    assert table.classes == {"type": ["T", "B"]}
    assert table.offset is not None
    assert table.offset.tolist() == [1, 2]
    with pytest.raises(FileError, match="it has no layer 'raw'; its layers: 'counts'"):
        reading.read("t.h5ad", Wanted(layer="raw"))
    with pytest.raises(FileError, match=r"has no column 'kind' in obs; it has type, log"):
        reading.read("t.h5ad", Wanted(classes=("kind",)))
