"""What ``likelihood="auto"`` chooses for tables of known families, and for the tables of the paper.

Simulated tables of 30 x 5 to 1000 x 200 cells, several of each family, none of which had a part in setting a threshold
of ``likelihoods/auto.py``. For each: how often each family is chosen. Over all Poisson and negative binomial tables:
the share for which another family than these two is chosen where the cells are not all 0 or 1 (false alarms). For the
tables of the paper (those that are in the folder named by RFLVM_DATA): the choice and its reason. Writes
benchmarks/results/auto.json.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from common import machine, table, write

from rflvm import datasets, likelihoods
from rflvm.datasets import make_s_curve

TABLES = {(30, 5): 40, (60, 10): 20, (100, 20): 20, (250, 50): 5, (500, 100): 2, (1000, 200): 1}  # shape: seeds
FIRST_SEED = 5000
COUNTS = ("poisson", "negative_binomial")
PAPER = (
    "bridges", "cifar10", "congress109", "hippocampus", "mnist", "montreal", "newsgroups", "spam", "yale",
)  # fmt: skip


def simulated(N: int, J: int, seed: int) -> Iterator[tuple[str, bool, np.ndarray]]:
    """Tables: what they are, whether they are Poisson or negative binomial, the cells."""
    rng = np.random.default_rng(seed)

    def s_curve(emissions: str, **settings: Any) -> np.ndarray:
        return make_s_curve(N, J, emissions=emissions, seed=seed, **settings).data

    F = make_s_curve(N, J, seed=seed).F
    noise = rng.standard_normal(F.shape)
    yield "poisson", True, s_curve("poisson")
    yield "poisson, rows alike", True, rng.poisson(np.exp(rng.normal(1, 1.5, J)), F.shape)
    yield "poisson, means near 300", True, rng.poisson(300 * np.exp(0.3 * F))
    yield "poisson, means near 0.2", True, rng.poisson(0.2 * np.exp(0.5 * F))
    yield "poisson, means near 0.05", True, rng.poisson(0.05 * np.exp(0.5 * F))
    yield "poisson, rows of unequal exposure", True, rng.poisson(np.exp(F + 0.7 * rng.standard_normal((N, 1))))
    for r in (0.5, 5.0, 20.0):
        yield f"negative binomial, r = {r:g}", True, s_curve("negative_binomial", dispersion=r)
    yield "negative binomial, r = 5, means near 300", True, rng.negative_binomial(5, 1 / (1 + 60 * np.exp(0.3 * F)))
    yield "multinomial, total 100", False, s_curve("multinomial")
    for trials in (2, 5, 10, 255):
        yield f"binomial, {trials} trials", False, s_curve("binomial", trials=trials)
    yield "bernoulli", False, s_curve("bernoulli")
    yield "ratings 1 to 5", False, 1 + np.digitize(F + 0.7 * noise, [-1.5, -0.5, 0.5, 1.5])
    yield "ratings 0 to 10", False, np.clip(np.round(5 + 2 * F + noise), 0, 10)
    yield "grey levels", False, np.clip(np.round(128 + 70 * F + 25 * noise), 0, 255)
    for mean, sd in ((3, 0.5), (30, 2), (30, 10), (1000, 10), (1000, 100)):
        rounded = np.round(mean + sd * F + sd * noise)
        yield f"rounded Gaussian, mean {mean}, deviation {sd:g}", False, np.maximum(rounded, 0)


def choose(Y: np.ndarray) -> tuple[str, str]:
    """The name of the family that is chosen, and why."""
    cells = np.asarray(Y, float)
    family, reason = likelihoods.choose(cells, ~np.isnan(cells))
    return family.name, reason


def main() -> None:
    """Count choices."""
    rows: list[dict[str, Any]] = []
    n_counts = n_false_alarms = 0
    for (N, J), n_seeds in TABLES.items():
        chosen: dict[str, Counter[str]] = {}
        for seed in range(FIRST_SEED, FIRST_SEED + n_seeds):
            for name, is_count, Y in simulated(N, J, seed):
                family, _ = choose(Y)
                chosen.setdefault(name, Counter())[family] += 1
                if is_count and Y.max() > 1:
                    n_counts += 1
                    n_false_alarms += family not in COUNTS
        for name, counter in chosen.items():
            rows.append({"N": N, "J": J, "table": name, "chosen": dict(counter.most_common())})
            print(N, J, name, dict(counter))
    paper = {}
    for name in PAPER:
        found = table(getattr(datasets, f"load_{name}"))
        if found is not None:
            paper[name] = dict(zip(("family", "reason"), choose(found.data), strict=True))
            print(name, *paper[name].values())
    print(f"{n_false_alarms} of {n_counts} tables of counts are taken for something else")
    result = {"count_tables": n_counts, "false_alarms": n_false_alarms, "simulated": rows, "paper": paper}
    write("auto", {"machine": machine()} | result)


if __name__ == "__main__":
    main()
