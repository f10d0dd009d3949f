"""``rflvm fit --inference stream``: files that are read in blocks, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import rflvm
from rflvm.cli import main

SETTINGS = {"fit": {"features": 6, "kernel": "rbf"}}


def invoke(*arguments: str, code: int = 0) -> str:
    """What a command prints."""
    result = CliRunner().invoke(main, list(arguments), default_map=SETTINGS)
    assert result.exit_code == code, result.output
    return result.output


@pytest.fixture
def counts(tmp_path, monkeypatch):
    """A file of counts, of which 100 rows are landmarks, in the working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("rflvm.streaming.landmarks.N_LANDMARKS", 100)
    monkeypatch.setattr("rflvm.maximum.maximise.find_maximum", _from_pca(rflvm.maximum.maximise.find_maximum))
    np.save("counts.npy", np.random.default_rng(0).poisson(3, (300, 6)).astype(np.uint8))


def _from_pca(find):
    """Few iterations from PCA, in place of a competition of starts."""

    def find_maximum(data, model, kernel, init, n_iterations, *others, **more):
        return find(data, model, kernel, "pca", 3, *others, **more)

    return find_maximum


@pytest.mark.usefixtures("counts", "short")
def test_a_folder_from_a_file_that_is_streamed():
    printed = invoke("fit", "counts.npy", "--inference", "stream", "--likelihood", "poisson", "--out", "run")
    assert "300 rows x 6 columns" in printed
    names = sorted(path.name for path in Path("run").iterdir())
    assert names == [
        "checkpoint", "latent.parquet", "log.json", "model.npz", "posterior.nc", "report.html",
    ]  # fmt: skip
    model = rflvm.load("run/model.npz")
    rows = pq.read_table("run/latent.parquet").to_pandas()
    assert list(rows) == ["x1", "x2", "sd1", "sd2"]
    np.testing.assert_array_equal(rows[["x1", "x2"]], model.embedding_)
    assert json.loads(Path("run/log.json").read_text())["table"]["rows"] == 300
    invoke("fit", "counts.npy", "--inference", "stream", "--likelihood", "poisson", "--out", "run", code=1)


@pytest.mark.usefixtures("counts")
@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ("fit counts.npy --inference stream --samples 5", "--samples is for sampling"),
        ("fit counts.npy --inference stream --offset 1", "leave out --offset"),
        ("fit none.npy --inference stream", "none.npy is not there"),
        ("fit counts.npy --distributed", "--distributed is for --inference stream"),
        ("fit counts.csv --inference stream --distributed", "tables that are read in blocks"),
        ("fit counts.npy --inference stream --distributed", "--distributed found no other process"),
    ],
)
def test_what_is_refused(options, problem):
    result = CliRunner().invoke(main, options.split())
    assert result.exit_code != 0
    assert problem in " ".join(result.output.split()), result.output


@pytest.mark.usefixtures("counts")
def test_a_bad_cell_is_named():
    counts = np.load("counts.npy").astype(int)
    counts[207, 3] = -4
    np.save("counts.npy", counts)
    printed = invoke(
        "fit", "counts.npy", "--inference", "stream", "--likelihood", "poisson", "--out", "run", code=1
    )  # fmt: skip
    assert "[207, 3] = -4" in printed
