"""A fit as one file, and back: arrays, and a header of plain JSON that says what they are.

Nothing in a file is executed: families are looked up by their class name among those of this package and the one that
the reader names, and all that they hold is numbers and text. What is read is checked: every shape must agree with the
table and the sizes of the model, and every number must be finite. A family made of a user's own functions cannot be
written down and is refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from os import PathLike
from typing import Any

import jax
import numpy as np

from .. import likelihoods
from ..data import checks
from ..data.covariates import Covariate
from ..data.times import Timeline
from ..files import npz
from ..files.trees import arrays_of, restore
from ..likelihoods import Likelihood
from ..maximum.competition import Start
from ..model.draws import Draws, Run, predictors_shape, small_parts
from ..model.dynamics import Matern
from ..model.joint import Model, Prior, state_shapes
from ..numerics.precision import precision
from ..numerics.units import Units
from ..sampling.chain import Chain, chain_shapes
from ..sampling.sweep import Moves
from ..streaming.functions import Functions
from ..streaming.result import Epoch
from .diagnostics import Quantity
from .fit import About, Fitted, Streamed, members_among
from .members import Members
from .stacking import Arrangement

KIND = "model"
SETTINGS = ("inference", "kernel", "exposure")
STREAMED = ("embedding", "covariance", "rows", "anchors")  # arrays of ``fit.Streamed``
UNBOUNDED = ("members.lowest", "members.highest")  # what may be infinite
_CLASSES: dict[str, type] = {family.__name__: family for family in (*likelihoods.FAMILIES, likelihoods.Mixed)} | {
    "Prior": Prior,
    "Matern": Matern,
}


def save(fitted: Fitted, params: dict[str, Any], path: str | PathLike) -> None:
    """Write a fit and the parameters of its estimator."""
    about, draws = fitted.about, fitted.draws
    if likelihoods.is_specification(params.get("likelihood")):
        pairs = likelihoods.read(params["likelihood"], about.columns, about.values.shape[1])
        params = params | {"likelihood": [list(pair) for pair in pairs]}
    packed = {f"params.{name}": value for name, value in params.items()}
    packed |= {
        "likelihood_": fitted.likelihood,
        "prior": fitted.model.prior,
        "dynamics": fitted.model.dynamics,
        "settings": {name: getattr(about, name) for name in SETTINGS},
        "likelihood_reason_": about.likelihood_reason,
        "n_iter_": fitted.n_iter,
        "convergence_": fitted.convergence,
        "_seed": about.seed,
        "feature_names_in_": None if about.columns is None else list(about.columns),
        "_rows": None if about.rows is None else [_label(row) for row in about.rows],
        "diagnostics_": [list(quantity[:3]) for quantity in fitted.diagnostics],
        "arrangements": [
            dataclasses.asdict(one) | {"elpd": one.elpd if np.isfinite(one.elpd) else None}
            for one in fitted.arrangements
        ],
        "log_posterior": fitted.log_posterior if np.isfinite(fitted.log_posterior) else None,
        "starts": [dataclasses.asdict(start) for start in fitted.starts],
        "run": None if draws.run is None else draws.run._asdict(),
        "draws": {
            "beta_thin": draws.beta_thin,
            "interrupted": draws.interrupted,
            "ended": draws.ended,
            "H": fitted.model.H,
        },
        "theta": list(fitted.members.theta),
        "covariates": [list(covariate) for covariate in about.coding],
    }
    arrays = {
        "embedding_": fitted.embedding,
        "embedding_std_": fitted.embedding_std,
        "_values": _compact(about.values),
        "_offset": about.offset,
    }
    if about.covariates is not None:
        arrays["_covariates"] = about.covariates
    arrays |= arrays_of({"rows": {f"{i}": quantity[3:] for i, quantity in enumerate(fitted.diagnostics)}})
    if about.timeline is not None:
        packed["sessions"] = [_label(label) for label in about.timeline.labels]
        packed["typical_gap"] = about.timeline.typical
        arrays |= {"_times": about.timeline.times, "_session": about.timeline.session}
    arrays |= {f"draws.{name}": array for name, array in draws.arrays.items()}
    if fitted.streamed is not None:
        packed["epochs"] = [list(epoch) for epoch in fitted.streamed.epochs]
        parts = {name: getattr(fitted.streamed, name) for name in STREAMED}
        arrays |= arrays_of({"streamed": parts | {"functions": fitted.streamed.functions}})
    arrays |= arrays_of({"units": draws.units})
    arrays |= {name: _compact(array) for name, array in arrays_of({"members": fitted.members}).items()}
    chains = zip(draws.states, draws.tuning, draws.info_sums, strict=True)
    arrays |= arrays_of({"chains": [Chain(*parts) for parts in chains]})
    header = {name: _pack(name, value, arrays) for name, value in packed.items()}
    npz.write(path, {"kind": KIND, "model": header}, arrays)


def load(path: str | PathLike, likelihood: type[Likelihood] | None = None) -> tuple[Fitted, dict[str, Any]]:
    """A fit that ``save`` wrote, and the parameters of its estimator.

    ``likelihood`` is the class of a family that is not of this package.
    """
    header, arrays = npz.read(path, KIND)
    classes = _CLASSES if likelihood is None else _CLASSES | {likelihood.__name__: likelihood}
    try:
        packed = {name: _unpack(value, arrays, classes) for name, value in header["model"].items()}
        fitted = _unpacked(packed, arrays)
        for problem in _problems(fitted):
            raise ValueError(problem)
    except UnknownFamilyError as error:
        raise UnknownFamilyError(error.family, f"{path} was fitted with") from None
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise npz.FileError(f"{path} does not hold a model that this version can read: {error!r}") from error
    return fitted, {name[7:]: value for name, value in packed.items() if name.startswith("params.")}


class UnknownFamilyError(npz.FileError):
    """The family of a file is not of this package, and its class was not given."""

    def __init__(self, family: str, what: str = "the file has"):
        super().__init__(
            f"{what} {family}, which is not a likelihood of rflvm: name its class, load(path, likelihood=...)"
        )
        self.family = family


def _unpacked(packed: dict[str, Any], arrays: dict[str, np.ndarray]) -> Fitted:
    # Version 0.1 had no settings and no prior of their own: they are the estimator's parameters.
    settings = packed.get("settings") or {name: packed[f"params.{name}"] for name in SETTINGS}
    prior = packed.get("prior", packed["params.prior"]) or Prior()
    about = About(
        values=np.asarray(arrays["_values"], float),
        offset=arrays["_offset"],
        rows=packed["_rows"],
        columns=None if packed["feature_names_in_"] is None else tuple(packed["feature_names_in_"]),
        seed=packed["_seed"],
        likelihood_reason=packed["likelihood_reason_"],
        covariates=arrays.get("_covariates"),
        coding=tuple(_covariate(*fields) for fields in packed.get("covariates", ())),
        timeline=_timeline(packed, arrays),
        **settings,
    )
    D = arrays["embedding_"].shape[1]
    draws = Draws(
        model=Model(packed["likelihood_"], D, packed["draws"]["H"], prior, packed.get("dynamics")),
        arrays={name[6:]: array for name, array in arrays.items() if name.startswith("draws.")},
        beta_thin=packed["draws"]["beta_thin"],
        interrupted=packed["draws"]["interrupted"],
        ended=packed["draws"].get("ended", ""),  # version 0.1 did not say
        units=_units(arrays),
    )
    with precision("float64"):
        if "members.lowest" not in arrays:  # before 0.2
            computed = members_among(draws, about, None if about.inference == "gibbs" else arrays["embedding_"])
            arrays = arrays | {f"members.{end}": getattr(computed, end) for end in ("lowest", "highest")}
        placeholders: Any = dict.fromkeys(Members._fields, 0) | {"theta": dict.fromkeys(packed["theta"], 0)}
        if "members.lengthscale" not in arrays:
            placeholders["lengthscale"] = None
        members = restore({"members": Members(**placeholders)}, arrays)["members"]
        if packed["run"] is not None:
            draws.run = Run(**(packed["run"] | {"moves": tuple(packed["run"]["moves"])}))
            table = checks.encode_table(
                about.values, draws.model.likelihood, about.offset, draws.units, about.timeline, about.covariates
            )
            data = checks.to_device(table, "float64")
            like = chain_shapes(data, draws.model, Moves(*draws.run.moves))  # pyright: ignore[reportArgumentType]
            chains = restore({"chains": [like] * len(draws["X"])}, arrays)["chains"]
            draws.states, draws.tuning, draws.info_sums = (list(parts) for parts in zip(*chains, strict=True))
    return Fitted(
        about=about,
        draws=draws,
        members=jax.tree.map(lambda part: np.asarray(part, float), members),
        embedding=arrays["embedding_"],
        embedding_std=arrays["embedding_std_"],
        n_iter=packed["n_iter_"],
        convergence=packed["convergence_"],
        diagnostics=tuple(_quantity(i, *fields, arrays=arrays) for i, fields in enumerate(packed["diagnostics_"])),
        arrangements=tuple(_arrangement(fields) for fields in packed.get("arrangements", ())),
        # Version 0.1 kept nothing of the starts.
        log_posterior=np.nan if packed.get("log_posterior") is None else packed["log_posterior"],
        starts=tuple(_start(fields) for fields in packed.get("starts", ())),
        streamed=_streamed(packed, arrays) if "epochs" in packed else None,
    )


def _streamed(packed: dict[str, Any], arrays: dict[str, np.ndarray]) -> Streamed:
    inside = {name.removeprefix("streamed."): array for name, array in arrays.items() if name.startswith("streamed.")}
    theta = {name: inside[f"functions.theta.{name}"] for name in packed["theta"]}
    fields = {name: inside[f"functions.{name}"] for name in Functions._fields if name != "theta"}
    return Streamed(
        **{name: inside[name] for name in STREAMED},
        functions=Functions(theta=theta, **fields),
        epochs=tuple(Epoch(*fields) for fields in packed["epochs"]),
    )


def _covariate(name: str, categories: list[str] | None, location: list[float], scale: float) -> Covariate:
    return Covariate(name, None if categories is None else tuple(categories), tuple(location), scale)


def _start(fields: dict[str, Any]) -> Start:
    heights: tuple[float, ...] = tuple(fields.pop("heights"))
    return Start(heights=heights, **fields)


def _compact(array: np.ndarray) -> np.ndarray:
    """In single precision where that loses nothing; in double again when it is read."""
    with np.errstate(over="ignore"):
        single = array.astype(np.float32)
    return single if np.array_equal(single, array, equal_nan=True) else array


def _quantity(i: int, *fields: Any, arrays: dict[str, np.ndarray]) -> Quantity:
    """A quantity with what it says of each row; version 0.1 had nothing of rows."""
    return Quantity(*fields, *(arrays.get(f"rows.{i}.{part}") for part in range(2)))


def _arrangement(fields: dict[str, Any]) -> Arrangement:
    elpd = np.nan if fields["elpd"] is None else fields["elpd"]
    return Arrangement(**(fields | {"chains": tuple(fields["chains"]), "elpd": elpd}))


def _timeline(packed: dict[str, Any], arrays: dict[str, np.ndarray]) -> Timeline | None:
    """Times and sessions, before anything is made of them."""
    if packed.get("dynamics") is None:
        return None
    timeline = Timeline(arrays["_times"], arrays["_session"], tuple(packed["sessions"]), packed["typical_gap"])
    N = len(arrays["_values"])
    step = np.diff(timeline.session)
    if timeline.times.shape != (N,) or timeline.session.shape != (N,) or not np.isfinite(timeline.times).all():
        raise ValueError(f"times and sessions must be {N} numbers each")
    if timeline.session[0] != 0 or not np.isin(step, [0, 1]).all() or timeline.session[-1] + 1 != len(timeline.labels):
        raise ValueError("sessions do not follow one another")
    if not (timeline.gap[~timeline.first] > 0).all() or not timeline.typical > 0:
        raise ValueError("times do not increase within a session")
    return timeline


def _units(arrays: dict[str, np.ndarray]) -> Units | None:
    """The units of the table, before anything is standardised by them; version 0.1 had none."""
    if "units.scale" not in arrays:
        return None
    units, J = Units(arrays["units.location"], arrays["units.scale"]), arrays["_values"].shape[1]
    for name, part in units._asdict().items():
        if part.shape != (J,) or not np.isfinite(part).all():
            raise ValueError(f"units.{name} must be {J} finite numbers, got shape {part.shape}")
    if not (units.scale > 0).all():
        raise ValueError("units.scale must be positive")
    return units


def _problems(fitted: Fitted) -> Iterator[str]:
    """What does not agree with the table and the sizes of the model, or is not finite."""
    about, draws, members = fitted.about, fitted.draws, fitted.members
    N, J = about.values.shape
    D, H = fitted.n_components, fitted.model.H
    if np.isinf(about.values).any():
        yield "the table has infinite cells"
    with precision("float64"):
        state = state_shapes(fitted.data(), fitted.model)
    n_predictors = state.beta.shape[1]
    C, S = draws["log_joint"].shape
    kept = {name: part.shape for name, part in small_parts(state).items()} | {"log_joint": ()}
    if "F" in draws.arrays:  # version 0.1 kept none, and there is none around a maximum
        kept["F"] = predictors_shape(state)
    expected: dict[str, tuple[Any, tuple[int, ...]]] = {
        "offset": (about.offset, (N,)),
        "embedding": (fitted.embedding, (N, D)),
        "embedding_std": (fitted.embedding_std, (N, D)),
        "beta": (draws["beta"], (C, -(-S // draws.beta_thin), *state.beta.shape)),
    }
    expected |= {name: (draws[name], (C, S, *shape)) for name, shape in kept.items()}
    if set(draws.arrays) != {*kept, "beta"}:
        yield f"the unknowns that were drawn are {', '.join(sorted(draws.arrays))}, expected others"
    n_members, n_anchors = members.anchors.shape[:2]
    expected |= {
        "members.W": (members.W, (n_members, H, D)),
        "members.beta": (members.beta, (n_members, *state.beta.shape)),
        "members.lowest": (members.lowest, (n_members, n_predictors)),
        "members.highest": (members.highest, (n_members, n_predictors)),
        "members.anchors": (members.anchors, (n_members, n_anchors, D)),
        "members.F": (members.F, (n_anchors, n_predictors)),
        "members.points": (members.points, (n_members, members.points.shape[1], D)),
    }
    if state.lengthscale is not None:
        expected["members.lengthscale"] = members.lengthscale, (n_members, *state.lengthscale.shape)
    expected |= {
        f"members.{name}": (members.theta[name], (n_members, *state.theta[name].shape)) for name in state.theta
    }
    if fitted.streamed is not None:
        everywhere, functions = fitted.streamed, fitted.streamed.functions
        n_rows = len(everywhere.embedding)
        expected |= {
            "streamed.embedding": (everywhere.embedding, (n_rows, D)),
            "streamed.covariance": (everywhere.covariance, (n_rows, D * (D + 1) // 2)),
            "streamed.rows": (everywhere.rows, (N,)),
            "streamed.anchors": (everywhere.anchors, (len(everywhere.anchors), D)),
            "streamed.functions.W": (functions.W, (H, D)),
            "streamed.functions.beta": (functions.beta, state.beta.shape),
        }
        expected |= {f"streamed.theta.{name}": (functions.theta[name], state.theta[name].shape) for name in state.theta}
    for name, (array, shape) in expected.items():
        if array.shape != shape:
            yield f"{name} has shape {array.shape}, expected {shape}"
        elif (np.isnan(array).any() and name != "F") or (np.isinf(array).any() and name not in UNBOUNDED):
            yield f"{name} has numbers that are not finite"
    if not ((draws["z"] >= 0) & (draws["z"] < H)).all():
        yield f"z is not between 0 and {H - 1}"
    n_covariates = sum(len(covariate.location) for covariate in about.coding)
    if (about.covariates is None) != (n_covariates == 0):
        yield "there are covariates without names, or names without covariates"
    elif about.covariates is not None and about.covariates.shape != (N, n_covariates):
        yield f"the covariates have shape {about.covariates.shape}, expected {(N, n_covariates)}"
    elif about.covariates is not None and not np.isfinite(about.covariates).all():
        yield "the covariates are not finite"
    if about.columns is not None and len(about.columns) != J:
        yield f"there are {len(about.columns)} names for {J} columns"
    if about.rows is not None and len(about.rows) != N:
        yield f"there are {len(about.rows)} labels for {N} rows"
    for leaf in jax.tree.leaves((draws.states, draws.tuning)):
        if not np.isfinite(np.asarray(leaf)).all():
            yield "a chain has numbers that are not finite"


def _pack(name: str, value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """A value as JSON; arrays go to the arrays, under the value's name."""
    if isinstance(value, np.ndarray):
        arrays[name] = value
        return {"array": name}
    if isinstance(value, Likelihood | Prior | Matern):
        fields = value.parameters() if isinstance(value, Likelihood) else dataclasses.asdict(value)
        packed = {key: _pack(f"{name}.{key}", field, arrays) for key, field in fields.items()}
        return {"class": type(value).__name__, "fields": packed}
    if isinstance(value, list) and any(isinstance(part, Likelihood | list) for part in value):
        return {"list": [_pack(f"{name}.{i}", part, arrays) for i, part in enumerate(value)]}
    return value.item() if isinstance(value, np.generic) else value


def _unpack(value: Any, arrays: dict[str, np.ndarray], classes: dict[str, type]) -> Any:
    if isinstance(value, dict) and set(value) == {"array"}:
        return arrays[value["array"]]
    if isinstance(value, dict) and set(value) == {"list"}:
        return [_unpack(part, arrays, classes) for part in value["list"]]
    if isinstance(value, dict) and set(value) == {"class", "fields"}:
        name, fields = value["class"], value["fields"]
        if name not in classes:
            raise UnknownFamilyError(name)
        if name == "Multinomial":
            fields = {}  # version 0.1 wrote trials, always None
        return classes[name](**{key: _unpack(field, arrays, classes) for key, field in fields.items()})
    return value


def _label(row: Any) -> Any:
    row = row.item() if isinstance(row, np.generic) else row
    return row if isinstance(row, int | float | str) else str(row)
