"""The program itself: help, version, exit codes, and errors in one line."""

from __future__ import annotations

import re
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import rflvm
from rflvm.cli import main, messages
from rflvm.numerics.errors import InputError, Sentence

COMMANDS = ["fit", "transform", "impute", "sample", "diagnose", "report", "compare", "demo", "datasets", "reproduce"]


def invoke(*arguments: str):
    return CliRunner().invoke(main, list(arguments))


def test_the_help_lists_the_commands_and_the_exit_codes():
    result = invoke("--help")
    assert result.exit_code == 0
    assert re.findall(r"^  (\w+) ", result.stdout.split("Commands:")[1], re.M) == COMMANDS
    for code in (0, 1, 2, 130):
        assert re.search(rf"^    {code} +\w", result.stdout, re.M)


def paths(command: click.Command, words: tuple[str, ...] = ()):
    yield words
    if isinstance(command, click.Group):
        for name, child in command.commands.items():
            yield from paths(child, (*words, name))


@pytest.mark.parametrize("words", list(paths(main)), ids=" ".join)
def test_every_help_has_an_example_and_fits_a_terminal(words):
    result = invoke(*words, "--help")
    assert result.exit_code == 0
    assert f"      {' '.join(('rflvm', *words))}"[2:] in result.stdout
    assert max(map(len, result.stdout.splitlines())) <= 82


def test_the_version():
    result = invoke("--version")
    assert (result.exit_code, result.stdout) == (0, f"rflvm {rflvm.__version__}\n")


def test_help_does_not_wait_for_the_libraries_that_compute():
    code = (
        "import sys\n"
        "from rflvm.cli import main\n"
        "try: main(['--help'])\n"
        "finally: print(sorted({'jax', 'scipy', 'sklearn'} & set(sys.modules)), file=sys.stderr)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, "[]\n")


@pytest.mark.parametrize(
    ("words", "named", "kept"),
    [([], "", True), (["--no-cache"], "", False), ([], "0", False), (["--cache"], "0", True)],
)
def test_programs_are_kept_unless_told_otherwise(monkeypatch, tmp_path, words, named, kept):
    calls = []
    monkeypatch.setattr("rflvm.numerics.programs.keep_programs", lambda: calls.append(1))
    monkeypatch.chdir(tmp_path)
    if named:
        monkeypatch.setenv("RFLVM_CACHE", named)
    invoke(*words, "transform", "model.npz", "table.csv", "--out", "out.csv")
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    invoke(*words, "fit", "table.csv", "--components", "9")
    assert bool(calls) == kept
    assert len(calls) in (0, 2)


def test_without_a_command_the_help_is_shown_as_wrong_usage():
    result = invoke()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage: rflvm" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("fit", "Missing argument 'TABLE' (see rflvm fit --help)"),
        ("transform m.npz t.csv", "Missing option '--out' (see rflvm transform --help)"),
        ("nothing", "No such command 'nothing'"),
        ("fit t.csv --out run --nothing", "No such option"),
        ("fit t.csv --out run --features 7", "7 is odd, and features come in pairs (cosine and sine): give 8"),
        ("fit t.csv --out run --components 0", "0 is not in the range x>=1"),
        ("fit t.csv --out run --likelihood gamma", "'gamma' is not one of auto, gaussian"),
        ("fit t.csv --out run --quick --inference gibbs", "--quick means --inference map"),
        ("fit t.csv --out run --quick --samples 9", "--samples is for sampling"),
        ("fit t.csv --out run --inference map --resume", "--resume is for sampling"),
        ("fit t.csv --out run --resume --force", "--resume goes on with a run, --force deletes it"),
        ("sample run -n 0 --out -", "0 is not in the range x>=1"),
        ("compare a", "Missing argument 'B'"),
    ],
)
def test_wrong_usage_is_one_line(arguments, message):
    result = invoke(*arguments.split())
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("rflvm: error: ")
    assert message in result.stderr


def test_debug_shows_the_traceback_wherever_it_stands(tmp_path):
    for arguments in (["--debug", "diagnose", "nothing"], ["diagnose", "nothing", "--debug"]):
        assert isinstance(invoke(*arguments).exception, FileNotFoundError)
    result = invoke("diagnose", "--", "--debug")
    assert result.exit_code == 1
    assert result.stderr == "rflvm: error: --debug: no such file or directory; check the path\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, "No space left on device", "a"), "a: no space left on device; free some space"),
        (PermissionError(13, "Permission denied", "a"), "a: permission denied; choose a place that you may"),
        (MemoryError("Unable to allocate 9 TiB"), "not enough memory (Unable to allocate 9 TiB)"),
        (InputError("raise {n_burnin}\nand {n_samples}"), "raise --burnin and --samples"),
        (KeyError("x"), "unexpected KeyError ('x'): this is a bug in rflvm, and --debug shows where"),
    ],
)
def test_errors_are_told_in_one_line(error, line, monkeypatch):
    def fail(name, likelihood):
        raise error

    monkeypatch.setattr("rflvm.cli.models.load", fail)
    result = invoke("diagnose", "run")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"rflvm: error: {line}")
    assert result.stderr.count("\n") == 1


def test_an_interrupt_is_130(monkeypatch):
    def fail(name, likelihood):
        raise KeyboardInterrupt

    monkeypatch.setattr("rflvm.cli.models.load", fail)
    result = invoke("diagnose", "run")
    assert (result.exit_code, result.stderr.strip()) == (130, "rflvm: error: interrupted: nothing was written")


def test_warnings_are_one_line_each_and_logs_are_kept(capsys):
    import logging
    import warnings

    with messages.captured() as captured:
        for _ in range(2):
            warnings.warn(Sentence("raise {n_samples}\nor more"), UserWarning, stacklevel=1)
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        logging.getLogger("rflvm.gibbs").info("chains start")
    assert capsys.readouterr().err == "rflvm: warning: raise --samples or more\n"
    assert captured == (["chains start"], ["raise --samples or more"])


def test_datasets_are_listed_with_shapes_and_terms():
    result = invoke("datasets", "list")
    assert result.exit_code == 0
    assert "congress109    529 x 1000  No licence is stated" in result.stdout
    assert len(result.stdout.splitlines()) == 9


def test_the_files_of_a_dataset_are_found_or_it_is_said_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.setenv("RFLVM_DATA", str(tmp_path))
    folder = tmp_path / "congress109"
    folder.mkdir()
    (folder / "congress109.csv").touch()
    result = invoke("datasets", "path", "congress109")
    assert (result.exit_code, result.stdout) == (1, f"{folder / 'congress109.csv'}\n")
    assert "congress109members.csv is not there: put https://" in result.stderr
    (folder / "congress109members.csv").touch()
    assert invoke("datasets", "path", "congress109").exit_code == 0
    monkeypatch.delenv("RFLVM_DATA")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert "rflvm.datasets.load_spam() downloads it from https://" in invoke("datasets", "path", "spam").stderr
    assert "Terms of use: Restricted" in invoke("datasets", "path", "yale").stderr
    assert "there is no data set 'moon': expected one of bridges" in invoke("datasets", "path", "moon").stderr
