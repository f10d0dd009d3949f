"""Columns of several families, and covariates of rows, on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rflvm
from rflvm.cli import main
from rflvm.cli.columns import Wanted
from rflvm.cli.families import by_column
from rflvm.cli.reading import read

from .conftest import SHORT

HEADER = "name,batch,age,visits,calls,smokes,drinks,height\n"


def write_survey(path: str, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.linspace(-2, 2, n)
    lines = []
    for i in range(n):
        counts = rng.poisson(np.exp(1 + 0.5 * x[i] + (i % 2)), 2)
        answers = rng.random(2) < 1 / (1 + np.exp(-2 * x[i]))
        height = "" if i == 3 else f"{170 + 5 * x[i] + rng.normal():.1f}"
        cells = [
            f"p{i}",
            "xy"[i % 2],
            str(30 + (7 * i) % 23),
            *map(str, counts),
            *map(str, answers.astype(int)),
            height,
        ]
        lines.append(",".join(cells))
    Path(path).write_text(HEADER + "\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_survey("survey.csv", 24, 0)


def invoke(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(main, list(arguments), default_map=SHORT)
    assert result.exit_code == code, result.output
    return result


def test_a_fit_of_mixed_columns_with_covariates_end_to_end(here, short):
    families = ["--columns", "poisson=visits-calls", "--columns", "bernoulli=6,drinks", "--columns", "auto=height"]
    beside = ["--covariates", "batch", "--covariates", "3"]
    told = invoke("fit", "survey.csv", "--out", "run", "--quick", "--components", "1", *families, *beside).output
    assert "the covariate 'batch' is taken as 2 categories" in told
    assert "the covariate 'age' is taken as numbers" in told
    model = rflvm.load("run/model.npz")
    assert list(model.feature_names_in_) == ["visits", "calls", "smokes", "drinks", "height"]
    mixed: Any = model.likelihood_
    assert [family.name for family in mixed.families] == ["poisson", "bernoulli", "gaussian"]
    assert mixed.columns == ((0, 1), (2, 3), (4,))
    assert [covariate.name for covariate in model.fitted_.about.coding] == ["batch", "age"]
    log = json.loads(Path("run/log.json").read_text())
    assert log["table"]["covariates"] == ["batch", "age"]
    assert log["settings"]["likelihood"] == [["poisson", [0, 1]], ["bernoulli", [2, 3]], ["auto", [4]]]

    table = read("survey.csv", Wanted(covariates=("batch", "age")))
    expected = model.transform(table.frame(), covariates=table.covariates)
    invoke("transform", "run", "survey.csv", "--out", "latent.csv")
    written = np.loadtxt("latent.csv", delimiter=",", skiprows=1, usecols=1)
    np.testing.assert_array_equal(written, np.asarray(expected)[:, 0])
    invoke("impute", "run", "survey.csv", "--out", "filled.csv")
    assert "nan" not in Path("filled.csv").read_text()
    invoke("report", "run", "survey.csv", "--colour", "batch", "--out", "again.html")
    assert list(short[-1]["colours"]) == ["batch"]

    text = Path("survey.csv").read_text()
    Path("without.csv").write_text(text.replace("batch", "bach"))
    refused = invoke("transform", "run", "without.csv", "--out", "-", code=1).output
    assert "has no column 'batch' (a covariate); did you mean 'bach'?" in refused
    Path("unseen.csv").write_text(text.replace("p4,x", "p4,z"))
    assert (
        "covariate 'batch' is 'z' in line 6 (1 such)"
        in invoke("impute", "run", "unseen.csv", "--out", "-", code=1).output
    )


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (["--columns", "poisson=visits-calls"], "gives column 'age' no family (give --columns auto=...", 1),
        (["--columns", "poisson=3-5", "--columns", "auto=calls-height"], "gives column 'calls' two families", 1),
        (["--columns", "poisson=visit"], "no column of numbers 'visit' for --columns; did you mean 'visits'?", 1),
        (["--columns", "poisson=1"], "no column of numbers '1' for --columns", 1),
        (["--columns", "poisson=calls-visits"], "runs backwards", 1),
        (["--columns", "poisson"], "is not a family and its columns", 2),
        (["--columns", "poison=visits"], "did you mean 'poisson'?", 2),
        (["--columns", "poisson=visits", "--likelihood", "poisson"], "leave out --likelihood", 2),
        (["--columns", "poisson=visits", "--inference", "stream"], "--columns is for --inference gibbs and map", 2),
        (["--covariates", "age", "--inference", "stream"], "--covariates is for --inference gibbs and map", 2),
        (["--covariates", "ag"], "has no column 'ag' (a covariate); did you mean 'age'?", 1),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_written(here, arguments, message, code):
    result = invoke("fit", "survey.csv", "--out", "run", "--ignore", "batch", *arguments, code=code)
    assert message in " ".join(result.output.split())
    assert not Path("run").exists()


def test_a_covariate_of_a_fit_is_looked_for_by_its_name_and_not_as_a_number(here):
    Path("t.csv").write_text("a,b,c\n1,2,3\n4,5,6\n")
    with pytest.raises(rflvm.FileError, match="no column '3'"):
        read("t.csv", Wanted(covariates=("3",), known=("a", "b")))


def test_a_missing_covariate_is_named_by_its_line(here):
    text = Path("survey.csv").read_text()
    Path("survey.csv").write_text(text.replace("p2,x,", "p2,,"))
    told = invoke("fit", "survey.csv", "--out", "run", "--covariates", "batch", code=1).output
    assert "covariate 'batch' is missing in line 4 (1 such)" in told


def test_columns_are_named_numbered_and_in_ranges(here):
    Path("t.csv").write_text("a,a-b,same,sex,z\n1,2,5,male,0\n2,3,5,female,1\n4,6,5,male,0\n")
    table = read("t.csv", Wanted())
    assert table.columns == ("a", "a-b", "sex = male", "z")
    given = [("poisson", ["a-b"]), ("bernoulli", ["sex", "5"]), ("poisson", ["1-a-b"])]
    assert by_column(table, given) == [("poisson", [1, 0, 1]), ("bernoulli", [2, 3])]
    with pytest.raises(rflvm.FileError, match="no column of numbers 'same'"):
        by_column(table, [("poisson", ["same"])])


def test_covariates_in_files_of_other_kinds(here):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1, 2, 3], "batch": pandas.Categorical(["1", "2", "1"]), "age": [20.5, 30, np.nan]})
    frame.to_parquet("t.parquet")
    table = read("t.parquet", Wanted(covariates=("batch", "age")))
    assert table.columns == ("a",)
    assert table.covariates is not None
    assert list(table.covariates["batch"]) == ["1", "2", "1"]
    np.testing.assert_array_equal(table.covariates["age"], [20.5, 30, np.nan])
    np.save("t.npy", np.array([[1.0, 7], [2, 8]]))
    table = read("t.npy", Wanted(covariates=("2",)))
    assert table.values.shape == (2, 1)
    assert table.covariates is not None
    assert list(table.covariates["2"]) == [7, 8]
    categories = read("t.npy", Wanted(covariates=("2",), categories=("2",))).covariates
    assert categories is not None
    assert list(categories["2"]) == ["7", "8"]
