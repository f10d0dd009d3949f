"""What the options of ``numerics/compilation.py`` are worth: compiling the MAP engine's objective, and evaluating it.

    python benchmarks/compilation.py

Poisson S-curves (D = 2, M = 100) of two sizes, single precision, X at the truth, the modes of beta known. Seconds of
one compilation and of one evaluation, in U as well. Writes benchmarks/results/compilation.json.
"""

from __future__ import annotations

import inspect
import time
from typing import Any

import common
import jax

from rflvm import likelihoods
from rflvm.data import checks
from rflvm.datasets import make_s_curve
from rflvm.maximum import starts
from rflvm.maximum.climb import MODE_TOLERANCE
from rflvm.maximum.objective import evaluate
from rflvm.maximum.search import begin
from rflvm.model.joint import Model
from rflvm.numerics import compilation, linalg

SHAPES = ((500, 100), (1000, 784))
OPTIONS: dict[str, dict[str, Any]] = {"as XLA would": {}, "quick": compilation.QUICK}


def measure(N: int, J: int, options: dict[str, Any]) -> dict[str, float]:
    """Times of one program."""
    truth = make_s_curve(N, J, emissions="poisson", seed=0)
    family = likelihoods.get("poisson")
    model = Model(family, 2, 50)
    with jax.enable_x64(True), linalg.one_blas_thread():
        data = checks.to_device(checks.check_table(truth.data, family, None, None, 2), "float32")
        search = begin(0, starts.scaled(truth.X), data, model, True)
        objective = jax.jit(inspect.unwrap(evaluate), static_argnames=("model", "tolerance"))
        jax.clear_caches()
        tolerance = MODE_TOLERANCE["float32"]
        lowered = objective.lower(search.parameters, search.mode, search.spectrum, data, model, tolerance)
        start = time.perf_counter()
        program = lowered.compile(compiler_options=options)
        compilation = time.perf_counter() - start
        evidence = program(search.parameters, search.mode, search.spectrum, data)[2]
        evaluation = common.median_seconds(
            lambda: program(search.parameters, evidence.mode, search.spectrum, data), repeats=15
        )
    return {"compilation_seconds": compilation, "evaluation_seconds": evaluation}


def main() -> None:
    """Both programs for both shapes."""
    unit = common.unit_seconds()
    rows = []
    for N, J in SHAPES:
        for name, options in OPTIONS.items():
            row: dict[str, Any] = {"N": N, "J": J, "compiled": name}
            for key, seconds in measure(N, J, options).items():
                row |= {key: round(seconds, 4), key.replace("seconds", "U"): round(seconds / unit, 2)}
            rows.append(row)
            print(*row.values(), flush=True)
    common.write("compilation", {"machine": common.machine(), "U_seconds": round(unit, 4), "programs": rows})


if __name__ == "__main__":
    main()
