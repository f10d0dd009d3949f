"""A fitted ``RFLVM`` as one file, and back: arrays, and a header of plain JSON that says what they are.

Nothing in a file is executed: classes are looked up by name among those of this package, and all that they hold is
numbers and text. A family made of a user's own functions cannot be written down and is refused.
"""

from __future__ import annotations

import dataclasses
from os import PathLike
from typing import Any

import jax
import numpy as np

from .. import likelihoods
from ..data import checks
from ..files import npz
from ..files.trees import arrays_of, restore
from ..model.draws import Draws, Run
from ..model.joint import Model, Prior
from ..sampling import chain, sweep
from . import prediction
from .diagnostics import Quantity

KIND = "model"


_FAMILIES = {
    family.__name__: family
    for family in (
        likelihoods.Bernoulli, likelihoods.Binomial, likelihoods.Gaussian, likelihoods.Multinomial,
        likelihoods.NegativeBinomial, likelihoods.Poisson,
    )
}  # fmt: skip


_PLAIN = ("likelihood_reason_", "n_iter_", "convergence_", "n_features_in_", "_seed")


_ARRAYS = ("embedding_", "embedding_std_", "_values", "_offset")


def save(model: Any, path: str | PathLike) -> None:
    """Write a fitted estimator."""
    draws = model.draws_
    params = model.get_params(deep=False)
    if isinstance(params["random_state"], np.random.RandomState):
        params["random_state"] = model._seed
    packed = {f"params.{name}": value for name, value in params.items()} | {"likelihood_": model.likelihood_}
    packed |= {name: getattr(model, name) for name in _PLAIN}
    packed["feature_names_in_"] = list(getattr(model, "feature_names_in_", [])) or None
    packed["_rows"] = None if model._rows is None else [_label(row) for row in model._rows]
    packed["diagnostics_"] = [list(quantity) for quantity in model.diagnostics_]
    packed["run"] = None if draws.run is None else draws.run._asdict()
    packed["draws"] = {"beta_thin": draws.beta_thin, "interrupted": draws.interrupted, "H": draws.model.H}
    packed["theta"] = list(model._members.theta)
    arrays = {name: getattr(model, name) for name in _ARRAYS} | {f"draws.{k}": v for k, v in draws.arrays.items()}
    arrays |= arrays_of({"members": model._members})
    chains = zip(draws.states, draws.tuning, draws.info_sums, strict=True)
    arrays |= arrays_of({"chains": [chain.Chain(*parts) for parts in chains]})
    header = {name: _pack(name, value, arrays) for name, value in packed.items()}
    npz.write(path, {"kind": KIND, "model": header}, arrays)


def load(path: str | PathLike, estimator: type) -> Any:
    """Read an estimator that ``save`` wrote."""
    header, arrays = npz.read(path, KIND)
    try:
        return _unpacked({name: _unpack(value, arrays) for name, value in header["model"].items()}, arrays, estimator)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise npz.FileError(f"{path} does not hold a model that this version can read: {error!r}") from error


def _unpacked(packed: dict[str, Any], arrays: dict[str, np.ndarray], estimator: type) -> Any:
    model = estimator(**{name[7:]: value for name, value in packed.items() if name.startswith("params.")})
    for name in (*_PLAIN, "likelihood_", "_rows"):
        setattr(model, name, packed[name])
    for name in _ARRAYS:
        setattr(model, name, arrays[name])
    if packed["feature_names_in_"] is not None:
        model.feature_names_in_ = np.asarray(packed["feature_names_in_"], dtype=object)
    model.diagnostics_ = [Quantity(*fields) for fields in packed["diagnostics_"]]
    about = packed["draws"]
    core = Model(model.likelihood_, model.n_components, about["H"], model.prior or Prior())
    draws = Draws(
        model=core,
        arrays={name[6:]: array for name, array in arrays.items() if name.startswith("draws.")},
        beta_thin=about["beta_thin"],
        interrupted=about["interrupted"],
    )
    with jax.enable_x64(True):
        if packed["run"] is not None:
            draws.run = Run(**(packed["run"] | {"moves": tuple(packed["run"]["moves"])}))
            table = checks.check_table(model._values, core.likelihood, None, model._offset, core.D)
            moves: Any = draws.run.moves
            like = chain.chain_shapes(checks.to_device(table, "float64"), core, sweep.Moves(*moves))
            chains = restore({"chains": [like] * len(draws["X"])}, arrays)["chains"]
            draws.states, draws.tuning, draws.info_sums = (list(parts) for parts in zip(*chains, strict=True))
        anything: Any = dict.fromkeys(prediction.Members._fields, 0) | {"theta": dict.fromkeys(packed["theta"], 0)}
        like = prediction.Members(**anything)
        model._members = jax.tree.map(np.asarray, restore({"members": like}, arrays)["members"])
    model.draws_ = draws
    return model


def _pack(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON; arrays go to the arrays, under the value's name."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, likelihoods.Likelihood) and type(value) not in _FAMILIES.values():
        raise ValueError(
            f"{type(value).__name__} is made of functions, which a file cannot hold: this model cannot be saved"
        )
    if isinstance(value, likelihoods.Likelihood | Prior):
        fields = {f.name: _pack(f"{name}.{f.name}", getattr(value, f.name), arrays) for f in dataclasses.fields(value)}  # pyright: ignore[reportArgumentType]
        return {"class": type(value).__name__, "fields": fields}
    return value.item() if isinstance(value, np.generic) else value


def _unpack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    if isinstance(value, dict) and set(value) == {"array"}:
        return arrays[value["array"]]
    if isinstance(value, dict) and set(value) == {"class", "fields"}:
        kind = (_FAMILIES | {"Prior": Prior})[value["class"]]
        return kind(**{name: _unpack(field, arrays) for name, field in value["fields"].items()})
    return value


def _label(row: Any) -> Any:
    row = row.item() if isinstance(row, np.generic) else row
    return row if isinstance(row, int | float | str) else str(row)
