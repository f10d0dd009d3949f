"""The paper's Table 1: accuracy of one nearest neighbour in two dimensions, eight data sets, all methods, five runs.

Yale's faces are whole photographs, as the paper will have had them: with them PCA has the paper's accuracy.

A run differs from the others by its seed: that of the method, of the folds and, for MNIST and CIFAR-10, of the images.
Where neither the table nor the method depends on it, one fit serves all runs.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .. import datasets
from ..metrics import knn_accuracy
from . import methods, paper
from .store import Result, Task

N_RUNS = 5
DATASETS: dict[str, Callable[[int], Bunch]] = {
    "bridges": lambda run: datasets.load_bridges(),
    "cifar10": lambda run: datasets.load_cifar10(random_state=run),
    "congress109": lambda run: datasets.load_congress109(),
    "mnist": lambda run: datasets.load_mnist(random_state=run),
    "montreal": lambda run: datasets.load_montreal(seasons="months"),
    "newsgroups": lambda run: datasets.load_newsgroups(),
    "spam": lambda run: datasets.load_spam(),
    "yale": lambda run: datasets.load_yale(cropped=False),
}
TITLES = {
    "bridges": "Bridges",
    "cifar10": "CIFAR-10",
    "congress109": "Congress",
    "mnist": "MNIST",
    "montreal": "Montreal",
    "newsgroups": "Newsgroups",
    "spam": "Spam",
    "yale": "Yale",
}
DRAWN = ("cifar10", "mnist")  # every run draws images of its own
QUICK_ROWS, QUICK_COLUMNS = 200, 100

Row = dict[str, tuple[float, float]]  # of a data set: mean and standard error of each method


class Cell(NamedTuple):
    """A data set and a method: the accuracy of each run."""

    dataset: str
    method: str
    accuracy: list[float]
    seconds: float  # of one fit, mean

    @property
    def mean(self) -> float:
        """Over runs."""
        return float(np.mean(self.accuracy))

    @property
    def error(self) -> float:
        """Standard error of the mean; 0 of a single run."""
        n = len(self.accuracy)
        return float(np.std(self.accuracy, ddof=1)) / math.sqrt(n) if n > 1 else 0.0


def cut(table: Bunch, run: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows, at random, and the columns with the largest totals: enough to see that everything works."""
    rows = np.sort(np.random.default_rng(run).permutation(len(table.data))[:QUICK_ROWS])
    data = table.data[rows]
    columns = np.sort(np.argsort(-data.sum(axis=0), kind="stable")[:QUICK_COLUMNS])
    nonzero = data[:, columns].sum(axis=1) > 0
    return data[nonzero][:, columns], table.target[rows][nonzero]


def fit(dataset: str, method: str, runs: Sequence[int], quick: bool) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """One fit that serves one or more runs: the accuracy of each, and the positions."""
    table = DATASETS[dataset](runs[0])
    Y, labels = cut(table, runs[0]) if quick else (table.data, table.target)
    settings = (methods.QUICK if quick else methods.SETTINGS).get(method, {})
    X = np.asarray(methods.fitted(method, Y, 2, runs[0], **settings).embedding_, float)
    accuracy = [knn_accuracy(X, labels, n_repeats=1, seed=run).mean for run in runs]
    return {"dataset": dataset, "method": method, "runs": list(runs), "accuracy": accuracy}, {"X": X}


def tasks(quick: bool) -> list[Task]:
    """All fits, run by run."""
    every = range(1 if quick else N_RUNS)
    return [
        Task(f"{dataset}-{method}-{run}", f"{dataset}-{method}", functools.partial(fit, dataset, method, runs, quick))
        for run in every
        for dataset in DATASETS
        for method in methods.LABELS
        if (runs := _served(dataset, method, run, every))
    ]


def _served(dataset: str, method: str, run: int, every: Sequence[int]) -> Sequence[int]:
    """The runs that the fit of a run serves: its own, or, where nothing depends on it, all for the first."""
    if method in methods.SEEDLESS and dataset not in DRAWN:
        return every if run == every[0] else []
    return [run]


def summarise(results: Sequence[Result]) -> list[Cell]:
    """The runs of each data set and method, in the order of the results."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.values["dataset"], result.values["method"]), []).append(result)
    return [
        Cell(
            dataset,
            method,
            [accuracy for result in group for accuracy in result.values["accuracy"]],
            float(np.mean([result.values["seconds"] for result in group])),
        )
        for (dataset, method), group in groups.items()
    ]


def markdown(cells: Sequence[Cell]) -> str:
    """The methods of the paper, its own figures below ours, and then the others; the best of each data set in bold."""
    columns = list(dict.fromkeys(cell.method for cell in cells))
    rows: dict[str, Row] = {}
    for cell in cells:
        rows.setdefault(cell.dataset, {})[cell.method] = cell.mean, cell.error
    theirs = [name for name in columns if name in paper.METHODS]
    others = [name for name in columns if name not in paper.METHODS]
    lines = _head([methods.LABELS[name] for name in theirs])
    for dataset, row in rows.items():
        lines += [_line(TITLES[dataset], row, theirs), _line("*paper*", paper.ACCURACY[dataset], theirs)]
    lines += ["", *_head([methods.LABELS[name] for name in others])]
    lines += [_line(TITLES[dataset], row, others) for dataset, row in rows.items()]
    return "\n".join(lines) + "\n"


def comparison(cells: Sequence[Cell]) -> str:
    """The best RFLVM, a single one, the best of any method in the paper and what is in common use; best in bold."""
    single = ("poisson-rflvm", "umap", "tsne")
    lines = _head(["best RFLVM", "paper's best", *(methods.LABELS[name] for name in single)])
    for dataset in dict.fromkeys(cell.dataset for cell in cells):
        ours = {cell.method: cell.mean for cell in cells if cell.dataset == dataset}
        theirs = {name: mean for name, (mean, _) in paper.ACCURACY[dataset].items()}
        rflvms = {name: mean for name, mean in ours.items() if name in methods.RFLVMS}
        means = [_best(rflvms), _best(theirs), *((ours.get(name, 0.0), "") for name in single)]
        highest = max(mean for mean, _ in means)
        texts = [f"**{mean:.3f}**{of}" if mean == highest else f"{mean:.3f}{of}" if mean else "" for mean, of in means]
        lines.append(f"| {TITLES[dataset]} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def _head(titles: Sequence[str]) -> list[str]:
    return ["| | " + " | ".join(titles) + " |", "|---" * (len(titles) + 1) + "|"]


def _best(means: dict[str, float]) -> tuple[float, str]:
    """The highest mean and whose it is; 0 where there is none."""
    if not means:
        return 0.0, ""
    name = max(means, key=lambda name: means[name])
    return means[name], f" ({methods.LABELS[name].replace(' RFLVM', '')})"


def _line(title: str, row: Row, columns: Sequence[str]) -> str:
    best = max(mean for mean, _ in row.values())

    def text(name: str) -> str:
        if name not in row:
            return ""
        mean, error = row[name]
        both = f"{mean:.4f} ±{error:.4f}" if error else f"{mean:.4f}"
        return f"**{both}**" if mean == best else both

    return f"| {title} | " + " | ".join(text(name) for name in columns) + " |"
