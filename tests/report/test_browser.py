"""The explorer in a real browser: Debian's chromium, driven through its WebDriver, from a file."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, stats
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.actions.action_builder import ActionBuilder
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.select import Select

import small_models
from rflvm import RFLVM
from rflvm.fitted.summaries import members_in_units, typical_trials
from rflvm.report import page, write_report

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    BROWSER is None or DRIVER is None, reason="no browser: apt-get install chromium chromium-driver"
)
FLAGS = (
    "headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
    "disable-component-update", "disable-sync", "window-size=1300,1000",
)  # fmt: skip
FAMILIES = (
    "gaussian", "multinomial", "negative_binomial", "bernoulli", "binomial", "student_t", "ordinal",
    "zero_inflated_poisson", "zero_inflated_negative_binomial",
)  # fmt: skip


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for flag in (*FLAGS, f"user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(DRIVER))
    yield browser
    browser.quit()


class Page:
    """A report that is open."""

    def __init__(self, driver: Any, path: Path):
        self.driver = driver
        driver.get_log("performance")
        driver.get(path.as_uri())
        self.wait(lambda: self.run("return !!window.rflvm"))
        self.map = self("map")

    def __call__(self, name: str) -> Any:
        return self.driver.find_element(By.ID, name)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def wait(self, condition: Callable[[], Any]) -> None:
        until = time.monotonic() + 10
        while not condition():
            assert time.monotonic() < until, "the page did not come to it in ten seconds"
            time.sleep(0.02)

    def settle(self) -> dict[str, Any]:
        """What is shown once the next two frames are drawn."""
        self.driver.execute_async_script(
            "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()))"
        )
        return self.run("return rflvm.current()")

    def move(self, px: float, py: float) -> ActionChains:
        """The pointer to a place of the plane, in pixels from its upper left corner."""
        box = self.map.rect
        return ActionChains(self.driver, duration=0).move_to_element_with_offset(
            self.map, round(px - box["width"] / 2), round(py - box["height"] / 2)
        )

    def click(self, row: int) -> dict[str, Any]:
        self.move(*self.run("return rflvm.screen(arguments[0])", row)).click().perform()
        return self.settle()

    def keys(self, *keys: str) -> dict[str, Any]:
        self.map.send_keys(*keys)
        return self.settle()

    def problems(self) -> list[Any]:
        """Messages in the console and requests for anything but the file itself."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        asked = [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]
        asked = [url for url in asked if not url.startswith(("file:", "data:"))]
        return asked + self.driver.get_log("browser")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Reports without figures, which have tests of their own."""
    folder = tmp_path_factory.mktemp("reports")
    colours = {
        small_models.HOSTILE: [small_models.HOSTILE, "b"] * (small_models.N // 2),
        "time": np.arange(small_models.N) / 2,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "draw", lambda *args: [])
        write_report(small_models.poisson(), folder / "bars.html", colours=colours, title="Counts")
        write_report(small_models.poisson(), folder / "image.html", image_shape=(4, 5))
        write_report(small_models.poisson(), folder / "curve.html", ordered=True)
        for name in FAMILIES:
            write_report(small_models.small(name), folder / f"{name}.html")
    return folder


@pytest.fixture
def bars(driver, folder):
    opened = Page(driver, folder / "bars.html")
    yield opened
    assert opened.problems() == []


@pytest.fixture
def curve(driver, folder):
    opened = Page(driver, folder / "curve.html")
    yield opened
    assert opened.problems() == []


def close(found: Any, expected: np.ndarray) -> None:
    scale = np.abs(expected).max()
    np.testing.assert_allclose(found, np.ravel(expected), rtol=1e-6, atol=1e-9 * scale)


def test_the_pointer_decodes_where_it_is(bars):
    model = small_models.poisson()
    for place in ((120, 150), (310, 240), (400, 90)):
        bars.move(*place).perform()
        shown = bars.settle()
        assert shown["mode"] == "free"
        close(shown["expected"], model.inverse_transform([shown["x"]]))
    first = bars("bars").find_element(By.CSS_SELECTOR, "li .number").text
    top = bars.run("return JSON.parse(document.getElementById('header').textContent).order[0]")
    assert float(first.replace(",", "")) == pytest.approx(shown["expected"][top], rel=5e-3)


def test_a_click_shows_the_row_beside_the_model(bars):
    model = small_models.poisson()
    shown = bars.click(7)
    assert (shown["a"], shown["mode"]) == (7, "row")
    close(shown["expected"], model.inverse_transform(model.embedding_[7:8]))
    assert bars("where").text == "day 7"
    assert len(bars("bars").find_elements(By.CSS_SELECTOR, ".seen:not([hidden]):not(.second)")) == 18
    bars.click(0)  # which has a missing cell, in the column that is called gene 1
    bars("find").send_keys("gene 1")
    bars.settle()
    lines = bars("bars").find_elements(By.TAG_NAME, "li")
    names = [line.find_element(By.CLASS_NAME, "name").text for line in lines]
    assert sorted(names) == sorted(f"gene {j}" for j in (1, *range(10, 20)))
    seen = [len(line.find_elements(By.CSS_SELECTOR, ".seen:not([hidden])")) for line in lines]
    assert seen == [int(name != "gene 1") for name in names]
    assert bars("found").text == "11 found"


def test_columns_that_are_high_or_low_come_first(bars):
    model = small_models.poisson()
    bars.wait(lambda: bars("found").text == "18 of 20")
    bars.click(7)
    E = model.inverse_transform(model.embedding_)
    all_names = np.array([small_models.HOSTILE, *(f"gene {j}" for j in range(1, small_models.J))])
    for choice, sign in (("high", -1), ("low", 1)):
        Select(bars("order")).select_by_value(choice)
        shown = bars.settle()
        above = (shown["expected"] - E.mean(axis=0)) / E.std(axis=0)
        names = [name.text for name in bars("bars").find_elements(By.CLASS_NAME, "name")]
        assert names == all_names[np.argsort(sign * above)[:18]].tolist()


def test_a_path_is_played_and_set(bars):
    model = small_models.poisson()
    bars.click(7)
    bars("join").click()
    shown = bars.click(20)
    assert (shown["a"], shown["b"], shown["mode"], shown["t"]) == (7, 20, "path", 0)
    bars("play").click()
    bars.wait(lambda: bars.run("return rflvm.current().t") > 0.05)
    assert bars("play").text == "Pause"
    bars("play").click()
    shown = bars.settle()
    assert 0 < shown["t"] < 1
    bars.run("const s = document.getElementById('along'); s.value = 250; s.dispatchEvent(new Event('input'))")
    shown = bars.settle()
    x = 0.75 * model.embedding_[7] + 0.25 * model.embedding_[20]
    np.testing.assert_allclose(shown["x"], x)
    close(shown["expected"], model.inverse_transform(x[None]))
    assert bars("where").text == "25 % of the way from day 7 to day 20"
    bars("clear").click()
    assert bars.settle()["a"] == -1


def test_everything_works_from_the_keyboard(bars):
    before = bars.settle()["x"]
    right = bars.keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)["x"]
    up = bars.keys(Keys.ARROW_UP)["x"]
    assert right[0] > before[0]
    assert up[1] > right[1]
    a, b = bars.run("return [rflvm.screen(3), rflvm.screen(4)]")
    bars.keys("+", "+")
    c, d = bars.run("return [rflvm.screen(3), rflvm.screen(4)]")
    assert np.hypot(c[0] - d[0], c[1] - d[1]) == pytest.approx(1.69 * np.hypot(a[0] - b[0], a[1] - b[1]))
    bars.keys("-", "0")
    assert bars.run("return rflvm.screen(3)") == pytest.approx(a)
    assert bars.keys("n")["hover"] == 0
    assert bars.keys("n", "n")["hover"] == 2
    assert bars.keys("p")["hover"] == 1
    assert bars.keys(Keys.ENTER)["a"] == 1
    shown = bars.keys("j", "n", "n", Keys.ENTER)
    assert (shown["a"], shown["b"]) == (1, 3)
    assert bars.keys(" ")["playing"]
    bars.wait(lambda: bars.run("return rflvm.current().t") > 0.02)
    assert not bars.keys(" ")["playing"]
    assert bars.keys(Keys.ESCAPE)["a"] == -1


def test_wheel_drag_and_buttons_move_the_view(bars):
    where = lambda: np.array(bars.run("return rflvm.screen(3)"))  # noqa: E731
    start = where()
    bars.move(200, 200).click_and_hold().perform()
    bars.move(240, 230).release().perform()
    bars.settle()
    np.testing.assert_allclose(where() - start, [40, 30], atol=1.5)
    ActionChains(bars.driver).scroll_from_origin(ScrollOrigin.from_element(bars.map), 0, -200).perform()
    bars.settle()
    assert np.abs(where() - start - [40, 30]).max() > 2
    bars("zoom-reset").click()
    bars.settle()
    np.testing.assert_allclose(where(), start)
    bars("zoom-in").click()
    bars("zoom-out").click()
    bars.settle()
    np.testing.assert_allclose(where(), start)


def test_a_pinch_zooms_about_what_is_between_the_fingers(bars):
    """Fingers 80 pixels apart are drawn 200 pixels apart, then moved together."""
    screen = lambda: np.array(bars.run("return [rflvm.screen(3), rflvm.screen(40)]"))  # noqa: E731
    before, middle = screen(), np.array([260, 180])
    box = bars.run("const b = document.getElementById('map').getBoundingClientRect(); return [b.left, b.top]")
    touch = ActionBuilder(bars.driver, duration=0)
    fingers = [touch.add_pointer_input("touch", f"finger {side}") for side in (-1, 1)]
    for i, (apart, shift) in enumerate([(80, 0), (110, 0), (150, 0), (200, 0), (200, 30)]):
        for side, finger in zip((-1, 1), fingers, strict=True):
            x, y = box + middle + [side * apart / 2 + shift, shift]
            finger.create_pointer_move(0, round(x), round(y))
            if i == 0:
                finger.create_pointer_down(button=0)
    for finger in fingers:
        finger.create_pointer_up(button=0)
    touch.perform()
    assert bars.settle()["a"] == -1  # nothing was selected
    np.testing.assert_allclose(screen(), middle + 30 + 2.5 * (before - middle), atol=2.5)


def test_labels_are_shown_as_text(bars):
    assert bars.driver.title == "Counts"
    bars.click(0)
    assert bars("where").text == small_models.HOSTILE
    assert bars("end-a").text == small_models.HOSTILE
    assert small_models.HOSTILE in bars("legend").text
    assert bars("colour").text.split("\n")[0].strip() == small_models.HOSTILE
    assert not bars.driver.find_elements(By.CSS_SELECTOR, "#stage script")


def test_colours_themes_and_names_for_screen_readers(bars):
    ground = lambda: bars.run("return getComputedStyle(document.body).backgroundColor")  # noqa: E731
    before = ground()
    bars("theme").click()
    assert ground() != before
    Select(bars("colour")).select_by_visible_text("time")
    bars.settle()
    assert bars("legend").text.startswith("time: 0")
    bars("ellipses").click()
    bars.settle()
    unnamed = bars.run(
        "return [...document.querySelectorAll('button, input, select, canvas[tabindex], [role=img]')]"
        ".filter(e => !(e.ariaLabel || e.textContent.trim() || e.labels?.length)).map(e => e.outerHTML)"
    )
    assert unnamed == []


def test_images_are_decoded_with_their_quantiles(driver, folder):
    opened = Page(driver, folder / "image.html")
    shown = opened.click(7)
    pixels = lambda name: opened.run(  # noqa: E731
        "const c = document.getElementById(arguments[0]);"
        "return [...c.getContext('2d').getImageData(0, 0, c.width, c.height).data].filter((v, i) => i % 4 === 0)",
        name,
    )
    Y = small_models.poisson().fitted_.about.values
    grey = lambda values: np.clip(np.round(255 * np.asarray(values) / np.nanmax(Y)), 0, 255)  # noqa: E731
    np.testing.assert_allclose(pixels("image-a"), grey(Y[7]), atol=1)
    np.testing.assert_allclose(pixels("image-mean"), grey(shown["expected"]), atol=1)
    opened.wait(lambda: "stale" not in opened("image-high").get_attribute("class"))
    assert (np.asarray(pixels("image-low")) <= pixels("image-high")).all()
    assert opened.problems() == []


def test_columns_in_order_are_a_curve(curve):
    model = small_models.poisson()
    curve.move(310, 240).perform()
    shown = curve.settle()
    close(shown["expected"], model.inverse_transform([shown["x"]]))
    shown = curve.click(0)  # which has a missing cell in column 1
    close(shown["expected"], model.inverse_transform(model.embedding_[:1]))
    drawn = lambda name: np.array(  # noqa: E731
        [
            [float(number) for number in spot.split()]
            for spot in re.findall(r"[\d.-]+ [\d.-]+", curve(name).get_attribute("d"))
        ]
    )
    mean, seen = drawn("mean"), drawn("seen-a")
    assert len(mean) == small_models.J
    np.testing.assert_allclose(np.delete(mean[:, 0], 1), seen[:, 0])  # a gap, and one scale from left to right
    assert np.ptp(np.diff(mean[:, 0])) < 0.3
    slope, start = np.polyfit(np.delete(model.fitted_.about.values[0], 1), seen[:, 1], 1)
    np.testing.assert_allclose(mean[:, 1], start + slope * np.array(shown["expected"]), atol=0.3)
    band = drawn("band").reshape(2, small_models.J, 2)
    assert (band[0, :, 1] <= band[1, ::-1, 1]).all()
    assert not curve("seen-b").get_attribute("d")
    assert not curve("listing").is_displayed()


def test_a_column_of_the_curve_is_read_by_pointer_and_keyboard(curve):
    model = small_models.poisson()
    shown = curve.click(0)
    text = lambda: f"{curve('reading-name').text}: {curve('reading').text}"  # noqa: E731
    curve("curve").send_keys(Keys.HOME)
    assert text().startswith(f"{small_models.HOSTILE}: model ")
    assert small_models.HOSTILE[:17] + "…" in curve("drawing").text
    assert not curve.driver.find_elements(By.CSS_SELECTOR, "#stage script")
    curve("curve").send_keys(Keys.ARROW_RIGHT)
    assert text().startswith("gene 1: model ")
    assert text().endswith(", observed missing")
    curve("curve").send_keys(Keys.END, Keys.ARROW_RIGHT, Keys.ARROW_LEFT)
    ends = curve.run("return rflvm.decode(arguments[0], 0, [18])", shown["x"])["interval"][0]
    expected, observed = shown["expected"][18], model.fitted_.about.values[0, 18]
    assert text() == (f"gene 18: model {expected:.3g}, 90 % interval {ends[0]} to {ends[1]}, observed {observed:g}")
    assert curve("curve").get_attribute("aria-valuetext") == text()
    assert curve("curve").get_attribute("aria-valuenow") == "19"
    width = curve("inside").rect["width"]
    ActionChains(curve.driver, duration=0).move_to_element_with_offset(curve("inside"), width // 2 - 6, 0).perform()
    assert curve("reading-name").text == "gene 19"
    curve("join").click()
    curve.click(20)
    assert curve("reading").text.endswith(f", second row {model.fitted_.about.values[20, 19]:g}")
    assert curve("key-b").is_displayed()


def test_slow_intervals_of_a_curve_wait_until_the_pointer_rests(curve):
    curve.run(
        "const now = performance.now.bind(performance); let late = 0; performance.now = () => now() + (late += 5)"
    )
    band = lambda: curve("band").get_attribute("d")  # noqa: E731
    curve.click(3)
    curve.click(7)
    assert not band()
    curve.wait(band)
    levels = lambda: curve("drawing").text.split("\n")  # noqa: E731
    before = levels()
    curve("closer").click()
    curve.wait(lambda: levels() != before)
    curve("closer").click()
    curve.wait(lambda: levels() == before)


def test_of_three_dimensions_two_are_chosen(driver, folder):
    """The third has the value of the selected row."""
    model = small_models.small("multinomial")
    opened = Page(driver, folder / "multinomial.html")
    Select(opened("axis-y")).select_by_value("2")
    opened.settle()
    opened.click(2)
    opened.move(200, 200).perform()
    shown = opened.settle()
    assert (shown["mode"], shown["a"]) == ("free", 2)
    assert shown["x"][1] == model.embedding_[2, 1]
    assert model.fitted_.totals is not None
    close(
        shown["expected"],
        model.inverse_transform([shown["x"]]) * model.fitted_.totals[2] / np.nanmean(model.fitted_.totals),
    )
    Select(opened("axis-x")).select_by_value("2")
    assert opened.run("return document.getElementById('axis-y').value") == "0"  # they change places
    assert opened.problems() == []


def test_one_dimension_is_a_strip(driver, folder):
    model = small_models.small("gaussian")
    opened = Page(driver, folder / "gaussian.html")
    opened.move(200, 60).perform()
    first = opened.settle()["x"]
    opened.move(200, 160).perform()
    assert opened.settle()["x"] == first
    shown = opened.keys(Keys.ARROW_RIGHT)
    assert len(shown["x"]) == 1
    assert shown["x"] > first
    close(shown["expected"], model.inverse_transform([shown["x"]]))
    assert opened.click(4)["a"] == 4
    assert opened.problems() == []


@pytest.mark.parametrize("name", ["poisson", *FAMILIES])
def test_the_browser_agrees_with_the_library(driver, folder, name):
    """Means with ``inverse_transform``, with and without the context of a row; quantiles with SciPy's distributions."""
    model = small_models.poisson() if name == "poisson" else small_models.small(name)
    opened = Page(driver, folder / ("bars.html" if name == "poisson" else f"{name}.html"))
    rng = np.random.default_rng(0)
    usual = typical_trials(model.fitted_)
    J = model.n_features_in_
    for row in (-1, 3, 5, 8):
        x = rng.normal(size=model.n_components)
        offset, trials, total = None, usual, None
        if row >= 0:
            offset = model.fitted_.about.offset[row : row + 1]
            trials = None if usual is None else model.likelihood_.trials[row]  # pyright: ignore[reportAttributeAccessIssue]
        expected = model.inverse_transform([x], offset=offset, trials=trials)[0]
        if model.fitted_.totals is not None:
            total = np.nanmean(model.fitted_.totals) if row < 0 else model.fitted_.totals[row]
            expected *= total / np.nanmean(model.fitted_.totals)
        found = opened.run("return rflvm.decode(...arguments)", x.tolist(), row, list(range(J)))
        close(found["expected"], expected)
        for j in range(J):
            cdf = mixture(model, x, j, 0.0 if offset is None else float(offset[0]), trials, total)
            for p, value in zip((0.05, 0.95), found["interval"][j], strict=True):
                if name in ("gaussian", "student_t"):
                    assert value == pytest.approx(optimize.brentq(lambda y, p=p: cdf(y) - p, -999, 999), abs=1e-5)  # noqa: B023
                else:
                    assert cdf(value) >= p - 1e-9
                    assert value == 0 or cdf(value - 1) < p + 1e-9
    assert opened.problems() == []


def mixture(model: RFLVM, x: np.ndarray, j: int, offset: float, trials: Any, total: Any) -> Callable[[float], float]:
    """P(y_j <= y | x), the mean over members of the family's distribution function."""
    members, name = members_in_units(model.fitted_), model.likelihood_.name
    angles = members.W @ x
    H = angles.shape[1]
    phi = np.concatenate([np.cos(angles), np.sin(angles), np.full((len(angles), 1), np.sqrt(H))], axis=1) / np.sqrt(H)
    f = np.clip(np.einsum("sm,smj->sj", phi, members.beta), members.lowest, members.highest) + offset
    theta = {key: value[..., j] for key, value in members.theta.items() if value.ndim > 1}
    if name == "gaussian":
        law = stats.norm(f[:, j], np.sqrt(theta["sigma2"]))
    elif name == "student_t":
        law = stats.t(theta["nu"], f[:, j], np.sqrt(theta["sigma2"]))
    elif name == "ordinal":
        cuts = np.pad(np.cumsum(theta["gaps"], axis=1), ((0, 0), (1, 1)))
        cuts[:, -1] = np.inf
        low = model.likelihood_.low  # pyright: ignore[reportAttributeAccessIssue]
        return lambda y: 0.0 if y < low else float(np.mean(1 / (1 + np.exp(f[:, j] - cuts[:, int(y) - low]))))
    elif name == "zero_inflated_poisson":
        law = stats.poisson(np.exp(f[:, j]))
    elif name == "zero_inflated_negative_binomial":
        law = stats.nbinom(theta["r"], 1 / (1 + np.exp(f[:, j])))
    elif name == "poisson":
        law = stats.poisson(np.exp(f[:, j]))
    elif name == "negative_binomial":
        law = stats.nbinom(theta["r"], 1 / (1 + np.exp(f[:, j])))
    elif name in ("bernoulli", "binomial"):
        law = stats.binom(1 if trials is None else trials[j], 1 / (1 + np.exp(-f[:, j])))
    else:
        stay = 1 / (1 + np.exp(f))
        here = np.append(1 - stay, np.ones((len(stay), 1)), axis=1)  # the last category takes what is left
        law = stats.binom(round(total), np.prod(stay[:, :j], axis=1) * here[:, j])
    odds = theta.get("odds", 0.0)
    return lambda y: float(np.mean((law.cdf(y) + odds * (y >= 0)) / (1 + odds)))
