"""``rflvm datasets``: which real tables there are, on what terms, and where their files are."""

from __future__ import annotations

import click

from ..files.npz import FileError


@click.group("datasets")
def command() -> None:
    """List the real tables of the paper, or find their files.

    \b
    Examples:
      rflvm datasets list
      rflvm datasets path congress109
    """


@command.command("list")
def list_() -> None:
    """Print names, rows x columns and terms of use.

    In Python rflvm.datasets.load_NAME() reads a table.

    \b
    Example:
      rflvm datasets list
    """
    from ..datasets.registry import SOURCES

    for name, source in SOURCES.items():
        rows, columns = source.shape
        click.echo(f"{name:12} {rows:>5} x {columns:<5} {source.terms}")


@command.command("path")
@click.argument("name", metavar="NAME")
def path(name: str) -> None:
    """Print where the files of the table NAME are, or how to get them.

    They are looked for in the folder that the environment variable RFLVM_DATA names, or else among those that were
    downloaded before. Nothing is downloaded.

    \b
    Example:
      rflvm datasets path congress109
    """
    from ..datasets import fetch
    from ..datasets.registry import SOURCES

    if name not in SOURCES:
        raise FileError(f"there is no data set {name!r}: expected one of {', '.join(SOURCES)}")
    absent = []
    for file in SOURCES[name].files:
        try:
            click.echo(str(fetch.locate(name, file)))
        except FileNotFoundError as error:
            absent.append(str(error))
    if absent:
        raise FileError("; ".join(absent))
