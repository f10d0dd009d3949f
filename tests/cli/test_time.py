"""Times and sessions on the command line."""

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
from rflvm.cli.reading import read

from .conftest import SHORT


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["when,day,a,b,c,d"]
    for n in range(24):
        cells = ["", "", "", ""] if n == 5 else [str(v) for v in rng.poisson(3 + 2 * np.sin(n / 4 + np.arange(4)))]
        lines.append(",".join([f"{n * 0.25:g}", "mon" if n < 14 else "tue", *cells]))
    Path("spikes.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def invoke(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(main, list(arguments), default_map=SHORT)
    assert result.exit_code == code, result.output
    return result


def test_a_fit_over_time_end_to_end(here):
    time = ["--time", "when", "--session", "day"]
    invoke("fit", "spikes.csv", "--out", "run", "--quick", "--likelihood", "poisson", "--dynamics", "matern32", *time)
    timeline = rflvm.load("run/model.npz").fitted_.about.timeline
    assert timeline is not None
    assert timeline.labels == ("mon", "tue")
    np.testing.assert_allclose(timeline.gap[1:5], 0.25)
    assert json.loads(Path("run/log.json").read_text())["settings"]["dynamics"] == "matern32"
    invoke("transform", "run", "spikes.csv", "--out", "latent.csv", *time)
    invoke("impute", "run", "spikes.csv", "--out", "filled.csv", *time)
    assert len(Path("filled.csv").read_text().splitlines()) == 25
    refused = invoke("fit", "spikes.csv", "--out", "other", "--quick", *time, code=1)
    assert "--time needs a prior over time" in refused.output
    assert "give --dynamics matern32" in refused.output


def test_dates_are_times_and_other_text_is_not(here):
    Path("dates.csv").write_text("when,a,b\n2024-01-01,1,2\n2024-01-03,3,4\n", encoding="utf-8")
    table = read("dates.csv", Wanted(time="when"))
    assert table.times is not None
    assert table.times[1] - table.times[0] == np.timedelta64(2, "D")
    assert table.columns == ("a", "b")
    assert read("spikes.csv", Wanted(session="day", classes=("day",))).classes.keys() == {"day"}
    with pytest.raises(rflvm.FileError, match="neither numbers nor dates"):
        read("spikes.csv", Wanted(time="day"))
