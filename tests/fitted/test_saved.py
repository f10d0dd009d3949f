"""Model files: nothing is lost, nothing damaged is loaded, nothing is executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import rflvm
from rflvm import RFLVM, FileError, likelihoods
from rflvm.files import npz
from rflvm.fitted import saved as saved_models

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

MAP: dict[str, Any] = {"inference": "map", "kernel": "rbf", "n_features": 6, "max_iter": 3, "random_state": 0}
GIBBS: dict[str, Any] = {"init": "pca", "n_features": 6, "n_samples": 6, "n_burnin": 4, "random_state": 0}
Y = np.random.default_rng(0).integers(0, 4, (12, 5)).astype(float)
Y[0, 1] = np.nan


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model and its file."""
    path = tmp_path_factory.mktemp("models") / "model.npz"
    model = RFLVM(likelihood="poisson", **GIBBS).fit(Y, offset=np.linspace(-0.1, 0.1, len(Y)))
    model.save(path)
    return model, path


def test_a_model_of_chains_comes_back(saved):
    model, path = saved
    other = rflvm.load(path)
    np.testing.assert_array_equal(other.transform(Y), model.transform(Y))
    np.testing.assert_array_equal(other.embedding_std_, model.embedding_std_)
    assert other.get_params() == model.get_params()
    assert other.diagnose() == model.diagnose()
    for a, b in zip(model.posterior_.leaves, other.posterior_.leaves, strict=True):
        assert a.to_dataset().identical(b.to_dataset())
    again = rflvm.load(path)
    np.testing.assert_array_equal(again.more_samples(3).embedding_, other.more_samples(3).embedding_)


def test_everything_a_model_was_given_comes_back(tmp_path):
    frame = pd.DataFrame(Y, columns=list("abcde"), index=pd.date_range("2020-01-01", periods=len(Y)))
    family = likelihoods.Binomial(trials=np.full(Y.shape, 5))
    model = RFLVM(likelihood=family, init=np.random.default_rng(1).normal(size=(12, 2)), **MAP)
    model.set_params(random_state=np.random.RandomState(0), prior=rflvm.Prior(alpha_rate=2.0)).fit(frame)
    model.save(tmp_path / "model.npz")
    other: Any = rflvm.load(tmp_path / "model.npz")
    np.testing.assert_array_equal(other.transform(frame), model.transform(frame))
    np.testing.assert_array_equal(other.init, model.init)
    np.testing.assert_array_equal(other.likelihood_.trials, family.trials)
    assert other.prior == model.prior
    assert list(other.feature_names_in_) == list("abcde")
    assert str(other.posterior_["posterior"]["row"].values[0]).startswith("2020-01-01")


def test_damaged_files_are_refused(saved, tmp_path):
    """A hundred random corruptions: an error, or what was saved."""
    model, path = saved
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    expected = model.transform(Y[:1])
    refused = 0
    for i in range(100):
        damaged = bytearray(content)
        where = int(rng.integers(len(content)))
        if i % 3 == 0:
            damaged = damaged[:where]
        elif i % 3 == 1:
            damaged[where] ^= 1 << int(rng.integers(8))
        else:
            damaged[where : where + 16] = rng.bytes(len(damaged[where : where + 16]))
        (tmp_path / "damaged.npz").write_bytes(damaged)
        try:
            other = rflvm.load(tmp_path / "damaged.npz")
        except FileError as error:
            assert "damaged.npz" in str(error)  # noqa: PT017
            refused += 1
        else:
            np.testing.assert_array_equal(other.transform(Y[:1]), expected)
    assert refused > 90


@pytest.mark.parametrize(
    "change",
    [
        {"likelihood_": {"class": "Popen", "fields": {"args": "true"}}},
        {"likelihood_": {"class": "Custom", "fields": {"log_prob": "print"}}},
        {"params.n_components": {"array": "no such array"}},
        {"params.no_such_parameter": 1},
        {"run": {"seed": 0}},
        {"theta": ["no such parameter"]},
    ],
)
def test_a_header_that_makes_no_sense_is_refused(saved, tmp_path, change):
    """Also when its digest is right: it may have been written to do harm."""
    header, arrays = npz.read(saved[1], saved_models.KIND)
    npz.write(tmp_path / "hostile.npz", {"kind": saved_models.KIND, "model": header["model"] | change}, arrays)
    with pytest.raises(FileError, match=r"hostile\.npz"):
        rflvm.load(tmp_path / "hostile.npz")


def test_other_files_are_refused(saved, tmp_path):
    npz.write(tmp_path / "other.npz", {"kind": "checkpoint"}, {})
    with pytest.raises(FileError, match="holds a checkpoint, not a model"):
        rflvm.load(tmp_path / "other.npz")
    (tmp_path / "text.npz").write_text(json.dumps({"kind": "model"}))
    with pytest.raises(FileError, match=r"text\.npz"):
        rflvm.load(tmp_path / "text.npz")
    with pytest.raises(FileNotFoundError):
        rflvm.load(tmp_path / "nothing.npz")


def not_finite(arrays):
    arrays["draws.beta"][0, 0, 0, 0] = np.nan


def too_few_rows(arrays):
    arrays["_values"] = arrays["_values"][:-1]


def too_many_columns(arrays):
    arrays["draws.beta"] = np.concatenate([arrays["draws.beta"]] * 2, axis=-1)


def other_members(arrays):
    arrays["members.W"] = arrays["members.W"][:, :, :1]


def slots_that_are_not_there(arrays):
    arrays["draws.z"][:] = 99


def infinite_cells(arrays):
    arrays["_values"][0, 0] = np.inf


@pytest.mark.parametrize(
    "change", [not_finite, too_few_rows, too_many_columns, other_members, slots_that_are_not_there, infinite_cells]
)
def test_content_that_does_not_agree_is_refused(saved, tmp_path, change):
    """Also when every digest is right."""
    header, arrays = npz.read(saved[1], saved_models.KIND)
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(arrays)
    npz.write(tmp_path / "inconsistent.npz", {"kind": saved_models.KIND, "model": header["model"]}, arrays)
    with pytest.raises(FileError, match=r"inconsistent\.npz does not hold a model"):
        rflvm.load(tmp_path / "inconsistent.npz")


OLD = Path(__file__).parents[1] / "versions" / "0.1"
OLD_MODELS = json.loads((OLD / "models-0.1.json").read_text())


@pytest.mark.parametrize("name", OLD_MODELS)
def test_models_of_version_0_1_load(name):
    model = rflvm.load(OLD / name)
    np.testing.assert_array_equal(model.embedding_[:2], OLD_MODELS[name]["embedding"])
    assert model.fitted_.units is None
    assert model.fitted_.about.inference == name.split("-")[1]
    rows = model.fitted_.about.values[:2]
    trials = model.likelihood_.trials_per_cell
    found = model.transform(rows, trials=None if trials is None else trials[:2])
    np.testing.assert_allclose(
        found, OLD_MODELS[name]["transform"], atol=1e-4
    )  # places are climbed to in single precision


def test_no_path_of_a_module_is_in_a_file(saved):
    assert b"rflvm." not in saved[1].read_bytes()
