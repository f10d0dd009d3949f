"""The page on its own: safe, whole, self-contained, in plain words; what it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import small_models
from rflvm import plots
from rflvm.report import page, payload, write_report

KINDS = {"f8": np.float64, "f4": np.float32, "i4": np.int32, "u2": np.uint16}


@pytest.fixture
def _bare(monkeypatch):
    """Reports without figures."""
    monkeypatch.setattr(page, "draw", lambda *args: [])


@pytest.fixture
def _quick(monkeypatch):
    """The one figure that takes seconds has a test of its own."""
    monkeypatch.setattr(plots, "predictions", lambda model, ax: ax.set_xlabel("predicted"))


bare, quick = pytest.mark.usefixtures("_bare"), pytest.mark.usefixtures("_quick")


class Reader(HTMLParser):
    """Elements with their attributes, scripts by id, and all text that a reader sees."""

    def __init__(self, text: str):
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.sources: dict[str, str] = {}
        self.text = ""
        self._within = ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self._within = dict(attrs).get("id") or tag

    def handle_endtag(self, tag):
        self._within = ""

    def handle_data(self, data):
        if self._within:
            self.sources[self._within] = self.sources.get(self._within, "") + data
        else:
            self.text += data


def read(path) -> Reader:
    return Reader(path.read_text(encoding="utf-8"))


def arrays_of(reader: Reader) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    header = json.loads(reader.sources["header"])
    block = zlib.decompress(base64.b64decode(reader.sources["block"]))
    arrays = {
        name: np.frombuffer(block, KINDS[about["type"]], int(np.prod(about["shape"])), about["at"]).reshape(
            about["shape"]
        )
        for name, about in header["arrays"].items()
    }
    return header, arrays


@quick
def test_labels_are_text_wherever_they_stand(tmp_path):
    colours = {small_models.HOSTILE: [small_models.HOSTILE] * small_models.N, "time": np.arange(small_models.N) / 2}
    path = write_report(small_models.poisson(), tmp_path / "report.html", colours=colours, title=small_models.HOSTILE)
    reader = read(path)
    assert [tag for tag, _ in reader.elements].count("script") == 3
    header = json.loads(reader.sources["header"])
    assert header["rows"][0] == header["columns"][0] == header["colours"][0]["name"] == small_models.HOSTILE
    assert header["colours"][0]["classes"] == [small_models.HOSTILE]
    assert small_models.HOSTILE in reader.text


def test_rows_on_which_chains_do_not_agree_are_in_the_payload():
    model = small_models.disagreeing(3, 5)
    built = payload.build(model.fitted_, [str(n) for n in range(12)], {}, None, False, np.zeros(12, bool))
    assert json.loads(built.header)["unsettled"] == [3, 5]


@bare
def test_nothing_comes_from_elsewhere(tmp_path):
    reader = read(write_report(small_models.poisson(), tmp_path / "report.html"))
    for _, attributes in reader.elements:
        for name in ("src", "href"):
            assert (attributes.get(name) or "#").startswith(("data:", "#"))
        assert not any(name.startswith("on") or name == "style" for name in attributes)
    policy = next(a["content"] for _, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; img-src data:;")
    for name in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(reader.sources[name].encode()).digest()).decode()
        assert f"{name}-src 'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?://|@import|url\(", reader.sources["script"] + reader.sources["style"])


@bare
def test_coefficients_are_kept_to_nine_digits(tmp_path):
    model = small_models.poisson()
    header, arrays = arrays_of(read(write_report(model, tmp_path / "report.html")))
    beta = model.fitted_.members.beta
    np.testing.assert_allclose(arrays["beta"] * arrays["step"], beta[:, :-1], atol=2.0**-31 * np.abs(beta).max())
    np.testing.assert_array_equal(arrays["bias"], beta[:, -1])
    np.testing.assert_array_equal(arrays["X"], model.embedding_)
    assert len(arrays["W"]) == 1  # the same for all members
    assert arrays["observed"][0, 1] == header["missing"]
    assert (arrays["observed"].ravel()[2:] == model.fitted_.about.values.ravel()[2:]).all()


@bare
def test_rows_with_two_modes_are_marked(tmp_path, monkeypatch):
    model = small_models.poisson()
    plain = read(write_report(model, tmp_path / "report.html"))
    assert json.loads(plain.sources["header"])["ambiguous"] == []
    monkeypatch.setattr("rflvm.report.page.two_modes", lambda fitted: np.arange(small_models.N) % 30 == 3)
    marked = read(write_report(model, tmp_path / "report.html", ambiguous=True))
    assert json.loads(marked.sources["header"])["ambiguous"] == [3, 33]
    assert "2 rows have two places in the picture" in marked.text
    assert "two places in the picture" not in plain.text


@bare
def test_the_words_are_those_of_diagnose(tmp_path, capsys):
    for model, words in ((small_models.poisson(), "Fitted by maximisation"), (small_models.chains(), "R-hat compares")):
        text = read(write_report(model, tmp_path / "report.html")).text
        advice = model.diagnose().splitlines()[-1]
        assert advice in text
        assert words in text
    assert "kernel between rows" in text
    assert "2, with 4 sweeps of burn-in and 6 after it" in text
    assert capsys.readouterr().out.count("likelihood") == 2  # diagnose itself; a report prints nothing


@quick
def test_figures_are_drawn_for_light_and_dark(tmp_path):
    reader = read(write_report(small_models.chains(), tmp_path / "report.html", image_shape=(1, 5)))
    images = [attributes for tag, attributes in reader.elements if tag == "img"]
    titles = "Rows in latent space", "Density", "Images", "Observed", "Log joint", "Ranks", "Kernel", "Spectral"
    assert [sum((a["alt"] or "").startswith(title) for a in images) for title in titles] == [2] * len(titles)
    assert {a["class"] for a in images} == {"on-light", "on-dark"}
    assert len({a["src"] for a in images}) == len(images)


def test_a_figure_that_fails_does_not_take_the_report_with_it(tmp_path, monkeypatch):
    def fail(model, ax):
        raise ValueError("row 3 is impossible")

    monkeypatch.setattr(plots, "predictions", fail)
    text = read(write_report(small_models.chains(), tmp_path / "report.html")).text
    assert "This figure could not be drawn: row 3 is impossible." in text


@bare
def test_a_large_table_is_shown_in_part(tmp_path, monkeypatch):
    monkeypatch.setattr(payload, "MOST_ROWS", 10)
    monkeypatch.setattr(payload, "MOST_COLUMNS", 5)
    reader = read(write_report(small_models.poisson(), tmp_path / "report.html"))
    assert "10 of 60 rows, chosen at random and the 5 of 20 columns that vary most" in reader.text
    header, arrays = arrays_of(reader)
    assert len(header["rows"]) == len(arrays["X"]) == 10
    assert arrays["beta"].shape == (16, 20, 5)
    assert sorted(header["order"]) == list(range(5))
    whole = read(write_report(small_models.poisson(), tmp_path / "report.html", image_shape=(4, 5)))
    assert arrays_of(whole)[1]["beta"].shape == (16, 20, 20)
    curve = read(write_report(small_models.poisson(), tmp_path / "report.html", ordered=True))
    assert "10 of 60 rows, chosen at random and 5 of 20 columns, evenly spaced" in curve.text
    assert json.loads(curve.sources["header"])["columns"][1:] == [f"gene {j}" for j in (5, 10, 14, 19)]


@bare
def test_a_report_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("the old one")

    def fail(*args):
        raise OSError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OSError, match="full"):
            write_report(small_models.chains(), path)
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "the old one"
    assert write_report(small_models.chains(), str(path)) == path
    again = path.read_bytes()
    write_report(small_models.chains(), path)
    assert path.read_bytes() == again


def test_bad_input_is_refused(tmp_path):
    path = tmp_path / "report.html"
    model = small_models.chains()
    cases: list[tuple[dict[str, Any], str]] = [
        ({"row_labels": ["a"]}, "row_labels must be 12 labels"),
        ({"colours": {"kind": [1, 2]}}, "one value per row, 12 of them"),
        ({"image_shape": (2, 3)}, "with a product of 5"),
        ({"image_shape": (1, 5), "ordered": True}, "ordered=True draws rows as curves and image_shape as images"),
    ]
    for settings, match in cases:
        with pytest.raises(ValueError, match=match):
            write_report(model, path, **settings)
    assert not path.exists()
