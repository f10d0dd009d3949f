"""The program ``rflvm``: its commands, and what becomes of an error: one line, an exit code, no traceback."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from typing import Any

import click

from . import compare, datasets, demo, diagnose, fit, impute, messages, report, reproduce, sample, transform
from .problems import ProblemsError

INTERRUPTED = 130


class Program(click.Group):
    """A group of commands whose errors are one line on stderr, or a traceback with ``--debug`` anywhere on the line."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and exit with the code that the help lists."""
        given = list(sys.argv[1:] if args is None else args)
        end = given.index("--") if "--" in given else len(given)
        debug = "--debug" in given[:end]
        given = [word for word in given[:end] if word != "--debug"] + given[end:]
        extra |= {"windows_expand_args": windows_expand_args, "obj": given}  # commands may say how they were called
        try:
            code = super().main(given, prog_name or "rflvm", complete_var, standalone_mode=False, **extra)
        except click.Abort as error:
            if debug:
                raise error.__cause__ or error from None
            messages.error("interrupted: nothing was written")
            code = INTERRUPTED
        except click.UsageError as error:
            where = "rflvm" if error.ctx is None else error.ctx.command_path
            messages.error(f"{error.format_message().rstrip('.')} (see {where} --help)")
            code = 2
        except click.ClickException as error:
            messages.error(error.format_message())
            code = 1
        except Exception as error:
            if debug:
                raise
            messages.error(messages.describe(error))
            if isinstance(error, ProblemsError) and error.options:
                click.echo(f"to put up with all of them: {shlex.join(['rflvm', *given, *error.options])}", err=True)
            code = 1
        sys.exit(code or 0)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order in which one needs them."""
        return list(self.commands)


def _version(context: click.Context, parameter: click.Parameter, asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        click.echo(f"rflvm {version('rflvm')}")
        context.exit()


@click.group(
    "rflvm",
    cls=Program,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks; may stand anywhere on the line.")
@click.option(
    "--cache/--no-cache", default=True, envvar="RFLVM_CACHE", help="Keep compiled programs in the user's folder for "
    "caches, so that the next run need not wait for them. RFLVM_CACHE=0 is --no-cache too."
)  # fmt: skip
@click.pass_context
def program(context: click.Context, cache: bool) -> None:
    """Random feature latent variable models: a picture of the rows of a table, with its uncertainty.

    \b
    Examples:
      rflvm fit counts.csv                   fit, write counts-rflvm/report.html ...
      rflvm fit counts.csv --out run/ --quick            a first look, in a minute
      rflvm transform run/model.npz new.csv --out new_latent.csv
      rflvm impute run/model.npz counts.csv --out filled.csv
      rflvm demo                             the paper's S-curve, to see it work

    Tables are CSV, TSV (both also .gz), Excel, Parquet, NPY, NPZ, Matrix Market and h5ad files; empty cells, NA, NaN
    and the like are missing. Output files are written whole or not at all, and none is replaced without --force.

    \b
    Exit codes:
      0    success
      1    bad input, or a run that failed; one line on stderr says why
      2    wrong usage
      130  interrupted (Ctrl-C); a sampling run keeps what it has drawn
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


for _command in (
    fit.command, transform.command, impute.command, sample.command, diagnose.command, report.command,
    compare.command, demo.command, datasets.command, reproduce.command,
):  # fmt: skip
    program.add_command(_command)
