"""``rflvm fit``: a table in, a folder with the fitted model and all that follows from it out."""

from __future__ import annotations

import math
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from ..files.npz import FileError
from . import messages, programs, streamed
from .columns import Wanted
from .families import NAMES, Family, FamilyOfColumns, by_column
from .folder import CHECKPOINT, Folder
from .options import check_pixels, form_options, table_options

if TYPE_CHECKING:
    from ..estimator import RFLVM
    from ..likelihoods import Likelihood
    from .table import FileTable

FILES = ("model.npz", "latent.csv", "latent.parquet", "posterior.nc", "report.html", "log.json")
UNEQUAL = 10  # ratio of the 95th to the 5th percentile of the rows' mean counts, from which on a note is given
SAMPLING = {
    "samples": "--samples",
    "burnin": "--burnin",
    "chains": "--chains",
    "full_draws": "--full-draws",
    "max_time": "--max-time",
    "jobs": "--jobs",
}


class Sweeps(click.IntRange):
    """A number of sweeps, or auto."""

    name = "integer or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Auto as it is."""
        return value if value == "auto" else super().convert(value, param, ctx)


def _even(context: click.Context, parameter: click.Parameter, value: int) -> int:
    if value % 2:
        raise click.BadParameter(f"{value} is odd, and features come in pairs (cosine and sine): give {value + 1}")
    return value


@click.command("fit")
@click.argument("table", metavar="TABLE")
@click.option(
    "--out", metavar="FOLDER", help="Where to write; made if it is not there.  [default: counts-rflvm for counts.csv]"
)
@click.option(
    "--likelihood",
    metavar="NAME",
    default="auto",
    type=Family(),
    help="The kind of data: " + ", ".join(NAMES) + "; auto, which looks at the cells and says what it chose; or "
    "MODULE:CLASS, a family of your own.",
)
@click.option(
    "--columns",
    metavar="NAME=COLUMNS",
    multiple=True,
    type=FamilyOfColumns(),
    help="In place of --likelihood, the family of some columns, by names or numbers: poisson=visits,calls or "
    "bernoulli=3-9; auto looks at each of its columns (repeatable, until every column has one).",
)
@click.option(
    "--exposure",
    type=click.Choice(["total"]),
    help="The log of a row's total is its offset: rows of counts are compared by their composition, not their size.",
)
@click.option("--components", metavar="N", default=2, type=click.IntRange(1), help="Latent dimensions.")
@click.option(
    "--features",
    metavar="N",
    default=100,
    type=click.IntRange(2),
    callback=_even,
    help="Random features, an even number; more for very wiggly functions.",
)
@click.option(
    "--inference",
    default="gibbs",
    type=click.Choice(["gibbs", "map", "stream"]),
    help="Draw from the posterior, find its maximum, or stream a table of more than 20,000 rows, in memory or not.",
)
@click.option("--quick", is_flag=True, help="The same as --inference map: for a first look, or a large table.")
@click.option(
    "--dynamics",
    type=click.Choice(["matern32", "ou"]),
    help="Rows of a session follow one another: positions are smooth paths over time, or rough ones; see --time and "
    "--session.",
)
@click.option(
    "--kernel",
    default="learned",
    type=click.Choice(["learned", "rbf"]),
    help="Learn the spectral density of the kernel, or take an RBF kernel, of which the lengthscale is learned.",
)
@click.option(
    "--samples",
    metavar="N",
    default="auto",
    type=Sweeps(1),
    help="Sweeps after burn-in; auto, until positions and predictions have settled, 2000 at most.",
)
@click.option("--burnin", metavar="N", default="auto", type=Sweeps(0), help="Sweeps of burn-in; auto, 200.")
@click.option("--chains", metavar="N", default=2, type=click.IntRange(1), help="Independent chains.")
@click.option(
    "--full-draws",
    is_flag=True,
    help="Keep the draws of all sweeps, with all coefficients and the log density of every cell: large files.",
)
@click.option(
    "--max-time",
    metavar="SECONDS",
    type=click.FloatRange(0, min_open=True),
    help="End sampling after this time, with the draws that there are after burn-in; --resume goes on.",
)
@click.option(
    "--jobs",
    metavar="N",
    default=1,
    type=int,
    help="Processes in which the chains run side by side, -1 for one per core; the draws are the same.",
)
@click.option(
    "--seed", metavar="N", default=0, type=click.IntRange(0, 2**31 - 1), help="The same seed gives the same draws."
)
@table_options
@click.option(
    "--covariates",
    metavar="COLUMN",
    multiple=True,
    help="Column of numbers or categories, such as batch or age, with a linear effect on every column: the picture "
    "shows what is left. It is no part of the table (repeatable).",
)
@form_options
@click.option(
    "--resume",
    is_flag=True,
    help="Go on with the run in --out, to the same draws as without the interruption; --samples may be larger than it "
    "was, and --max-time another.",
)
@click.option("--force", is_flag=True, help="Delete the run in --out first.")
@click.option(
    "--distributed",
    is_flag=True,
    help="Divide the rows among the processes that mpirun, srun or the like has started (--inference stream).",
)
@click.option("--progress/--no-progress", default=None, help="Show progress; by default on a terminal only.")
def command(
    table: str, out: str | None, wanted: Wanted, covariates: tuple[str, ...], quick: bool, resume: bool, force: bool,
    **options: Any,
) -> None:  # fmt: skip
    """Fit a model to TABLE and write a folder.

    Rows are what you want a picture of. A first line with text is the header; a first column without a name, or with
    text, has the names of the rows.

    \b
    The folder gets
      report.html   the picture, the diagnostics, an explorer: look at this first
      latent.csv    position and standard deviation of every row (streamed:
                    latent.parquet)
      model.npz     the model, for rflvm transform, impute, sample and Python
      posterior.nc  draws of positions and kernel, for ArviZ; with --full-draws
                    of everything
      log.json      settings, versions, what auto chose and why, convergence
      checkpoint/   the draws so far, for --resume; may be deleted when all is done

    \b
    Examples:
      rflvm fit counts.csv
      rflvm fit counts.csv --out run/ --quick --colour party
      rflvm fit counts.tsv.gz --samples 1000 --burnin 500 --chains 4 --jobs 4
      rflvm fit digits.npy --out digits/ --image-shape 28x28
      rflvm fit spectra.csv --out spectra/ --ordered
      rflvm fit words.csv --out words/ --exposure total
      rflvm fit cells.h5ad --out cells/ --layer counts --colour cell_type
      rflvm fit cells.h5ad --out atlas/ --inference stream
      rflvm fit survey.csv --columns poisson=visits --columns bernoulli=q1-q9
      rflvm fit survey.csv --covariates age --covariates school
      rflvm fit spikes.csv --dynamics matern32 --time seconds --session day
      rflvm fit counts.csv --out run/ --resume            after Ctrl-C
    """
    context = click.get_current_context()
    typed = click.core.ParameterSource.COMMANDLINE
    given = {name for name in context.params if context.get_parameter_source(name) is typed}
    if quick and "inference" in given and options["inference"] == "gibbs":
        raise click.UsageError("--quick means --inference map: leave out one of the two", context)
    inference = "map" if quick else options["inference"]
    for name, option in (SAMPLING | ({"resume": "--resume"} if inference == "map" else {})).items():
        if inference != "gibbs" and name in given:
            other = "--quick or --inference map" if inference == "map" else "--inference stream"
            raise click.UsageError(f"{option} is for sampling, and {other} does not sample", context)
    if options["columns"] and "likelihood" in given:
        raise click.UsageError("--columns gives every column a family: leave out --likelihood", context)
    for name, present in (("--columns", options["columns"]), ("--covariates", covariates)):
        if present and inference == "stream":
            raise click.UsageError(f"{name} is for --inference gibbs and map, not yet for stream", context)
    if resume and force:
        raise click.UsageError("--resume goes on with a run, --force deletes it: leave out one of the two", context)
    if options["exposure"] is not None and wanted.offset is not None:
        raise click.UsageError("--exposure makes the offset from the rows: leave out --offset", context)
    if options["distributed"] and inference != "stream":
        raise click.UsageError("--distributed is for --inference stream: other engines have one process", context)
    if options["distributed"] and not streamed.is_streamed(table):
        formats = ", ".join(streamed.SUFFIXES)
        raise click.UsageError(f"--distributed is for tables that are read in blocks: {formats} and folders", context)
    whole = options["ordered"] or options["image_shape"] is not None
    wanted = wanted._replace(whole=whole, covariates=covariates)
    out = out or f"{Path(table).name.split('.')[0] or 'table'}-rflvm"
    if options["distributed"] and not streamed.is_first_process():
        _help_to_fit(table, Path(out), wanted, options)
        return
    folder = Folder(out, FILES, resume=resume, force=force)
    _fit(table, folder, wanted, inference, resume, options)


def _fit(path: str, folder: Folder, wanted: Wanted, inference: Any, resume: bool, options: dict[str, Any]) -> None:
    from . import reading

    started = time.time()
    programs.keep()
    by_block = inference == "stream" and streamed.is_streamed(path)
    table: Any = streamed.open_file(path, wanted) if by_block else reading.read(path, wanted)
    if options["columns"]:
        options = options | {"likelihood": by_column(table, options["columns"])}
    model = _model(inference, options)
    if not by_block:
        table.notes.extend(table.covariate_notes())
        _check(table, model, options["image_shape"])
    if not by_block and options["exposure"] is None:
        table.notes.extend(_unequal_rows(table, options["likelihood"]))
    for text in table.notes:
        messages.note(text)
    checkpoint = None if inference == "map" else folder.checkpoint
    with folder, messages.captured() as captured:
        try:
            beside = {} if by_block else table.chronology() | {"covariates": table.covariates}
            model.fit(
                table.frame(),
                offset=table.offset,
                checkpoint=checkpoint,
                layer=wanted.layer if by_block else None,
                **beside,
            )
            seconds = time.time() - started
            form = {name: options[name] for name in ("image_shape", "ordered")}
            left_out = _write(model, table, folder.new, form, options["full_draws"])
            captured.warnings.extend(left_out)
            log = _log(model, table, form, started, seconds, resume, captured)
            (folder.new / "log.json").write_text(log, encoding="utf-8")
            files = folder.publish()
        except KeyboardInterrupt:
            _interrupted(folder, None)
        except OSError as error:
            if not folder.has_checkpoint:
                raise
            error.filename = error.filename or str(folder.path)
            text = f"{messages.describe(error)}; the draws so far are kept, and --resume goes on from them"
            raise FileError(text) from error
    if model.convergence_ == "interrupted":
        _interrupted(folder, model)
    _summary(model, files, seconds)


def _model(inference: Any, options: dict[str, Any]) -> RFLVM:
    """The model that is asked for, not fitted."""
    from ..estimator import RFLVM

    return RFLVM(
        n_components=options["components"],
        likelihood=options["likelihood"],
        exposure=options["exposure"],
        n_features=options["features"],
        inference=inference,
        dynamics=options["dynamics"],
        kernel=options["kernel"],
        n_samples=options["samples"],
        n_burnin=options["burnin"],
        n_chains=options["chains"],
        thin=1 if options["full_draws"] else "auto",
        max_time=options["max_time"],
        n_jobs=options["jobs"],
        random_state=options["seed"],
        progress=sys.stderr.isatty() if options["progress"] is None else options["progress"],
    )


def _help_to_fit(path: str, out: Path, wanted: Wanted, options: dict[str, Any]) -> None:
    """Do a share of the work of the first process, which writes the folder."""
    table = streamed.open_file(path, wanted)
    model = _model("stream", options | {"progress": False})
    model.fit(table.frame(), checkpoint=out / CHECKPOINT, layer=wanted.layer)


def _check(table: FileTable, model: RFLVM, image_shape: tuple[int, int] | None) -> None:
    """Refuse, before anything is written, what cannot be fitted."""
    from ..data import checks, tables
    from ..model import dynamics

    try:
        family = _family(model.likelihood, table)
        process = dynamics.get(model.dynamics, model.n_components)
        timeline = checks.timeline_for(process, tables.read(table.frame()), table.times, table.sessions)
        checked = checks.check_table(table.values, family, None, table.offset, model.n_components, timeline)
        checks.with_covariates(checked, table.covariates, None)
    except (TypeError, ValueError) as error:
        raise table.refusal(error) from error
    check_pixels(table.path, table.values.shape[1], image_shape)


def _family(likelihood: Any, table: FileTable) -> Likelihood:
    """The family that is given; for auto the Gaussian one, which as what auto chooses takes all finite numbers."""
    from .. import likelihoods
    from ..likelihoods import columns

    known = lambda family: likelihoods.Gaussian() if family == "auto" else family  # noqa: E731
    if not columns.is_specification(likelihood):
        return likelihoods.get(known(likelihood))
    names = table.columns or [str(number) for number in table.numbers]
    pairs = columns.read(likelihood, names, table.values.shape[1])
    return likelihoods.get([(known(family), numbers) for family, numbers in pairs])


def _unequal_rows(table: FileTable, likelihood: Any) -> list[str]:
    """A note, where the sizes of rows of counts differ much: X would show the size of a row before its composition."""
    import numpy as np

    counts = table.values[~np.isnan(table.values)]
    if table.offset is not None or not (likelihood == "auto" or _family(likelihood, table).log_link):
        return []
    if (counts < 0).any() or (counts != np.floor(counts)).any() or counts.max() < 2:
        return []
    seen = ~np.isnan(table.values).all(axis=1)  # with --dynamics a row may have no cell
    means = np.nanmean(table.values[seen], axis=1)
    low, high = np.quantile(means[means > 0], [0.05, 0.95])
    if high < UNEQUAL * low:
        return []
    return [
        f"{table.path}: some rows have {high / low:.0f} times the counts of others (95th against 5th percentile), and "
        "the picture will show that first; to compare rows by their composition alone give --exposure total"
    ]


def _write(model: RFLVM, table: FileTable, folder: Path, form: dict[str, Any], full: bool) -> list[str]:
    """Write all files but the log, the report in the given form; return which were left out, and why."""
    from . import output

    model.set_params(progress=False)
    model.save(folder / "model.npz")
    left_out = []
    writers = {
        "posterior.nc": lambda path: _write_posterior(model, path, full),
        "report.html": lambda path: _write_report(model, table, path, form),
    }
    if isinstance(table, streamed.StreamedFile):
        writers[streamed.POSITIONS] = lambda path: streamed.write_positions(model, path)
    else:
        rows = output.latent_columns(table, model.embedding_, model.embedding_std_)
        (folder / "latent.csv").write_text(output.delimited(*rows), encoding="utf-8")
    for name, write in writers.items():
        try:
            write(folder / name)
        except OSError:
            raise
        except Exception as error:  # the fit, which may have taken hours, is not lost for a picture of it
            (folder / name).unlink(missing_ok=True)
            left_out.append(f"{name} is left out: {messages.describe(error)}")
            messages.warn(left_out[-1])
    return left_out


def _write_posterior(model: RFLVM, path: Path, full: bool) -> None:
    from ..fitted import datatree

    try:
        import h5netcdf  # noqa: F401
        import xarray  # noqa: F401
    except ImportError as error:
        raise ImportError("it needs xarray and h5netcdf: pip install 'rflvm[diagnostics]'") from error
    datatree.convert(model.fitted_, cells=full).to_netcdf(path, engine="h5netcdf")


def _write_report(model: RFLVM, table: FileTable, path: Path, form: dict[str, Any]) -> None:
    from ..report import write_report

    about = {"row_labels": table.labels, "colours": table.colours() or None, "title": table.path.name}
    write_report(model, path, **about, ambiguous=True, say=messages.in_options, **form)


def _log(
    model: RFLVM,
    table: FileTable,
    form: dict[str, Any],
    started: float,
    seconds: float,
    resume: bool,
    captured: messages.Captured,
) -> str:
    """What was done, with what, and what came out, as JSON."""
    import datetime
    import json
    import platform
    from importlib.metadata import version

    import numpy as np

    from ..sampling.progress import acceptance_rates

    finite = lambda value: value if math.isfinite(value) else None  # noqa: E731
    run = model.draws_.run
    about = {
        "command": _command(),
        "status": "interrupted" if model.convergence_ == "interrupted" else "finished",
        "started": datetime.datetime.fromtimestamp(started, datetime.UTC).isoformat(timespec="seconds"),
        "seconds": round(seconds, 1),
        "resumed": resume,
        "versions": {"python": platform.python_version()}
        | {name: version(name) for name in ("rflvm", "jax", "numpy", "scipy", "scikit-learn")},
        "table": {
            "path": str(table.path.absolute()),
            "rows": len(model.embedding_),
            "columns": model.n_features_in_,
            "missing": float(np.isnan(model.fitted_.about.values).mean()),
            "offset": table.offset is not None,
            "covariates": list(table.covariates or ()),
            "classes": list(table.classes),
            "notes": table.notes,
        },
        "settings": {
            name: _named(value) for name, value in model.get_params().items() if name not in ("prior", "progress")
        },
        "report": form,
        "likelihood": {"family": model.likelihood_.name, "reason": model.likelihood_reason_},
        "convergence": model.convergence_,
        "ended": model.draws_.ended,
        "arrangements": [one | {"elpd": finite(one["elpd"])} for one in model.arrangements_],
        "iterations": model.n_iter_,
        "log_posterior": finite(model.log_posterior_),
        "starts": model.starts_,
        "diagnostics": [
            {"quantity": q.name, "rhat": finite(q.rhat), "effective_draws": finite(q.ess), "converged": q.converged}
            for q in model.diagnostics_
        ],
        "acceptance": {} if run is None else acceptance_rates(model.draws_.info),
        "notes": captured.notes,
        "warnings": captured.warnings,
    }
    return json.dumps(about, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def _named(setting: Any) -> Any:
    """A setting with families by their names."""
    pairs = isinstance(setting, list)
    return [[_named(family), columns] for family, columns in setting] if pairs else getattr(setting, "name", setting)


def _command(*more: str) -> str:
    """The command that is running, or one like it."""
    words = [word for word in click.get_current_context().obj if not (more and word in ("--force", "--resume"))]
    return shlex.join(["rflvm", *words, *more])


def _interrupted(folder: Folder, model: RFLVM | None) -> NoReturn:
    """Say what is kept and how to go on, and exit."""
    again = f"go on with: {_command('--resume')}"
    if model is not None and model.draws_.run is not None:
        n, n_sweeps = model.draws_.n_draws, model.n_iter_
        kept = f"interrupted after {n_sweeps} sweeps: {folder.path / 'model.npz'} has {n} draws of each chain; {again}"
    elif model is not None:
        kept = f"interrupted: {folder.path / 'model.npz'} has the best positions so far; to begin anew give --force"
    elif folder.has_checkpoint:
        kept = f"interrupted: what was done so far is in {folder.checkpoint}; {again}"
    else:
        kept = "interrupted: nothing was written"
    messages.note(kept)
    raise click.exceptions.Exit(130)


def _summary(model: RFLVM, files: list[Path], seconds: float) -> None:
    from . import output

    N, J = len(model.embedding_), model.n_features_in_
    click.echo(f"{N} rows x {J} columns, {model.likelihood_.name} ({model.likelihood_reason_})")
    run = model.draws_.run
    n_chains = len(model.draws_["X"])
    chains = f"{model.n_iter_} sweeps of {n_chains} chain{'s' * (n_chains > 1)}"
    steps = "iterations" if model.fitted_.streamed is None else "epochs"
    done = f"{model.n_iter_} {steps}" if run is None else chains
    click.echo(f"{model.convergence_}: {done} in {seconds:.0f} s")
    click.echo(f"wrote {', '.join(f'{file} ({output.size(file)})' for file in files)}")
