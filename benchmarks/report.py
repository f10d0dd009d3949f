"""The report of MNIST (1000 x 784, Poisson): size of the file, time and precision of what the browser decodes.

    RFLVM_DATA=folder python benchmarks/report.py [model.npz]

The model is fitted, or read from a file that ``RFLVM.save`` wrote. Chromium opens the report and decodes the positions
of 20 rows and 20 positions drawn from a Gaussian of deviation 1.5, which are compared with ``inverse_transform``. The
time of a decoding is the mean of 50; the time of a frame, everything that is done after the pointer has moved, is that
of 60 moves. Needs selenium, chromium and chromedriver. Writes benchmarks/results/report.json.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path

import common
import numpy as np
from selenium import webdriver
from sklearn.exceptions import ConvergenceWarning

import rflvm
from rflvm import RFLVM
from rflvm.datasets import load_mnist
from rflvm.report import write_report

FLAGS = ("headless", "no-sandbox", "disable-gpu", "no-first-run", "disable-background-networking", "disable-sync")
FRAMES = """
const done = arguments[0], map = document.getElementById("map"), box = map.getBoundingClientRect();
const next = window.requestAnimationFrame, times = [];
window.requestAnimationFrame = (draw) => next((now) => {
  const start = performance.now();
  draw(now);
  times.push(performance.now() - start);
});
let i = 0;
const move = () => {
  if (i++ === 60) { done(times); return; }
  const place = { clientX: box.left + 100 + 5 * i, clientY: box.top + 100 + 3 * i, pointerId: 1 };
  map.dispatchEvent(new PointerEvent("pointermove", place));
  setTimeout(move, 40);
};
move();
"""


def main() -> None:
    """Write the report, open it, measure."""
    data = load_mnist()
    if len(sys.argv) > 1:
        model = rflvm.load(sys.argv[1])
    else:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = RFLVM(likelihood="poisson", inference="map", kernel="rbf", random_state=0).fit(data.data)
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        path = write_report(
            model, Path(folder) / "report.html", colours={"digit": data.target}, image_shape=data.images_shape
        )
        row = {"MB": round(path.stat().st_size / 1e6, 2), "seconds_to_write": round(time.perf_counter() - start, 1)}
        row |= {"max_abs_beta": round(float(np.abs(model.fitted_.members.beta).max()), 1)} | in_browser(
            model, path, folder
        )
    print(row)
    common.write("report", {"machine": common.machine(), **row})


def in_browser(model: RFLVM, path: Path, folder: str) -> dict[str, float]:
    """Precision of decoded values, milliseconds of a decoding and of a frame."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"user-data-dir={folder}/profile"):
        options.add_argument(f"--{flag}")
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(60)
        driver.get(path.as_uri())
        while not driver.execute_script("return !!window.rflvm"):
            time.sleep(0.05)
        positions = 1.5 * np.random.default_rng(0).normal(size=(20, model.n_components))
        X = np.concatenate([model.embedding_[:20], positions])
        expected = model.inverse_transform(X)
        found = np.array([driver.execute_script("return rflvm.decode(arguments[0]).mean", x.tolist()) for x in X])
        decoding = driver.execute_script(
            "const start = performance.now(); for (let i = 0; i < 50; i++) rflvm.decode([i / 50, 0]);"
            "return (performance.now() - start) / 50"
        )
        frames = driver.execute_async_script(FRAMES)
    finally:
        driver.quit()
    return {
        "largest_relative_error": float(f"{np.max(np.abs(found / expected - 1)):.2g}"),
        "ms_decoding": round(decoding, 2),
        "ms_frame_median": round(float(np.median(frames)), 1),
        "ms_frame_95": round(float(np.quantile(frames, 0.95)), 1),
    }


if __name__ == "__main__":
    main()
