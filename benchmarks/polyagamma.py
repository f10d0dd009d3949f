"""Speed of the Polya-gamma sampler, and the error of its three-gamma approximation for b > 3.

Writes benchmarks/results/polyagamma.json: nanoseconds per draw and seconds to compile, the largest distance
between the distribution functions of the approximation and of PG(b, c), and the machine that measured them.
"""

import os
import statistics
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from common import machine, unit_seconds, write

from rflvm.numerics import polyagamma

ERROR_B = (2, 3, 4, 8, 16, 100, 1000, 5000)
ERROR_C = (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 20, 25, 31, 33, 50, 100)


def sup_error(b: float, c: float) -> float:
    """Largest |F_gammas(x) - F(x)| over x, by inversion of the difference of the characteristic functions."""
    with jax.enable_x64(True):
        center, p, a = polyagamma._gamma_parameters(jnp.full(1, float(b)), jnp.full(1, float(c)))
        deviation = float(jnp.sqrt(polyagamma.variance(float(b), float(c))))
    center, p, a = float(center[0]), np.asarray(p[:, 0]), np.asarray(a[:, 0])

    def log_cosh(w):
        return w + np.log1p(np.exp(-2 * w)) - np.log(2)

    def log_exact(t):
        return b * (log_cosh(c / 2) - log_cosh(np.sqrt((c * c / 2 - 1j * t) / 2)))

    highest = 8.0
    while log_exact(highest / deviation).real > -33:
        highest *= 1.2
    # The sum over t repeats F with period 60 deviations, beyond which both tails are below 1e-12.
    step = 2 * np.pi / 60 / deviation
    t = (np.arange(highest / deviation / step) + 0.5) * step
    log_gammas = 1j * t * center * (1 - p.sum())
    for share, shape in zip(p, a, strict=True):
        log_gammas = log_gammas - shape * np.log1p(-1j * t * center * share / shape)
    exact = log_exact(t)
    difference = np.exp(exact) * np.expm1(log_gammas - exact) / t
    x = float(b) * np.tanh(c / 2) / (2 * c) if c else b / 4
    x = x + deviation * np.linspace(-5, 12, 341)
    x = x[x > 0]
    return float(np.abs(np.imag(np.exp(-1j * np.outer(x, t)) @ difference)).max() * step / np.pi)


def nanoseconds(draw: Callable[[int], jax.Array], size: int, repeats: int = 9) -> tuple[float, float]:
    """Median nanoseconds per draw, and seconds of the first call."""
    times = []
    for i in range(repeats + 1):
        start = time.perf_counter()
        jax.block_until_ready(draw(i))
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:]) / size * 1e9, times[0]


def speed() -> list[dict[str, str | int | float]]:
    rows = []
    for x64 in (True, False):
        for size in (50_000, 500_000):
            rng = np.random.default_rng(0)
            regimes = {
                "negative binomial, y ~ Poisson(2), r in 0.5..3": rng.poisson(2, size) + rng.uniform(0.5, 3, size),
                "sparse counts, y ~ Poisson(0.1), r = 0.3": rng.poisson(0.1, size) + 0.3,
                "multinomial, Binomial(5, 0.1)": rng.binomial(5, 0.1, size),
                "b in 0.05..1": rng.uniform(0.05, 1, size),
                "b in 3..5000": rng.uniform(3, 5000, size),
            }
            tilt = rng.normal(scale=2, size=size)
            with jax.enable_x64(x64):
                dtype = jnp.float64 if x64 else jnp.float32
                c = jnp.asarray(tilt, dtype)

                def record(name, draw, size=size, dtype=dtype):
                    ns, first = nanoseconds(draw, size)
                    rows.append({"draw": name, "dtype": dtype.__name__, "size": size, "ns_per_draw": round(ns, 1)})
                    print(f"{name:50s} {dtype.__name__} {size:7d} {ns:7.1f} ns   first call {first:.2f} s")
                    return first

                first = record("sample_one", lambda i, c=c: polyagamma.sample_one(jax.random.key(i), c))
                rows[-1]["first_call_seconds"] = round(first, 2)
                for number, (name, b) in enumerate(regimes.items()):
                    b = jnp.asarray(b, dtype)
                    first = record(f"sample: {name}", lambda i, b=b, c=c: polyagamma.sample(jax.random.key(i), b, c))
                    if number == 0:
                        rows[-1]["first_call_seconds"] = round(first, 2)
    return rows


def errors() -> list[dict[str, float]]:
    rows = []
    for b in ERROR_B:
        error, c = max((sup_error(b, c), c) for c in ERROR_C)
        rows.append({"b": b, "sup_error": float(f"{error:.2g}"), "at_c": c})
        print(f"b = {b:5d}   sup error {error:.1e} at c = {c}")
    return rows


if __name__ == "__main__":
    result = {
        "machine": machine(),
        # above zero at the start, other programs share the cores and the times below are too long
        "load_average_at_start": round(os.getloadavg()[0], 2),
        "U_seconds": round(unit_seconds(), 4),
        "sup_cdf_error_of_three_gammas": errors(),
        "speed": speed(),
    }
    write("polyagamma", result)
