"""Table 1: what is cut for a quick run, how runs are summarised, and the table that is printed."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np
import pytest
from sklearn.utils import Bunch

from rflvm.experiments import methods, paper, table
from rflvm.experiments.store import Result


def test_the_papers_figures():
    assert paper.ACCURACY["bridges"]["nmf"] == (0.8664, 0.0164)
    assert paper.ACCURACY["yale"]["negative-binomial-rflvm"] == (0.5394, 0.0117)
    best = {dataset: max(mean for mean, _ in row.values()) for dataset, row in paper.ACCURACY.items()}
    assert best == {
        "bridges": 0.8664, "cifar10": 0.2789, "congress109": 0.8093, "mnist": 0.6512,
        "montreal": 0.8158, "newsgroups": 0.4144, "spam": 0.9521, "yale": 0.6894,
    }  # fmt: skip
    assert set(paper.ACCURACY) == set(table.DATASETS)
    assert set(paper.METHODS) < set(methods.LABELS)


def test_a_quick_table_has_few_rows_none_of_them_empty():
    rng = np.random.default_rng(0)
    data = rng.poisson(0.02, (1000, 300)).astype(float)
    Y, labels = table.cut(Bunch(data=data, target=data.sum(axis=1)), run=3)
    assert Y.shape[0] <= table.QUICK_ROWS
    assert Y.shape[1] == table.QUICK_COLUMNS
    assert (Y.sum(axis=1) > 0).all()
    assert (Y.sum(axis=1) <= labels).all()


def test_one_task_per_data_set_method_and_run():
    full, quick = table.tasks(quick=False), table.tasks(quick=True)
    shared = 6 * len(methods.SEEDLESS) * (table.N_RUNS - 1)  # six tables are the same in every run
    assert len(full) == len({task.name for task in full}) == 8 * len(methods.LABELS) * table.N_RUNS - shared
    assert len(quick) == 8 * len(methods.LABELS)
    assert [task.name for task in full[: len(quick)]] == [task.name for task in quick]


@pytest.mark.parametrize("method", ["pca", pytest.param("poisson-rflvm", marks=pytest.mark.long)])
def test_a_fit_separates_what_differs(monkeypatch, method):
    """Two groups of rows with rates of their own: one nearest neighbour is right."""
    rng = np.random.default_rng(0)
    target = np.repeat([0, 1], 30)
    data = rng.poisson(np.where(target[:, None] == np.arange(10) % 2, 8.0, 1.0)).astype(float)
    monkeypatch.setitem(table.DATASETS, "bridges", lambda run: Bunch(data=data, target=target))
    values, arrays = table.fit("bridges", method, range(2), quick=False)
    assert len(values["accuracy"]) == 2
    assert min(values["accuracy"]) > 0.95
    assert arrays["X"].shape == (60, 2)


@pytest.mark.parametrize("ended", ["interrupted", "converged"])
def test_an_interrupted_fit_is_no_result(monkeypatch, ended):
    """RFLVM keeps what it has when it is interrupted; the experiment must not."""
    stub = Bunch(convergence_=ended)
    stub.fit = lambda Y: stub
    monkeypatch.setattr(methods, "make", lambda *arguments: stub)
    with pytest.raises(KeyboardInterrupt) if ended == "interrupted" else nullcontext():
        assert methods.fitted("poisson-rflvm", np.ones((3, 2)), 2, 0) is stub


def test_runs_are_summarised_and_printed_with_the_papers():
    accuracy = {"pca": [0.5, 0.6, 0.7], "tsne": [0.9, 0.9, 0.9]}
    results = [
        Result({"dataset": "spam", "method": method, "accuracy": part, "seconds": 2.0}, {})
        for method, values in accuracy.items()
        for part in (values[:1], values[1:])
    ]
    cells = table.summarise(results)
    assert [(cell.dataset, cell.method) for cell in cells] == [("spam", "pca"), ("spam", "tsne")]
    assert cells[0].mean == pytest.approx(0.6)
    assert cells[0].error == pytest.approx(0.1 / np.sqrt(3))
    assert table.markdown(cells).splitlines() == [
        "| | PCA |", "|---|---|", "| Spam | 0.6000 ±0.0577 |", "| *paper* | 0.8454 ±0.0037 |",
        "",
        "| | t-SNE |", "|---|---|", "| Spam | **0.9000** |",
    ]  # fmt: skip


def test_the_best_rflvm_beside_what_is_in_common_use():
    means = {"pca": 0.9, "gaussian-rflvm": 0.7, "poisson-rflvm": 0.8, "negative-binomial-rflvm": 0.6, "umap": 0.5,
             "poisson-rflvm-sampled": 0.82,
             "tsne": 0.85}  # fmt: skip
    cells = [table.Cell("mnist", name, [mean], 1.0) for name, mean in means.items()]
    lines = table.comparison(cells).splitlines()
    assert lines[0] == "| | best RFLVM | paper's best | Poisson RFLVM | UMAP | t-SNE |"
    assert lines[2] == "| MNIST | 0.820 (Poisson, sampled) | 0.651 (VAE) | 0.800 | 0.500 | **0.850** |"
