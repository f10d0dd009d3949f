"""``rflvm reproduce``, with an experiment that costs nothing."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from rflvm.cli import reproduce as command
from rflvm.cli.program import program
from rflvm.experiments import reproduce, table


@pytest.fixture
def cheap(monkeypatch):
    """Table 1 of one data set and two methods."""
    calls: list[str] = []

    def fit(dataset, method, runs, quick):
        calls.append(method)
        return {"dataset": dataset, "method": method, "runs": list(runs), "accuracy": [0.5] * len(runs)}, {}

    every = table.tasks
    monkeypatch.setattr(table, "fit", fit)
    monkeypatch.setattr(
        table, "tasks", lambda quick: [task for task in every(quick) if task.group in ("spam-pca", "spam-tsne")]
    )
    return calls


def test_the_command_lists_what_there_is():
    assert command.EXPERIMENTS == reproduce.EXPERIMENTS


def test_a_table_is_written_and_its_fits_are_kept(cheap, tmp_path):
    result = CliRunner().invoke(program, ["reproduce", "table", "--quick", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.stderr
    assert "rflvm: 1 of 2: spam-pca-0" in result.stderr
    assert (tmp_path / "table.md").read_text("utf-8").count("| Spam | **0.5000** |") == 2
    written = json.loads((tmp_path / "table.json").read_text())
    assert [cell["method"] for cell in written["cells"]] == ["pca", "tsne"]
    assert written["seconds_of_all_fits"] == 0
    assert CliRunner().invoke(program, ["reproduce", "table", "--quick", "--out", str(tmp_path)]).exit_code == 0
    assert cheap == ["pca", "tsne"]


def test_an_interruption_says_how_to_go_on(monkeypatch, tmp_path):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(reproduce, "reproduce", stop)
    result = CliRunner().invoke(program, ["reproduce", "table", "--out", str(tmp_path)])
    assert result.exit_code == 130
    assert "the same command goes on" in result.stderr


@pytest.mark.parametrize(("seconds", "text"), [(None, ""), (30.0, ", about 30 s left"), (600.0, ", about 10 min left")])
def test_time_left_is_for_a_person(seconds, text):
    assert command.time_left(seconds) == text
