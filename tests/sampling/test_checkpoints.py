"""A run that was killed or interrupted goes on as if nothing had happened, and no run is taken for another."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rflvm
from equality import assert_same_draws
from rflvm import likelihoods
from rflvm.data.checks import check_table
from rflvm.files.npz import FileError
from rflvm.model.draws import Kept, Recorder, Run
from rflvm.model.joint import Model, Prior, State
from rflvm.sampling import chain, checkpoints, run
from rflvm.sampling.blocks import W
from rflvm.sampling.blocks.tuning import Tuning
from rflvm.sampling.chain import Chain
from rflvm.sampling.checkpoints import Checkpoint, settings

Y = np.random.default_rng(0).poisson(3, size=(12, 5)).astype(float)
RUN: dict[str, Any] = {"n_features": 6, "n_burnin": 4, "n_samples": 6, "init": "pca", "n_chains": 2}


@pytest.fixture(autouse=True)
def after_every_sweep(monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)


@pytest.fixture(scope="module")
def whole():
    """The run that nothing happened to, without a folder."""
    return rflvm.sample(Y, "poisson", **RUN)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a run that has ended, with a segment for each of its six draws."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    seconds, checkpoints.SECONDS = checkpoints.SECONDS, 0.0
    rflvm.sample(Y, "poisson", checkpoint=folder, **RUN)
    checkpoints.SECONDS = seconds
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of it, to be spoiled."""
    return shutil.copytree(finished, tmp_path / "run")


def files(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def interrupt_at(sweep):
    def stop(progress):
        if progress.sweep == sweep:
            raise KeyboardInterrupt

    return stop


def test_writing_changes_no_draw_and_a_finished_run_is_read(finished, whole, monkeypatch):
    assert files(finished) == ["header.npz", *(f"segment-{k:06d}.npz" for k in range(6)), "start.npz"]
    monkeypatch.setattr(chain, "advance", lambda *arguments: pytest.fail("a sweep was made"))
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=finished, **RUN), whole)


def test_few_files_are_written_in_a_short_time(tmp_path, whole, monkeypatch):
    monkeypatch.setattr(checkpoints, "SECONDS", 1e6)
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=str(tmp_path), **RUN), whole)
    assert files(tmp_path) == ["header.npz", "segment-000000.npz", "start.npz"]


@pytest.mark.parametrize("sweep", [1, 3, 4, 5, 8, 10])
@pytest.mark.parametrize("seconds", [0.0, 1e6])
def test_an_interrupt_keeps_all_and_the_run_goes_on(tmp_path, whole, monkeypatch, sweep, seconds):
    monkeypatch.setattr(checkpoints, "SECONDS", seconds)
    if sweep <= 4:
        with pytest.raises(KeyboardInterrupt):
            rflvm.sample(Y, "poisson", checkpoint=tmp_path, progress=interrupt_at(sweep), **RUN)
    else:
        part = rflvm.sample(Y, "poisson", checkpoint=tmp_path, progress=interrupt_at(sweep), **RUN)
        assert part.interrupted
        np.testing.assert_array_equal(part["X"], whole["X"][:, : sweep - 4])
    monkeypatch.setattr(run, "_starter", lambda *arguments: pytest.fail("the start was made again"))
    told = []
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=tmp_path, progress=told.append, **RUN), whole)
    assert [progress.sweep for progress in told] == list(range(sweep + 1, 11))


def test_an_interrupt_between_two_chains_leaves_them_at_the_same_sweep(tmp_path, whole, monkeypatch):
    advance, calls = chain.advance, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == 14:  # the second chain in sweep 7
            raise KeyboardInterrupt
        return advance(*arguments)

    monkeypatch.setattr(chain, "advance", interrupted)
    part = rflvm.sample(Y, "poisson", checkpoint=tmp_path, **RUN)
    assert part.run is not None
    assert part.run.n_sweeps == 6
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=tmp_path, **RUN), whole)


@pytest.mark.parametrize("written", [False, True])
@pytest.mark.parametrize("nth", [2, 5, 6, 8])  # start and header are 0 and 1, the end of burn-in is 5
def test_an_interrupt_while_writing_loses_nothing(tmp_path, whole, monkeypatch, nth, written):
    write, calls = checkpoints.npz.write, []

    def interrupted(*arguments):
        calls.append(arguments)
        if len(calls) == nth + 1:
            if written:
                write(*arguments)
            raise KeyboardInterrupt
        write(*arguments)

    monkeypatch.setattr(checkpoints.npz, "write", interrupted)
    try:
        assert rflvm.sample(Y, "poisson", checkpoint=tmp_path, **RUN).interrupted
    except KeyboardInterrupt:
        assert nth <= 5
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=tmp_path, **RUN), whole)


def test_a_longer_run_continues_a_shorter_one(folder):
    longer: dict[str, Any] = RUN | {"n_samples": 9}
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=folder, **longer), rflvm.sample(Y, "poisson", **longer))
    with pytest.raises(ValueError, match=r"already has 7 or more sweeps after burn-in, n_samples asks for 6: raise"):
        rflvm.sample(Y, "poisson", checkpoint=folder, **RUN)


def test_a_longer_run_keeps_the_thinning_of_beta_or_says_that_it_cannot(tmp_path, whole):
    one_beta = whole["beta"][:, 0].nbytes
    budget = sum(values.nbytes for values in whole.arrays.values()) - 2 * one_beta
    short = rflvm.sample(Y, "poisson", checkpoint=tmp_path, memory_budget=budget, **RUN)
    assert short.beta_thin == 2
    longer: dict[str, Any] = RUN | {"n_samples": 7, "checkpoint": tmp_path}
    with pytest.raises(ValueError, match=r"beta for every 2-th .* raise the budget"):
        rflvm.sample(Y, "poisson", memory_budget=budget, **longer)
    draws = rflvm.sample(Y, "poisson", **longer)
    assert draws["beta"].shape[1] == 4
    np.testing.assert_array_equal(draws["beta"][:, :3], whole["beta"][:, ::2])


OTHERS: dict[str, dict[str, Any]] = {
    "Y": {"Y": Y + 1},
    "mask": {"mask": np.isin(Y, [0, 1, 2, 3, 4])},
    "offset": {"offset": np.linspace(0, 1, len(Y))},
    "likelihood": {"likelihood": likelihoods.NegativeBinomial()},
    "n_components": {"n_components": 3},
    "n_features": {"n_features": 8},
    "n_burnin": {"n_burnin": 5},
    "thin": {"thin": 2},
    "n_chains": {"n_chains": 1},
    "seed": {"seed": 1},
    "init": {"init": np.ones((12, 2))},
    "prior": {"prior": Prior(bias_scale=3.0)},
    "latents": {"latents": "map"},
    "frequencies": {"frequencies": "fixed"},
    "dtype": {"dtype": "float32"},
}


@pytest.mark.parametrize("name", OTHERS)
def test_another_run_is_refused_and_told_what_differs(finished, name):
    arguments: dict[str, Any] = {"Y": Y, "likelihood": "poisson"} | RUN | OTHERS[name]
    before = files(finished)
    with pytest.raises(ValueError, match=rf"holds a run with another {name} \(.*: use another folder"):
        rflvm.sample(checkpoint=finished, **arguments)
    assert files(finished) == before


def test_the_parameters_of_a_likelihood_are_told_apart():
    def described(family, table=Y):
        return settings(*described_by(family, table))["likelihood"]

    def described_by(family, table):
        run = Run(0, 4, 1, ("sample", "hmc", "hmc"), "")
        return check_table(table, family, None, None, 2), Model(family, 2, 3), run, "pca", 1, "float64"

    Binomial, Custom = likelihoods.Binomial, likelihoods.Custom
    per_column = np.arange(10, 15)
    assert described(likelihoods.Gaussian()) != described(likelihoods.Gaussian(a0=2.0))
    assert described(Binomial(trials=20)) != described(Binomial(trials=21))
    assert described(Binomial(trials=per_column)) == described(Binomial(trials=per_column.copy()))
    assert described(Binomial(trials=per_column)) != described(Binomial(trials=per_column + 1))
    poisson = Custom(lambda y, f: y * f - jnp.exp(f))
    assert described(poisson) == described(Custom(lambda y, f: -jnp.exp(f) + f * y))
    assert described(poisson) != described(Custom(lambda y, f: y * f - 1.01 * jnp.exp(f)))
    missing = np.where(np.isin(Y, 3), np.nan, Y)
    logarithm = Custom(lambda y, f: jnp.log(y) * f)  # not finite where a cell is missing and holds 0
    assert described(logarithm, missing + 1) == described(logarithm, missing + 1)


def test_a_family_without_a_description_is_refused(tmp_path):
    class Own(likelihoods.Likelihood):
        name = "own"

    with pytest.raises(
        ValueError,
        match=r"tell likelihoods apart: Own cannot be written .* make it a frozen dataclass",
    ):
        rflvm.sample(Y, Own(), checkpoint=tmp_path, **RUN)


@pytest.mark.parametrize("damage", ["cut", "flip", "another kind"])
def test_a_damaged_segment_is_named_and_can_be_deleted(folder, whole, damage):
    last = folder / "segment-000005.npz"
    data = bytearray(last.read_bytes())
    if damage == "cut":
        last.write_bytes(data[: len(data) // 2])
    elif damage == "flip":
        data[len(data) // 2] ^= 1
        last.write_bytes(data)
    else:
        shutil.copy(folder / "header.npz", last)
    with pytest.raises(FileError, match=r"segment-000005\.npz .*; or delete it and all later segments"):
        rflvm.sample(Y, "poisson", checkpoint=folder, **RUN)
    last.unlink()
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=folder, **RUN), whole)


def test_a_second_run_in_the_folder_is_refused_while_the_first_is_at_work(tmp_path, whole):
    def try_too(progress):
        with pytest.raises(FileError, match=rf"{tmp_path} is in use by process {os.getpid()} .*: wait until"):
            rflvm.sample(Y, "poisson", checkpoint=tmp_path, **RUN)

    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=tmp_path, progress=try_too, **RUN), whole)
    assert ".lock" not in files(tmp_path)


def test_a_missing_segment_is_noticed(folder, whole):
    (folder / "segment-000002.npz").unlink()
    with pytest.raises(FileError, match=r"segment-000003\.npz goes on from sweep 7, what is before it ends at 6"):
        rflvm.sample(Y, "poisson", checkpoint=folder, **RUN)
    for k in (3, 4, 5):
        (folder / f"segment-{k:06d}.npz").unlink()
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=folder, **RUN), whole)


@pytest.mark.parametrize("name", ["header.npz", "start.npz"])
def test_a_folder_whose_beginning_is_damaged_says_what_to_do(folder, name):
    (folder / name).write_bytes(b"")
    with pytest.raises(FileError, match=rf"{name} is damaged .*; or delete all files in .* begins anew"):
        rflvm.sample(Y, "poisson", checkpoint=folder, **RUN)


def test_a_segment_of_another_run_is_refused(folder, tmp_path):
    other = tmp_path / "other"
    rflvm.sample(Y, "poisson", checkpoint=other, seed=1, **RUN)
    shutil.copy(other / "segment-000005.npz", folder)
    with pytest.raises(FileError, match=r"segment-000005\.npz is part of another run: delete it"):
        rflvm.sample(Y, "poisson", checkpoint=folder, **RUN)


def test_leftovers_are_removed(folder, whole):
    leftover = folder / ".segment-000006.npz.01234567.tmp"
    leftover.write_bytes(b"half a file")
    assert_same_draws(rflvm.sample(Y, "poisson", checkpoint=folder, **RUN), whole)
    assert not leftover.exists()


def test_every_part_of_a_chain_survives(tmp_path, x64):
    """Also a family's parameters, single precision and thinned beta, without a sampler."""
    rng = np.random.default_rng(0)
    N, D, H, J, M = 4, 2, 3, 5, 7

    def real(*shape):
        return jnp.asarray(rng.normal(size=shape), jnp.float32)

    def some_chain(info):
        theta = {"r": real(J), "h": real()}
        integers = jnp.asarray(rng.integers(0, H, H), jnp.int32)
        state = State(real(N, D), real(H, D), integers, real(H, D), real(H, D, D), real(), real(M, J), theta)
        return Chain(state, tuning, {"W": W.Info(real(), real(), real())} if info else {})

    tuning = Tuning(real(), real(), real(J), real(J), real(N, J))
    run = Run(seed=3, n_burnin=2, thin=2, moves=("sample", "hmc", "hmc"), table="")
    like = [some_chain(True)] * 2

    def recorder():
        return Recorder(like[0].state, 2, 10, 1e9, beta_thin=3)

    written, made = Checkpoint(tmp_path, {"seed": 3}), recorder()
    assert written.read(made, run, 22, like) is None
    for n_sweeps in (0, 1, 2, 3, 6, 9, 17):
        chains = [some_chain(n_sweeps > 2) for _ in range(2)]
        now = run._replace(n_sweeps=n_sweeps)
        for draw in range(now.n_kept):
            for c in range(2):
                state = like[c].state._replace(X=jnp.full((N, D), draw), beta=jnp.full((M, J), draw))
                made.record(c, draw, Kept(state, draw, np.full((N, 2), draw)))
        written.write(now, chains, made, now=True)
        found, filled = Checkpoint(tmp_path, {"seed": 3}), recorder()
        assert found.beta_thin == 3
        result = found.read(filled, run, 22, like)
        assert result is not None
        assert result[0] == now
        assert jax.tree.structure(result[1]) == jax.tree.structure(chains)
        jax.tree.map(lambda a, b: np.testing.assert_array_equal(a, b, strict=True), result[1], chains)
        for name, values in made.arrays(now.n_kept).items():
            np.testing.assert_array_equal(filled.arrays(now.n_kept)[name], values, strict=True)


# Killed. The child tells the sweeps that it has done, which is how the moment of a kill is chosen.

CHILD = """
import sys
import numpy as np
import rflvm
from rflvm.sampling import checkpoints

checkpoints.SECONDS = 0.0
result, folder = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
Y = np.random.default_rng(0).poisson(3, size=(12, 5)).astype(float)
tell = lambda progress: print(progress.sweep, flush=True)
draws = rflvm.sample(
    Y, "poisson", n_features=6, n_burnin=10, n_samples=20, init="pca", checkpoint=folder, progress=tell
)
np.savez(result, **draws.arrays)
"""


def child(*arguments) -> subprocess.Popen:
    return subprocess.Popen([sys.executable, "-c", CHILD, *map(str, arguments)], stdout=subprocess.PIPE, text=True)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """The draws of a run of its own."""
    place = tmp_path_factory.mktemp("uninterrupted")
    process = child(place / "result.npz")
    process.communicate(timeout=240)
    assert process.returncode == 0
    with np.load(place / "result.npz") as file:
        return dict(file)


def kill_until_done(seed, place) -> int:
    """Kill the run some sweeps after it has begun or begun again, in a sweep or while it writes; how many times."""
    rng = np.random.default_rng(seed)
    for kills in range(100):
        process = child(place / "result.npz", place / "run")
        assert process.stdout is not None
        sweeps = int(rng.integers(1, 31 if kills else 25))
        if all(process.stdout.readline() for _ in range(sweeps)):
            time.sleep(rng.uniform(0, 0.02))
            process.kill()
        process.communicate(timeout=240)
        if process.returncode == 0:
            return kills
    pytest.fail("the run does not end")


def check_kills(seed, place, expected):
    kills = kill_until_done(seed, place)
    assert kills > 0
    with np.load(place / "result.npz") as file:
        assert set(file) == set(expected)
        for name in expected:
            np.testing.assert_array_equal(file[name], expected[name], strict=True)


@pytest.mark.skipif(os.name == "nt", reason="kills are sudden elsewhere")
def test_a_killed_run_is_the_run_that_was_not(tmp_path, uninterrupted):
    check_kills(0, tmp_path, uninterrupted)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 21))
def test_many_killed_runs_are_the_run_that_was_not(tmp_path, uninterrupted, seed):
    check_kills(seed, tmp_path, uninterrupted)


def test_a_run_of_version_0_1_is_refused_by_its_version(tmp_path):
    folder = tmp_path / "checkpoint"
    shutil.copytree(Path(__file__).parents[1] / "versions" / "0.1" / "checkpoint-0.1", folder)
    before = sorted((path.name, path.read_bytes()) for path in folder.iterdir())
    with pytest.raises(FileError, match=r"another version of rflvm.*use another folder"):
        rflvm.sample(Y, "poisson", checkpoint=folder, **RUN)
    assert sorted((path.name, path.read_bytes()) for path in folder.iterdir()) == before
