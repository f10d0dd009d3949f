"""A family from outside the package goes through everything that the package does, with nothing else touched."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import rflvm
from durations import Durations
from rflvm import RFLVM, FileError
from rflvm.cli import main
from rflvm.report import page, write_report

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N, J = 24, 5
SETTINGS: dict[str, Any] = {"n_features": 6, "n_samples": 6, "n_burnin": 4, "max_iter": 5, "random_state": 0}


def durations() -> np.ndarray:
    """Durations of five kinds, in minutes, that depend on one hidden number; two are missing."""
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, N)[:, None]
    Y = 60 * np.exp(np.sin(x + np.arange(J))) * rng.exponential(size=(N, J))
    Y[3, 1] = Y[10, 4] = np.nan
    return Y


@pytest.fixture(scope="module", params=["map", "gibbs"])
def model(request) -> RFLVM:
    return RFLVM(likelihood=Durations(unit=60.0), inference=request.param, init="pca", **SETTINGS).fit(durations())


def test_gaps_are_filled_and_rows_are_placed_and_drawn(model):
    Y = durations()
    filled = model.impute(Y)
    assert (filled > 0).all()
    np.testing.assert_array_equal(filled[~np.isnan(Y)], Y[~np.isnan(Y)])
    assert model.transform(Y[:3]).shape == (3, 2)
    assert np.isfinite(model.score(Y))
    mean, lower, upper = model.predict_intervals(Y)
    assert ((lower < mean) & (mean < upper)).mean() > 0.9
    assert (model.sample(5)[1] > 0).all()


def test_it_comes_back_from_a_file_when_its_class_is_named(model, tmp_path):
    model.save(tmp_path / "model.npz")
    with pytest.raises(FileError, match=r"fitted with Durations, which is not a likelihood of rflvm: .*likelihood="):
        rflvm.load(tmp_path / "model.npz")
    again = rflvm.load(tmp_path / "model.npz", likelihood=Durations)
    assert again.likelihood_ == Durations(unit=60.0)
    np.testing.assert_array_equal(again.impute(durations()), model.impute(durations()))


def test_it_is_converted_for_arviz(model):
    pytest.importorskip("xarray")
    tree = model.posterior_predictive()
    assert tree["log_likelihood"]["Y"].shape[-1] == N * J - 2
    assert (tree["posterior_predictive"]["Y"] > 0).all()


def test_the_explorer_of_a_report_interpolates_its_means(model, tmp_path, monkeypatch):
    monkeypatch.setattr(page, "draw", lambda *arguments: [])
    path = write_report(model, tmp_path / "report.html")
    text = path.read_text()
    header = json.loads(re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', text, re.DOTALL)[0])
    assert set(header["decoders"]) == {None}
    block = zlib.decompress(b64decode(re.findall(r"[A-Za-z0-9+/]{2000,}={0,2}", text)[-1]))
    about = header["arrays"]["table"]
    table = np.frombuffer(block, "<f4", int(np.prod(about["shape"])), about["at"]).reshape(about["shape"])
    low, step = (np.frombuffer(block, "<f8", J, header["arrays"][name]["at"]) for name in ("table_low", "table_step"))
    f = low + step * np.arange(table.shape[1])[:, None]
    np.testing.assert_allclose(table[0], 60 * np.exp(f), rtol=1e-6)


def test_the_command_line_takes_it_by_its_module_and_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("minutes.py").write_text(Path(__file__).with_name("durations.py").read_text())
    rows = [",".join("" if np.isnan(y) else f"{y:.4f}" for y in row) for row in durations()]
    Path("table.csv").write_text("\n".join(["a,b,c,d,e", *rows]) + "\n")
    fit = ["fit", "table.csv", "--out", "run", "--quick", "--features", "6", "--likelihood", "minutes:Durations"]
    result = CliRunner().invoke(main, fit)
    assert result.exit_code == 0, result.output
    assert json.loads(Path("run/log.json").read_text())["likelihood"]["family"] == "durations"
    assert Path("run/report.html").exists()
    result = CliRunner().invoke(main, ["impute", "run", "table.csv", "--out", "filled.csv"])
    assert result.exit_code == 1
    assert "--likelihood" in result.output
    result = CliRunner().invoke(
        main, ["impute", "run", "table.csv", "--out", "filled.csv", "--likelihood", "minutes:Durations"]
    )
    assert result.exit_code == 0, result.output
    assert len(Path("filled.csv").read_text().splitlines()) == N + 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_module:Name", "no module named 'no_such_module'"),
        ("rflvm.likelihoods:NoSuchName", "has no 'NoSuchName'"),
        ("rflvm.likelihoods:get", "is not a likelihood"),
        ("poison", "did you mean 'poisson'"),
    ],
)
def test_a_family_that_is_not_there_is_refused_before_anything_is_read(tmp_path, monkeypatch, name, message):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["fit", "absent.csv", "--out", "run", "--likelihood", name])
    assert result.exit_code == 2
    assert message in result.output.lower() or message in result.output
