"""What it costs to compile: the options of ``numerics/compilation.py``, and programs that are kept between processes.

    python benchmarks/compilation.py [programs | processes]

``programs``: Poisson S-curves (D = 2, M = 100) of two sizes, single precision, X at the truth, the modes of beta known.
Seconds of one compilation and of one evaluation of the MAP engine's objective, in U as well. Writes
benchmarks/results/compilation.json.

``processes``: the command line on a Poisson S-curve of 500 x 100, ``fit --quick`` and a start with 100 sweeps of one
chain: without programs on disk, with an empty folder for them and with the folder that this run has filled. Processor
time of the process, report and files included, in seconds and in U (processor time of the matrix product, too), and the
bytes that are kept. Writes benchmarks/results/compilation_processes.json.
"""

from __future__ import annotations

import inspect
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import jax
import numpy as np

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
COMMANDS = {"fit --quick": ("--quick",), "100 sweeps": ("--samples", "50", "--burnin", "50", "--chains", "1")}
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


def programs() -> None:
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


def processor_seconds(command: list[str], environment: dict[str, str]) -> float:
    """Processor time of a process and its children."""
    used = lambda: sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])  # noqa: E731
    before = used()
    subprocess.run(command, env=environment, check=True, capture_output=True)
    return used() - before


def processes() -> None:
    """Two commands, each without programs on disk, with none there yet, and with those of the run before."""
    x = np.random.default_rng(0).normal(size=(2000, 2000))
    start = time.process_time()
    for _ in range(5):
        np.matmul(x, x)
    unit = (time.process_time() - start) / 5
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder, "table.csv")
        np.savetxt(table, make_s_curve(500, 100, emissions="poisson", seed=0).data, fmt="%d", delimiter=",")
        for name, options in COMMANDS.items():
            environment = os.environ | {"XDG_CACHE_HOME": str(Path(folder, name))}
            for programs in ("none", "first", "second"):
                before = ["--no-cache"] if programs == "none" else []
                command = [sys.executable, "-c", "from rflvm.cli import main; main()", *before]
                run = ["fit", str(table), "--out", str(Path(folder, "run")), "--force", "--likelihood", "poisson"]
                seconds = processor_seconds([*command, *run, *options], environment)
                kept = sum(path.stat().st_size for path in Path(folder, name).rglob("*") if path.is_file())
                rows.append({"command": name, "programs": programs, "seconds": round(seconds, 1)})
                rows[-1] |= {"U": round(seconds / unit, 1), "kept_MB": round(kept / 1e6, 1)}
                print(*rows[-1].values(), flush=True)
    result = {"machine": common.machine(), "U_seconds": round(unit, 4), "processes": rows}
    common.write("compilation_processes", result)


if __name__ == "__main__":
    for what in sys.argv[1:] or ("programs", "processes"):
        {"programs": programs, "processes": processes}[what]()
