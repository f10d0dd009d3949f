"""The commands on one short run: what they write, what they refuse, interrupts, full disks and pipes."""

from __future__ import annotations

import csv
import dataclasses
import fcntl
import json
import os
import pty
import re
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from click.testing import CliRunner
from sklearn.utils import Bunch

import rflvm
from rflvm import RFLVM
from rflvm.cli import fit, main
from rflvm.datasets import make_s_curve
from rflvm.files import lock

from .conftest import SHORT, write_table

ROOT = Path(__file__).parents[2]
FIT = ["fit", "counts.csv", "--out", "run/", "--classes", "party"]
NAMES = ["checkpoint", "latent.csv", "log.json", "model.npz", "posterior.nc", "report.html"]


def invoke(*arguments: str, code: int = 0, **defaults: Any):
    result = CliRunner().invoke(main, list(arguments), default_map=SHORT | defaults)
    assert result.exit_code == code, result.output
    return result


def table(path: str) -> tuple[list[str], list[list[str]]]:
    with Path(path).open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def files(folder: str = ".") -> list[str]:
    return sorted(path.name for path in Path(folder).iterdir())


def arrays(path: str | Path) -> dict[str, np.ndarray]:
    with np.load(path) as file:
        return {name: file[name] for name in file.files if name not in ("header.json", "digest")}


@pytest.fixture(scope="module")
def finished(tmp_path_factory, short):
    """A folder with tables and a run."""
    folder = tmp_path_factory.mktemp("cli")
    write_table(folder / "counts.csv")
    write_table(folder / "new.csv", seed=1, n=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        result = invoke(*FIT)
    (folder / "stdout").write_text(result.stdout)
    (folder / "stderr").write_text(result.stderr)
    assert short[-1]["colours"] == {"party": ["D", "R"] * 15}
    assert short[-1]["row_labels"][:2] == ["r0", "r1"]
    assert (short[-1]["image_shape"], short[-1]["ordered"], short[-1]["title"]) == (None, False, "counts.csv")
    return folder


@pytest.fixture
def here(finished, tmp_path, monkeypatch):
    """A copy of it, to work in."""
    folder = shutil.copytree(finished, tmp_path / "here")
    monkeypatch.chdir(folder)
    return folder


def test_a_fit_writes_all_its_files(here):
    assert files("run") == NAMES
    header, rows = table("run/latent.csv")
    model = rflvm.load("run/model.npz")
    assert header == ["name", "x1", "x2", "sd1", "sd2", "party"]
    assert [row[0] for row in rows] == [f"r{i}" for i in range(30)]
    np.testing.assert_array_equal([[float(cell) for cell in row[1:3]] for row in rows], model.embedding_)
    np.testing.assert_array_equal([[float(cell) for cell in row[3:5]] for row in rows], model.embedding_std_)
    assert [row[5] for row in rows[:2]] == ["D", "R"]
    assert list(model.feature_names_in_) == [f"w{j}" for j in range(6)]
    assert not model.progress


def test_a_fit_says_what_it_did(here):
    first, second, third = Path("stdout").read_text().splitlines()
    assert first.startswith("30 rows x 6 columns, poisson (whole numbers from 0 to")
    assert re.match(r"not converged: 50 sweeps of 2 chains in \d+ s", second)
    assert re.sub(r" \([\d.]+ [kM]B\)", "", third) == "wrote " + ", ".join(f"run/{name}" for name in (
        "model.npz", "latent.csv", "posterior.nc", "report.html", "log.json"))  # fmt: skip
    assert third.count(" kB)") + third.count(" MB)") == 5
    note, estimate, warning = Path("stderr").read_text().splitlines()
    assert estimate.startswith("rflvm: a fit of 30 x 6 cells with --features = 6 needs about 0.7")
    assert note == "rflvm: counts.csv: the first column is taken as row labels ('r0' is not a number)"
    assert warning.startswith("rflvm: warning: the draws have not settled")
    assert "Give --resume and a larger --samples" in warning


def test_the_log_has_what_it_takes_to_do_it_again(here):
    log = json.loads(Path("run/log.json").read_text())
    assert log["command"] == "rflvm fit counts.csv --out run/ --classes party"
    assert (log["status"], log["convergence"], log["resumed"]) == ("finished", "not converged", False)
    assert log["table"]["rows"] == 30
    assert log["table"]["missing"] == pytest.approx(2 / 180)
    assert log["settings"]["n_features"] == 6
    assert log["report"] == {"image_shape": None, "ordered": False}
    assert log["likelihood"]["family"] == "poisson"
    assert "times the mean" in log["likelihood"]["reason"]
    assert {"rflvm", "jax", "numpy"} <= set(log["versions"])
    assert {q["quantity"] for q in log["diagnostics"]} >= {"log joint density", "positions", "predictions"}
    assert set(log["acceptance"]) == {"W", "scale", "X", "beta"}
    assert log["ended"] == "length"
    assert sum(one["weight"] for one in log["arrangements"]) == pytest.approx(1)
    assert any("chose poisson" in note for note in log["notes"])
    assert len(log["warnings"]) == 1
    assert log["seconds"] > 0


@pytest.mark.filterwarnings("ignore")
def test_the_posterior_can_be_opened(here):
    with xarray.open_datatree("run/posterior.nc", engine="h5netcdf") as tree:
        assert tree["posterior"]["X"].shape == (2, 40, 30, 2)
        assert list(tree["posterior/row"].to_numpy()[:2]) == ["r0", "r1"]
        assert set(tree.children) == {"posterior", "sample_stats"}


@pytest.mark.filterwarnings("ignore")
def test_time_ends_a_run_that_goes_on_and_full_draws_are_written_on_request(here):
    fit = ["fit", "counts.csv", "--classes", "party", "--out", "timed", "--full-draws", "--samples", "auto"]
    invoke(*fit, "--max-time", "0.001", "--jobs", "1")
    log = json.loads(Path("timed/log.json").read_text())
    assert log["ended"] == "time"
    assert (log["settings"]["n_samples"], log["settings"]["thin"], log["settings"]["max_time"]) == ("auto", 1, 0.001)
    n_draws = rflvm.load("timed/model.npz").draws_.n_draws
    invoke(*fit[:-1], "20", "--resume")
    assert n_draws < rflvm.load("timed/model.npz").draws_.n_draws == 20
    with xarray.open_datatree("timed/posterior.nc", engine="h5netcdf") as tree:
        assert tree["log_likelihood"]["Y"].shape == (2, 20, 178)
        assert tree["coefficients"]["beta"].shape == (2, 20, 7, 6)
    refused = invoke("fit", "counts.csv", "--out", "other", "--samples", "long", code=2)
    assert "'long' is not a valid" in refused.stderr


def test_an_existing_run_is_not_overwritten(here):
    before = {name: (Path("run") / name).stat().st_mtime_ns for name in files("run")}
    result = invoke(*FIT, code=1)
    assert result.stderr == (
        "rflvm: error: run holds a run already (model.npz): give another --out, --resume to go on with it, or --force "
        "to replace it\n"
    )
    assert before == {name: (Path("run") / name).stat().st_mtime_ns for name in files("run")}


@pytest.mark.parametrize("held", ["run", "run/checkpoint"])
def test_a_folder_in_which_another_process_works_is_left_alone(here, held):
    content = lambda: {path: path.read_bytes() for path in Path("run").rglob("*") if path.is_file()}  # noqa: E731
    before = content()
    with lock.held(held):
        result = invoke(*FIT, "--force", code=1)
    assert f"rflvm: error: {held} is in use by process" in result.stderr
    assert "wait until it has ended, or give another --out" in result.stderr
    assert content() == before


def test_force_replaces_a_run_but_not_for_a_table_that_cannot_be_fitted(here):
    Path("empty.csv").touch()
    invoke("fit", "empty.csv", "--out", "run", "--force", code=1)
    assert files("run") == NAMES
    (here / "run/notes.txt").touch()
    before = arrays("run/model.npz")
    invoke(*FIT, "--force", "--seed", "1")
    assert files("run") == sorted([*NAMES, "notes.txt"])
    assert not np.array_equal(arrays("run/model.npz")["embedding_"], before["embedding_"])


def test_a_finished_run_is_made_longer_by_resuming(here):
    before = arrays("run/model.npz")["draws.X"]
    invoke(*FIT, "--resume", "--samples", "45", "--ordered")
    assert json.loads(Path("run/log.json").read_text())["report"] == {"image_shape": None, "ordered": True}
    after = arrays("run/model.npz")["draws.X"]
    assert after.shape[1] == 45
    np.testing.assert_array_equal(after[:, :40], before)
    assert json.loads(Path("run/log.json").read_text())["resumed"]


def test_resuming_another_run_or_none_is_refused(here):
    result = invoke(*FIT, "--resume", "--seed", "7", code=1)
    assert "run/checkpoint holds a run with another --seed (0, now 7): give the settings of that run" in result.stderr
    result = invoke("fit", "counts.csv", "--out", "elsewhere", "--classes", "party", "--resume", code=1)
    assert "elsewhere/checkpoint holds no run to go on with: leave out --resume" in result.stderr
    assert not Path("elsewhere").exists()


def test_what_cannot_be_made_is_left_out_with_a_word(here, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5netcdf", None)
    monkeypatch.setattr(sys.modules["rflvm.report"], "write_report", lambda *_, **__: 1 / 0)
    result = invoke(*FIT, "--resume")
    assert "posterior.nc is left out: it needs xarray and h5netcdf: pip install 'rflvm[diagnostics]'" in result.stderr
    assert "report.html is left out: division by zero" in result.stderr
    assert files("run") == ["checkpoint", "latent.csv", "log.json", "model.npz"]
    assert len(json.loads(Path("run/log.json").read_text())["warnings"]) == 3


def test_the_report_itself(here, monkeypatch):
    monkeypatch.delitem(sys.modules, "rflvm.report")
    invoke(*FIT, "--resume", "--image-shape", "2x3")
    page = Path("run/report.html").read_text()
    assert "counts.csv" in page
    assert "party" in page
    assert "Give --resume and a larger --samples" in page
    assert json.loads(Path("run/log.json").read_text())["warnings"][0].startswith("the draws have not settled")


def test_a_report_is_made_anew_from_a_model(here, monkeypatch):
    calls = []

    def write_report(model, path, **options):
        calls.append(options)
        Path(path).write_text("<html>")

    monkeypatch.setattr(sys.modules["rflvm.report"], "write_report", write_report)
    refused = invoke("report", "run", code=1)
    assert "run/report.html exists: give another --out, or --force to replace it" in refused.stderr
    assert "wrote run/report.html (1 kB)" in invoke("report", "run", "--force").stdout
    assert (calls[-1]["row_labels"], calls[-1]["colours"], calls[-1]["title"]) == (None, None, "run")
    invoke("report", "run/model.npz", "counts.csv", "--colour", "party", "--out", "page.html", "--ordered")
    assert calls[-1]["colours"] == {"party": ["D", "R"] * 15}
    assert calls[-1]["row_labels"][:2] == ["r0", "r1"]
    assert (calls[-1]["ordered"], calls[-1]["title"]) == (True, "counts.csv")
    assert Path("page.html").exists()
    refused = invoke("report", "run", "new.csv", "--out", "other.html", code=1)
    assert "new.csv has 4 rows, the model was fitted to 30: give the table of the fit" in refused.stderr
    assert "give it" in invoke("report", "run", "--colour", "party", "--out", "other.html", code=2).stderr
    assert "is 4 pixels" in invoke("report", "run", "--image-shape", "2x2", "--out", "other.html", code=2).stderr


def test_without_out_the_folder_is_named_after_the_table(here, monkeypatch):
    monkeypatch.setattr(RFLVM, "fit", lambda *_, **__: (_ for _ in ()).throw(ValueError("stop")))
    seen = []
    folder = fit.Folder
    monkeypatch.setattr(fit, "Folder", lambda path, *names, **how: seen.append(path) or folder(path, *names, **how))
    invoke("fit", "counts.csv", code=1)
    shutil.copy("counts.csv", "deep.counts.tsv")
    invoke("fit", str(here / "deep.counts.tsv"), code=1)
    assert seen == ["counts-rflvm", "deep-rflvm"]
    assert not Path("counts-rflvm").exists()


def test_a_column_of_numbers_is_a_continuous_colour(here):
    from rflvm.cli import reading
    from rflvm.cli.columns import Wanted

    Path("t.csv").write_text("a,age,day,kind\n1,0.5,1,x\n2,NA,2,NA\n3,2.5,3,y\n")
    colours = reading.read("t.csv", Wanted(classes=("age", "day", "kind"))).colours()
    np.testing.assert_array_equal(colours["age"], [0.5, np.nan, 2.5])
    assert colours["day"].dtype.kind == "i"
    assert colours["kind"] == ["x", None, "y"]


def test_quick_is_the_map_engine_without_a_checkpoint(here, monkeypatch):
    asked = []

    def fit(self, Y, *, offset, checkpoint, layer, **beside):
        asked.append((self.inference, self.kernel, checkpoint))
        raise KeyboardInterrupt

    monkeypatch.setattr("rflvm.estimator.RFLVM.fit", fit)
    result = invoke("fit", "counts.csv", "--classes", "party", "--out", "deep/quick", "--quick", code=130)
    assert asked == [("map", "learned", None)]
    assert result.stderr.splitlines()[-1] == "rflvm: interrupted: nothing was written"
    assert not Path("deep").exists()


def test_rows_of_very_unequal_counts_are_worth_a_word(tmp_path, monkeypatch):
    def fit(*args, **settings):
        raise KeyboardInterrupt

    monkeypatch.setattr("rflvm.estimator.RFLVM.fit", fit)
    monkeypatch.chdir(tmp_path)
    cells = np.random.default_rng(0).poisson(3, (40, 6)) + 1
    cells[:20] *= 50
    for name, Y in (("unequal", cells), ("equal", cells[20:]), ("real", cells + 0.5)):
        np.savetxt(f"{name}.csv", np.column_stack([np.zeros(len(Y)), Y]), delimiter=",")
    said = lambda *arguments: "times the counts" in invoke("fit", *arguments, "--out", "run", code=130).stderr  # noqa: E731
    assert said("unequal.csv", "--ignore", "1")
    assert not said("unequal.csv", "--offset", "1")
    assert not said("unequal.csv", "--ignore", "1", "--exposure", "total")
    assert (
        "leave out --offset"
        in invoke("fit", "equal.csv", "--offset", "1", "--exposure", "total", "--out", "run", code=2).stderr
    )
    assert not said("unequal.csv", "--ignore", "1", "--likelihood", "gaussian")
    assert not said("equal.csv", "--ignore", "1")
    assert not said("real.csv", "--ignore", "1")


@pytest.mark.long
def test_quick_end_to_end(here):
    result = invoke("fit", "counts.csv", "--classes", "party", "--out", "quick", "--quick", "--seed", "1")
    assert files("quick") == NAMES[1:]
    assert "iterations in" in result.stdout
    log = json.loads(Path("quick/log.json").read_text())
    assert (log["diagnostics"], log["acceptance"], log["settings"]["inference"]) == ([], {}, "map")


def test_the_readme(here, monkeypatch):
    """Every command in it, on the run that its first one has made."""
    text = (ROOT / "README.md").read_text().split("## Command line")[1].split("\n## ")[0]
    commands = [line.split("#")[0].split()[1:] for line in text.splitlines() if line.startswith("    rflvm ")]
    assert len(commands) == 7
    shutil.move("run", "other")
    write_table(here / "held-out.csv", seed=2, n=4)
    small = make_s_curve(30, 6, seed=0)
    small.data[0, 0] = np.nan
    monkeypatch.setattr("rflvm.demo.make_s_curve", lambda *_, **__: Bunch(**small))
    for name, value in {"N": 30, "J": 6, "M": 6, "N_BURNIN": 4, "N_SAMPLES": 6}.items():
        monkeypatch.setattr(f"rflvm.demo.{name}", value)
    results = {}
    for command in commands:
        more = ["--classes", "party"] if command[0] in ("fit", "transform") else []
        results[command[0]] = invoke(*command, *more)

    header, rows = table("new_latent.csv")
    assert header == ["name", "x1", "x2", "sd1", "sd2", "party"]
    assert len(rows) == 4
    header, filled = table("filled.csv")
    _, given = table("counts.csv")
    assert header == ["name", *(f"w{j}" for j in range(6))]
    assert "left out, because the model was not fitted to them: 'party'" in results["impute"].stderr
    for row, original in zip(filled, given, strict=True):
        for cell, before in zip(row[1:], original[2:], strict=True):
            assert float(cell) > 0 if before in ("", "NA") else cell == before
    header, simulated = table("simulated.csv")
    assert header == [f"w{j}" for j in range(6)]
    assert len(simulated) == 100
    assert all(cell.isdecimal() for row in simulated for cell in row)
    assert "What to do: the draws have not settled" in results["diagnose"].stdout
    assert "Give --resume and a larger --samples" in results["diagnose"].stdout
    assert results["compare"].stderr.count("is taken as row labels") == 1
    assert results["compare"].stdout.splitlines()[0] == "log predictive density of 4 held-out rows of held-out.csv"
    assert "within the noise" in results["compare"].stdout
    assert files("rflvm-demo") == ["model.npz", "report.html", "s_curve.png"]
    assert "R^2 of X after the best affine map" in results["demo"].stdout
    assert results["demo"].stdout.splitlines()[-1] == "rflvm-demo/report.html"


def test_imputing_takes_a_summary_and_says_how_many_cells_are_uncertain(here, monkeypatch):
    asked = []

    def impute(self, Y, *, summary, **options):
        asked.append(summary)
        return np.where(np.isnan(Y.to_numpy()), 1.0, Y.to_numpy())

    monkeypatch.setattr(RFLVM, "impute", impute)
    monkeypatch.setattr(RFLVM, "uncertain_cells", lambda self, Y, **options: np.zeros(Y.shape, bool))
    assert "uncertain" not in invoke("impute", "run", "counts.csv", "--out", "filled.csv").stderr
    monkeypatch.setattr(RFLVM, "uncertain_cells", lambda self, Y, **options: np.ones(Y.shape, bool))
    result = invoke("impute", "run", "counts.csv", "--out", "filled.csv", "--force", "--summary", "mean")
    assert asked == ["median", "mean"]
    gaps = sum(cell in ("", "NA") for row in table("counts.csv")[1] for cell in row[2:])
    assert f"{gaps} of the {gaps} filled cells are uncertain" in result.stderr
    assert "of them in column 'w" in result.stderr
    assert "--summary" in invoke("impute", "run", "counts.csv", "--out", "f.csv", "--summary", "mode", code=2).stderr


@pytest.mark.filterwarnings("ignore")
def test_fits_of_one_table_are_compared_by_left_out_cells(here):
    shutil.copytree("run", "copy")
    result = invoke("compare", "run", "copy")
    assert result.stdout.splitlines()[0] == "log predictive density of 178 left-out cells (PSIS-LOO)"
    first, second, difference = ([float(x) for x in line.split()[-2:]] for line in result.stdout.splitlines()[2:5])
    assert first == second
    assert difference == [0, 0]
    assert "within the noise" in result.stdout


def test_fits_of_different_tables_are_not_compared_by_left_out_cells(here, monkeypatch):
    model = rflvm.load("run/model.npz")
    about = dataclasses.replace(model.fitted_.about, values=model.fitted_.about.values + 1)
    model.fitted_ = dataclasses.replace(model.fitted_, about=about)
    monkeypatch.setattr(
        "rflvm.cli.models.load", lambda name, likelihood: {"a": rflvm.load("run/model.npz"), "b": model}[name]
    )
    result = invoke("compare", "a", "b", code=1)
    assert "the two were fitted to different tables (30 x 6 and 30 x 6)" in result.stderr
    assert "A and B are the same run" in invoke("compare", "a", "a", code=2).stderr


def test_a_difference_beyond_the_noise_is_told():
    from rflvm.cli.compare import Score, _page

    rng = np.random.default_rng(0)
    worse = rng.normal(size=100)
    better = worse + 1 + 0.1 * rng.normal(size=100)
    page = _page(Score("a/", worse), Score("b/", better))
    assert page[-1].startswith("b/ predicts better: the difference is ")
    assert _page(Score("a/", better), Score("b/", worse))[-1].startswith("a/ predicts better")
    assert "within the noise" in _page(Score("a/", worse), Score("b/", rng.permutation(worse)))[-1]


def test_outputs_are_checked_before_anything_is_computed(here, monkeypatch):
    monkeypatch.setattr("rflvm.cli.models.load", lambda name, likelihood: pytest.fail("the model was loaded"))
    Path("there.csv").write_text("precious")
    for out, message in {
        "there.csv": "there.csv exists: give another --out, or --force to replace it",
        "run": "must end in .csv or .tsv",
        "out.npy": "must end in .csv or .tsv, or be - for stdout",
        "nowhere/out.csv": "there is no folder nowhere to write it to",
    }.items():
        assert message in invoke("transform", "run", "new.csv", "--out", out, code=1).stderr
    assert Path("there.csv").read_text() == "precious"


def test_models_and_tables_that_do_not_fit_are_refused(here):
    Path("few.csv").write_text("w0,w1\n1,2\n")
    Path("other.csv").write_text("1,2\n3,4\n")
    Path("negative.csv").write_text("w0,w1,w2,w3,w4,w5\n1,2,3,4,5,6\n1,2,3,4,-5,6\n")
    Path("cut.npz").write_bytes(Path("run/model.npz").read_bytes()[:1000])
    for model, rows, message in (
        ("run", "few.csv", "few.csv has no column 'w2' (and 3 more), which the model was fitted to; its columns: 'w0'"),
        ("run", "other.csv", "other.csv has 2 columns of numbers, the model was fitted to 6"),
        ("run", "negative.csv", "negative.csv: poisson needs counts >= 0, got line 3, column 'w4' = -5"),
        ("cut.npz", "new.csv", "cut.npz is damaged or was not written by rflvm"),
        ("run/checkpoint", "new.csv", "run/checkpoint has no model.npz"),
        ("run/checkpoint/header.npz", "new.csv", "holds a checkpoint header, not a model"),
        ("counts.csv", "new.csv", "counts.csv is damaged or was not written by rflvm"),
    ):
        result = invoke("transform", model, rows, "--out", "out.csv", code=1)
        assert message in result.stderr
        assert result.stderr.count("\n") == 1
    assert not Path("out.csv").exists()


def test_an_offset_that_is_forgotten_is_warned_of(here, monkeypatch):
    model = rflvm.load("run/model.npz")
    about = dataclasses.replace(model.fitted_.about, offset=model.fitted_.about.offset + 1)
    model.fitted_ = dataclasses.replace(model.fitted_, about=about)
    monkeypatch.setattr("rflvm.cli.models.load", lambda name, likelihood: model)
    result = invoke("transform", "run", "new.csv", "--classes", "party", "--out", "-")
    assert "the model was fitted with an offset, and none is given (--offset)" in result.stderr
    assert result.stdout.startswith("name,x1,x2,sd1,sd2,party\nr0,")


# Places that cannot be written to.


def test_a_file_in_the_way_of_the_folder(here):
    Path("file").touch()
    result = invoke(*FIT[:2], *FIT[4:], "--out", "file", code=1)
    assert "--out file is a file: give the path of a folder" in result.stderr
    result = invoke(*FIT[:2], *FIT[4:], "--out", "file/run", code=1)
    assert "file/run: not a directory; a part of the path is a file, not a folder" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only(here):
    Path("locked").mkdir(mode=0o500)
    result = invoke(*FIT[:2], *FIT[4:], "--out", "locked/run", code=1)
    assert "locked/run: permission denied; choose a place that you may read and write" in result.stderr


def test_a_full_disk_leaves_the_old_files_and_no_new_ones(here, monkeypatch):
    before = {path: path.read_bytes() for path in Path("run").rglob("*.*") if path.is_file()}

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rflvm.files.npz.os.fsync", full)
    for arguments in ([*FIT, "--resume"], ["sample", "run", "--out", "simulated.csv"]):
        result = invoke(*arguments, code=1)
        last = result.stderr.splitlines()[-1]
        where = "run" if arguments[0] == "fit" else "simulated.csv"
        assert last.startswith(f"rflvm: error: {where}: no space left on device; free some space")
        assert ("--resume goes on" in last) == (arguments[0] == "fit")
    assert before == {path: path.read_bytes() for path in Path("run").rglob("*.*") if path.is_file()}
    assert not Path("simulated.csv").exists()
    assert not [name for name in [*files(), *files("run")] if name.endswith(".tmp")]


# In processes of their own.

CHILD = """
import fcntl, sys, termios, time, types
from pathlib import Path
from rflvm.sampling import chain, run
from rflvm.cli import fit, main

if sys.stdin.isatty():
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # so that Ctrl-C on the terminal is for this process

starter, advance = run._starter, chain.advance
run._starter = lambda init, *others: starter("pca", *others)

def slow(*arguments):
    time.sleep(0.03)
    return advance(*arguments)

chain.advance = slow
stub = types.ModuleType("rflvm.report")
stub.write_report = lambda model, path, **options: Path(path).write_text("<html>")
sys.modules["rflvm.report"] = stub
main(default_map={"fit": {"features": 6, "samples": 40, "burnin": 10}})
"""


def on_a_terminal(arguments: list[str], interrupt_at: bytes) -> tuple[int, str]:
    """Run a command under a pseudo-terminal and type Ctrl-C once it shows some text."""
    terminal, other_end = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
    ends: dict[str, Any] = {"stdin": other_end, "stdout": other_end, "stderr": other_end}
    process = subprocess.Popen([sys.executable, "-c", CHILD, *arguments], start_new_session=True, **ends)
    os.close(other_end)
    shown, typed, end = b"", False, time.monotonic() + 200
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 65536)
            except OSError:  # the other end is closed
                break
        if not typed and interrupt_at in shown:
            os.write(terminal, b"\x03")
            typed = True
    os.close(terminal)
    return process.wait(timeout=20), shown.decode()


def test_ctrl_c_keeps_the_draws_and_resume_goes_on_to_the_same_ones(here):
    shutil.move("run", "whole")
    code, shown = on_a_terminal(FIT, b"sampling")
    assert code == 130, shown
    assert "sweep/s" in shown
    assert "log joint" in shown
    assert "acceptance 0." in shown
    *_, last = shown.split("\r\n")[:-1]
    assert re.match(
        r"rflvm: interrupted after \d+ sweeps: run/model.npz has \d+ draws of each chain; go on with: "
        r"rflvm fit counts.csv --out run/ --classes party --resume$", last
    )  # fmt: skip
    assert "Traceback" not in shown
    assert files("run") == NAMES
    part = rflvm.load("run/model.npz")
    assert part.convergence_ == "interrupted"
    assert 0 < part.draws_.n_draws < 40
    assert json.loads(Path("run/log.json").read_text())["status"] == "interrupted"

    invoke(*FIT, "--resume")
    resumed, whole = arrays("run/model.npz"), arrays("whole/model.npz")
    assert resumed.keys() == whole.keys()
    for name in whole:
        np.testing.assert_array_equal(resumed[name], whole[name], strict=True)
    assert Path("run/latent.csv").read_text() == Path("whole/latent.csv").read_text()
    assert files("run") == NAMES


def test_a_limit_on_the_size_of_files_and_a_pipe_that_closes(here):
    """One line, no traceback and nothing left behind, from real failures of writing."""

    def bash(script: str):
        variables = {"PYTHON": sys.executable, "CHILD": CHILD}
        return subprocess.run(
            ["bash", "-c", script], env=os.environ | variables, capture_output=True, text=True, check=False, timeout=100
        )

    before = files("run")
    result = bash(f'ulimit -f 19; "$PYTHON" -c "$CHILD" {shlex.join(FIT)} --resume')
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert "run: file too large; the disk or a limit allows no larger file: write elsewhere; the draws so far" in last
    assert files("run") == before

    result = bash('"$PYTHON" -c "$CHILD" datasets list | true; echo ${PIPESTATUS[0]}')
    assert (result.stdout, result.stderr) == ("1\n", "")
    result = bash('"$PYTHON" -c "$CHILD" datasets list > /dev/full')
    assert (result.returncode, result.stderr.count("\n")) == (1, 1)
    assert "no space left on device" in result.stderr
