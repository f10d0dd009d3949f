"""What the benchmarks share: the yardstick U, the machine, the data sets and the result files."""

from __future__ import annotations

import csv
import gzip
import json
import os
import platform
import statistics
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from scipy.io import loadmat
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import RepeatedStratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier

RESULTS = Path(__file__).parent / "results"


def unit_seconds() -> float:
    """U: seconds of one 2000 x 2000 float64 matrix product, median of five."""
    x = np.random.default_rng(0).normal(size=(2000, 2000))
    return median_seconds(lambda: np.matmul(x, x), 5)


def median_seconds(run: Callable[[], Any], repeats: int) -> float:
    """Median time of a call, after one call that may compile."""
    jax.block_until_ready(run())
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        jax.block_until_ready(run())
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def machine() -> dict[str, str | int]:
    """What measured."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": len(models) or os.cpu_count() or 1,
        "python": platform.python_version(),
        "jax": jax.__version__,
        "numpy": np.__version__,
    }


def data_file(*parts: str) -> Path | None:
    """A file of the folder that RFLVM_DATA names, if it is there."""
    folder = os.environ.get("RFLVM_DATA")
    path = Path(folder, *parts) if folder else None
    return path if path is not None and path.exists() else None


def congress() -> tuple[np.ndarray, np.ndarray] | None:
    """529 x 1000 phrase counts of the 109th Congress, and whether a member is a Republican."""
    counts, members = (data_file("congress109", name) for name in ("congress109.csv", "congress109members.csv"))
    if counts is None or members is None:
        return None
    with counts.open(newline="") as file, members.open(newline="") as other:
        rows, about = list(csv.reader(file))[1:], list(csv.reader(other))[1:]
    party = {row[0]: row[1] for row in about}
    return np.array([row[1:] for row in rows], float), np.array([party[row[0]] == "R" for row in rows])


def montreal() -> tuple[np.ndarray, np.ndarray] | None:
    """319 days x 17 complete bicycle counters of 2015, and the season."""
    path = data_file("montreal", "comptagesvelo2015.csv")
    if path is None:
        return None
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    complete = [j for j in range(2, len(rows[0])) if all(row[j] for row in rows)]
    days = [(int(row[0][3:5]), int(row[0][:2])) for row in rows]
    starts = [(3, 20), (6, 21), (9, 23), (12, 21)]  # of spring, summer, autumn, winter
    season = np.array([sum(day >= start for start in starts) % 4 for day in days])
    return np.array([[row[j] for j in complete] for row in rows], float), season


def mnist(n: int = 1000) -> tuple[np.ndarray, np.ndarray] | None:
    """The first n training digits (n x 784) and their labels."""
    images, labels = (data_file("mnist", f"train-{name}-ubyte.gz") for name in ("images-idx3", "labels-idx1"))
    if images is None or labels is None:
        return None
    pixels = np.frombuffer(gzip.decompress(images.read_bytes()), np.uint8)[16:].reshape(-1, 784)
    return pixels[:n].astype(float), np.frombuffer(gzip.decompress(labels.read_bytes()), np.uint8)[8 : 8 + n]


def yale() -> tuple[np.ndarray, np.ndarray] | None:
    """165 faces of 32 x 32 grey levels, and the person."""
    path = data_file("yale", "Yale_32x32.mat")
    if path is None:
        return None
    file = loadmat(path)
    return file["fea"].astype(float), file["gnd"].ravel()


def newsgroups() -> tuple[np.ndarray, np.ndarray] | None:
    """Word counts of the posts of three groups, words in 10 to 90 % of the posts, and the group."""
    path = data_file("newsgroups", "20news-bydate-3class.tar.gz")
    if path is None:
        return None
    texts, groups = [], []
    with tarfile.open(path) as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isfile() else None
            if file is not None:
                texts.append(file.read().decode("utf-8"))
                groups.append(member.name.split("/")[-2])
    vectorizer: Any = CountVectorizer
    counts = vectorizer(min_df=0.1, max_df=0.9).fit_transform(texts).toarray().astype(float)
    some = counts.sum(axis=1) > 0
    return counts[some], np.array(groups)[some]


def accuracy_1nn(X: np.ndarray, classes: np.ndarray) -> float:
    """Accuracy of one nearest neighbour over five folds, shuffled, five repeats."""
    folds = RepeatedStratifiedKFold(n_splits=5, n_repeats=5, random_state=0)
    return float(cross_val_score(KNeighborsClassifier(1), X, classes, cv=folds).mean())


def write(name: str, result: dict[str, Any]) -> None:
    """Save a result as JSON."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
