"""``rflvm diagnose``: whether a fit can be relied on."""

from __future__ import annotations

import contextlib
from typing import Any

import click

from . import messages
from .families import family_option
from .options import model_argument


@click.command("diagnose")
@model_argument
@family_option
def command(model: str, likelihood: Any) -> None:
    """Say whether MODEL can be relied on, and what to do if not.

    MODEL is a model.npz or the folder of a run.

    \b
    Example:
      rflvm diagnose run/
    """
    from . import models

    fitted = models.load(model, likelihood)
    with contextlib.redirect_stdout(None):
        page = fitted.diagnose()
    click.echo(messages.in_options(page))
