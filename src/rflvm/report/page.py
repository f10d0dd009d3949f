"""The page: text about the data, the settings and the diagnostics, figures, and the explorer, in one HTML file."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from html import escape
from importlib.metadata import version
from importlib.resources import files
from os import PathLike
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..estimator import RFLVM
from ..files import npz
from ..fitted import arrangements, diagnosis, diagnostics
from ..fitted.fit import Fitted
from ..fitted.modes import two_modes
from ..fitted.summaries import column_names, image_shape_of, row_names
from ..numerics.errors import Sentence
from ..plots.colours import read_colours
from . import payload
from .figures import Figure, draw

FORMS = {  # how a decoded row is shown
    "bars": "Each bar is scaled to the observed range of its column. The columns that vary most are those whose "
    "expected value has the largest standard deviation over rows, relative to the root mean squared error. High or low "
    "here are those furthest above or below their mean over rows, in these standard deviations. Columns come last of "
    "which most cells are missing, or on which the draws of the functions disagree by more than the observed range.",
    "image": "All images have one grey scale, the observed range of the table. Missing pixels are blue.",
    "curve": "The curve goes over the columns in the order of the table. Its scale is the observed range of the table; "
    "what lies beyond is cut off, unless the scale is set to what is shown. Missing cells leave gaps. While the curve "
    "has the focus, the arrow keys, Page Up, Page Down, Home and End choose the column that is read.",
}
SAMPLER = Sentence('{inference_gibbs:inference="gibbs"}')


def write_report(
    model: RFLVM,
    path: str | PathLike,
    *,
    row_labels: Any = None,
    colours: Mapping[str, Any] | None = None,
    image_shape: tuple[int, int] | None = None,
    ordered: bool = False,
    ambiguous: bool = False,
    title: str | None = None,
    say: Callable[[str], str] = str,
) -> Path:
    """Write a fitted model as one HTML file that needs nothing else: no network, no other file.

    It has the latent explorer (every position is decoded as the pointer moves, as ``inverse_transform`` would), what
    ``diagnose`` says, and the figures of ``rflvm.plots``. The explorer shows a decoded row as bars, as an image
    (``image_shape``) or as a curve (``ordered``). It holds at most 5000 rows, chosen at random, and 1000 columns: those
    that vary most, of a curve evenly spaced ones (images and multinomial tables: all columns); the page says so.

    Parameters
    ----------
    model : RFLVM
        Fitted. For a family that is not of this library the explorer interpolates means that were tabulated, and has no
        intervals.
    path : path
        The file, which is replaced as a whole or not at all.
    row_labels : sequence of N, optional
        Names of the rows, in place of those of the table.
    colours : mapping of name to array (N,), optional
        Classes or numbers to colour the rows by, distinguished as in ``plots.latent``.
    image_shape : (int, int), optional
        Height and width when the columns are pixels, row by row.
    ordered : bool
        The columns are in order (time, wavelength, position): a row is drawn as a curve over them. Not together with
        ``image_shape``.
    ambiguous : bool
        Look for rows with two places that explain them (``RFLVM.ambiguous_rows``) and have the explorer say so of them.
        It takes as long as ``transform`` of the table.
    title : str, optional
        The heading.
    say : callable
        Rewords the advice: the command line has options where ``RFLVM`` has parameters.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> from rflvm import RFLVM
    >>> from rflvm.datasets import make_s_curve
    >>> from rflvm.report import write_report
    >>> truth = make_s_curve(60, 20, emissions="poisson")
    >>> model = RFLVM(likelihood="poisson", inference="map", kernel="rbf", n_features=20, init="pca", max_iter=200)
    >>> model = model.fit(truth.data)
    >>> write_report(model, "report.html", colours={"place on the curve": truth.t}).name
    'report.html'
    """
    check_is_fitted(model)
    fitted = model.fitted_
    if ordered and image_shape is not None:
        raise ValueError("ordered=True draws rows as curves and image_shape as images: give one of the two")
    N = len(fitted.embedding)
    row_labels = _of_sample(fitted, row_labels)
    labels = row_names(fitted) if row_labels is None else [str(label) for label in row_labels]
    if len(labels) != N:
        raise ValueError(f"row_labels must be {N} labels, one per row of the table, got {len(labels)}")
    given = {str(name): _of_sample(fitted, column) for name, column in ({} if colours is None else colours).items()}
    colourings = {name: read_colours(column, N) for name, column in given.items()}
    shape = None if image_shape is None else image_shape_of(fitted, image_shape)
    marked = two_modes(fitted) if ambiguous else np.zeros(N, bool)
    data = payload.build(fitted, labels, colourings, shape, bool(ordered), marked)
    pictures = draw(model, given, colourings, shape, [int(j) for j in data.order])
    style, script = _source("report.css"), _source("report.js")
    page = Template(_source("report.html")).substitute(
        policy=f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; "
        "base-uri 'none'; form-action 'none'",
        style=style,
        script=script,
        title=escape(title or "Random feature latent variable model"),
        facts=escape(_facts(fitted)),
        verdict=_verdict(fitted),
        left_out=escape(" ".join(filter(None, (_left_out(fitted, data, ordered), _ambiguous(marked))))),
        form=FORMS["image" if shape else "curve" if ordered else "bars"],
        about_data=_definitions(_about_data(fitted)),
        settings=_definitions(_settings(fitted)),
        diagnostics=_diagnostics(fitted, say),
        figures="\n".join(_picture(picture) for picture in pictures),
        version=escape(version("rflvm")),
        header=data.header,
        block=data.block,
    )
    path = Path(path)
    npz.write_text(path, page)
    return path


def _of_sample(fitted: Fitted, column: Any) -> Any:
    """What was given for all rows of a table that was streamed, for the rows that the page shows."""
    streamed = fitted.streamed
    if streamed is None or column is None or len(column) != len(streamed.embedding):
        return column
    return np.asarray(column)[streamed.rows]


def _source(name: str) -> str:
    return files("rflvm.report").joinpath(name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    """How a content security policy names a script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"


def _facts(fitted: Fitted) -> str:
    N, J = len(fitted.everywhere.embedding), fitted.about.values.shape[1]
    return (
        f"{N:,} rows x {J:,} columns · {_words(fitted.likelihood.name)} · "
        f"{fitted.n_components} latent dimension{'s' * (fitted.n_components > 1)}"
    )


def _words(name: str) -> str:
    return name.replace("_", " ")


def _verdict(fitted: Fitted) -> str:
    if fitted.advice:
        return '<p class="verdict warn"><a href="#diagnostics">Read this before relying on it</a></p>'
    if fitted.caution:
        return '<p class="verdict warn"><a href="#diagnostics">Two arrangements explain this table</a></p>'
    return '<p class="verdict good"><a href="#diagnostics">Nothing speaks against relying on this fit</a></p>'


def _left_out(fitted: Fitted, data: payload.Payload, ordered: bool) -> str:
    parts = []
    N, J = len(fitted.everywhere.embedding), fitted.about.values.shape[1]
    if len(data.rows) < N:
        parts.append(f"{len(data.rows):,} of {N:,} rows, chosen at random")
    if len(data.columns) < J:
        share = f"{len(data.columns):,} of {J:,} columns"
        parts.append(f"{share}, evenly spaced" if ordered else f"the {share} that vary most")
    return f"The explorer has {' and '.join(parts)}." if parts else ""


def _ambiguous(marked: np.ndarray) -> str:
    if not marked.any():
        return ""
    n = int(marked.sum())
    rows = f"{n:,} rows have" if n > 1 else "One row has"
    return f"{rows} two places in the picture that explain the observed cells, and what is shown of a row says so."


def _about_data(fitted: Fitted) -> dict[str, str]:
    Y = fitted.about.values
    missing = np.isnan(Y)
    names = column_names(fitted)
    low, high = np.nanmin(Y), np.nanmax(Y)
    N = len(fitted.everywhere.embedding)
    sample = {} if fitted.streamed is None else {"Below, and in the figures": f"{len(Y):,} rows, a random sample"}
    about = {"Rows x columns": f"{N:,} x {Y.shape[1]:,}"} | sample
    about |= {
        "Missing cells": f"{missing.mean():.1%} ({missing.sum():,})" if missing.any() else "none",
        "Range": f"{low:,.6g} to {high:,.6g}",
        "Mean": f"{np.nanmean(Y):,.4g}",
        "Zeros": f"{np.mean(Y[~missing] == 0):.1%}",
        "Columns": ", ".join(names[:6]) + (" …" if len(names) > 6 else ""),
    }
    if fitted.about.offset.any():
        about["Offset of rows"] = f"{fitted.about.offset.min():.3g} to {fitted.about.offset.max():.3g}"
    return about


def _settings(fitted: Fitted) -> dict[str, str]:
    about = {
        "Likelihood": f"{_words(fitted.likelihood.name)} ({fitted.about.likelihood_reason})",
        "Latent dimensions": str(fitted.n_components),
        "Random features": str(fitted.n_features),
        "Kernel": fitted.about.kernel,
        "Inference": fitted.about.inference,
        "Seed": str(fitted.about.seed),
    }
    run = fitted.draws.run
    if run is not None:
        n_chains, n_draws = fitted.draws["log_joint"].shape
        about["Chains"] = f"{n_chains}, with {run.n_burnin} sweeps of burn-in and {run.n_sampled} after it"
        about["Draws kept"] = f"{n_chains * n_draws} (one in {run.thin})" if run.thin > 1 else str(n_chains * n_draws)
    else:
        about["Iterations" if fitted.streamed is None else "Epochs"] = str(fitted.n_iter)
    return about


def _definitions(about: dict[str, str]) -> str:
    return "\n".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in about.items())


def _diagnostics(fitted: Fitted, say: Callable[[str], str]) -> str:
    warn = bool(fitted.advice or fitted.caution)
    parts = [f'<p class="advice {"warn" if warn else "good"}">{escape(say(diagnosis.verdict(fitted)))}</p>']
    run = fitted.draws.run
    if fitted.streamed is not None:
        table = "\n".join(diagnosis.epoch_table(fitted.streamed.epochs))
        parts.append(
            "<p>Fitted by the streaming engine, which visits every row once in an epoch. Positions are modes, and "
            "their uncertainty is that of normal approximations given the functions.</p>\n"
            f"<pre>{escape(table)}</pre>"
        )
        return "\n".join(parts)
    if run is None:
        parts.append(
            f"<p>Fitted by maximisation: {fitted.n_iter} iterations, ended with “{escape(fitted.convergence)}”. "
            "Uncertainty comes from a Gaussian approximation around the maximum and is a first impression; "
            f"<code>{escape(say(SAMPLER))}</code> draws from the posterior itself.</p>"
        )
        compared = "\n".join(arrangements.table(fitted.starts))
        if compared:
            parts.append(f"<p>Several starts were compared:</p>\n<pre>{escape(compared)}</pre>")
        return "\n".join(parts)
    n_chains, n_draws = len(fitted.chains), fitted.draws.n_draws
    told = diagnostics.rows_told(list(fitted.diagnostics), n_chains)
    agreed = "".join(f"<li>{escape(say(line))}</li>" for line in told)
    if len(fitted.arrangements) > 1:
        parts.append(f"<pre>{escape(chr(10).join(arrangements.weighed(fitted.arrangements)))}</pre>")
    rows = "\n".join(
        f"<tr><th scope='row'>{escape(q.name)}</th><td>{q.rhat:.2f}</td><td>{q.ess:.0f}</td>"
        f"<td>{'good' if q.converged else 'not yet'}</td></tr>"
        for q in list(fitted.diagnostics)
    )
    parts.append(
        "<div class='scroll'><table><thead><tr><th scope='col'>Quantity</th><th scope='col'>R-hat</th>"
        f"<th scope='col'>Effective draws of {n_chains * n_draws}</th><th scope='col'></th></tr></thead>"
        f"<tbody>{rows}</tbody></table></div>"
        f"<p>R-hat compares the variance between half-chains with the variance within them: of positions and "
        f"predictions at most {diagnostics.RHAT} is wanted for 95 % of the rows, and {diagnostics.ESS} effective "
        "draws. The kernel and the density may move long after the picture has settled.</p>"
        f"<ul>{agreed}</ul>"
        f"<p>Acceptance of proposals: {escape(diagnostics.acceptance(fitted.draws.info))}.</p>"
    )
    if n_chains == 1:
        parts.append("<p>One chain cannot show that others would end elsewhere: two or more are better.</p>")
    return "\n".join(parts)


def _picture(figure: Figure) -> str:
    title, caption = escape(figure.title), escape(figure.caption)
    if figure.problem:
        return f"<figure><h3>{title}</h3><p class='advice warn'>{escape(figure.problem)}</p></figure>"
    images = "".join(
        f'<img class="on-{theme}" src="{uri}" alt="{title}. {caption}" width="720" height="540">'
        for theme, uri in (("light", figure.light), ("dark", figure.dark))
    )
    return f"<figure><h3>{title}</h3>{images}<figcaption>{caption}</figcaption></figure>"
