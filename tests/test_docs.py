"""README, tutorial and docstrings: what they tell a reader to type is run; other pages are held to what there is."""

from __future__ import annotations

import ast
import doctest
import importlib
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.exceptions import ConvergenceWarning

import rflvm
from rflvm import baselines, datasets, fitting, likelihoods, metrics, plots, report
from rflvm.cli import main
from rflvm.experiments import figure_gaussian, figure_hippocampus, figure_poisson, table

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PACKAGE = ROOT / "src" / "rflvm"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
EXAMPLES = ("RFLVM", "Custom", "latent", "make_s_curve", "maximise", "sample", "write_report")


def fences(text: str, *kinds: str) -> list[str]:
    """The fenced blocks of a page that have one of the kinds, such as python."""
    blocks = re.findall(r"^```(\S+)[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [re.sub(r"^:tags:[^\n]*\n\n", "", block) for kind, block in blocks if kind in kinds]


def python(text: str) -> list[str]:
    return fences(text, "python", "{code-cell}")


def commands(text: str) -> list[str]:
    """Shell commands: lines of a console block that begin with a dollar sign, or the indented ones of the README."""
    typed = [line[2:] for block in fences(text, "console") for line in block.splitlines() if line.startswith("$ ")]
    indented = re.findall(
        r"^    ((?:rflvm|make|pip|git|python) [^\n]*)", re.sub(r"(?s)```.*?```", "", text), re.MULTILINE
    )
    return [command.split("#")[0].strip() for command in (*typed, *indented)]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def check_installation(command: str) -> None:
    """What is not run from a test, because it builds an environment, must be there to be run."""
    if command.startswith("make "):
        assert set(command.split()[1:]) <= targets(), command
    else:
        assert command.startswith("pip install "), command
        pyproject = (ROOT / "pyproject.toml").read_text()
        for extra in re.findall(r"[a-z]+", "".join(re.findall(r"\[(.*)\]", command))):
            assert f"\n{extra} = [" in pyproject, command


def run(blocks: list[str], page: str) -> dict[str, Any]:
    """Execute blocks one after the other, as a reader would; a fit may say that it should have been longer."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for block in blocks:
            exec(compile(block, page, "exec"), names)  # our own page
    return names


@pytest.fixture
def _drawing(monkeypatch):
    """Figures go nowhere."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


@pytest.fixture
def _few_sweeps(monkeypatch):
    """A tenth of the sweeps that a page asks for: the tests show that it runs, `make docs` shows what comes of it."""
    sample = fitting.sample

    def short(*arguments, n_samples, n_burnin, **settings):
        tenth = lambda n: 20 if n == "auto" else n // 10  # noqa: E731
        return sample(*arguments, n_samples=tenth(n_samples), n_burnin=tenth(n_burnin), **settings)

    monkeypatch.setattr(fitting, "sample", short)


@pytest.mark.usefixtures("_drawing", "_few_sweeps")
def test_the_python_of_the_readme(tmp_path, monkeypatch, capsys):
    """As it stands, on a small table with a gap."""
    monkeypatch.chdir(tmp_path)
    counts = datasets.make_s_curve(12, 5, emissions="poisson").data
    counts[0, 0] = np.nan
    np.savetxt("counts.csv", counts, delimiter=",")
    names = run(python((ROOT / "README.md").read_text()), "README.md")
    assert names["X"].shape == (12, 2)
    assert np.isfinite(names["full"]).all()
    assert names["X_new"].shape == (10, 2)
    assert names["Y_sim"].shape == (100, 5)
    assert np.array_equal(rflvm.load("model.npz").embedding_, names["X"])
    assert Path("report.html").stat().st_size > 10_000
    assert "12 rows x 5 columns" in capsys.readouterr().out


def test_the_commands_of_the_readme():
    """Those of the command line are run by ``tests/cli/test_commands.py``."""
    text = (ROOT / "README.md").read_text()
    section = text.split("## Command line")[1].split("\n## ")[0]
    run_there = [command for command in commands(section) if command.startswith("rflvm ")]
    others = [command for command in commands(text) if command not in run_there]
    assert {"pip install .", "make demo", "make test", "make docs"} <= set(others)
    for command in others:
        check_installation(command)


@pytest.mark.usefixtures("_drawing", "_few_sweeps")
def test_the_tutorial(tmp_path, monkeypatch, capsys):
    """Its Python, then its commands on the files that this has written."""
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text()
    names = run(python(text), "tutorial.md")
    assert "effective draws of 60" in names["page"]
    assert metrics.r2_affine(names["truth"].X, names["model"].embedding_) > 0.85
    ran = 0
    for command in commands(text):
        if command.startswith("rflvm "):
            result = CliRunner().invoke(main, command.split()[1:])
            assert result.exit_code == 0, result.output
            ran += 1
        else:
            check_installation(command)
    assert ran == 4
    assert {"filled.csv", "new_latent.csv", "run"} <= {path.name for path in tmp_path.iterdir()}
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize("page", [*PAGES, "../README.md"])
def test_a_page_holds_together(page):
    """Code compiles, links to other pages lead somewhere, commands exist. `make docs` runs the code."""
    text = (DOCS / page).read_text()
    for block in python(text):
        compile(block, page, "exec")
    for link in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", text):
        assert ((DOCS / page).parent / link).exists(), link
    for command in commands(text):
        if command.startswith("rflvm "):
            assert command.split()[1] in main.commands, command
        else:
            check_installation(command)


def measured(name: str) -> Any:
    return json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())


def test_the_pages_have_the_table_that_was_found():
    found = measured("table")
    assert not found["quick"]
    cells = [table.Cell(**cell) for cell in found["cells"]]
    assert {len(cell.accuracy) for cell in cells} == {table.N_RUNS}
    text = (DOCS / "reproduction.md").read_text()
    for part in table.markdown(cells).split("\n\n"):
        assert part.strip() in text
    assert f" {found['seconds_of_all_fits'] / 3600:.1f} hours" in text
    assert table.comparison(cells) in (ROOT / "README.md").read_text()


def test_the_page_on_the_map_engine_has_what_default_fits_need(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    text = " ".join((DOCS / "design" / "maximum.md").read_text().split())
    for name, found in (("finishing", "fits"), ("competition", "runs"), ("map_speed", "fits")):
        page = importlib.import_module(name.removesuffix("_speed")).markdown(measured(name)[found])
        assert " ".join(page.split()) in text


def test_the_page_has_the_alternatives_that_were_tried(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    alternatives = importlib.import_module("alternatives")
    assert alternatives.markdown(measured("alternatives")["fits"]) in (DOCS / "reproduction.md").read_text()


def test_the_page_on_the_s_curve_has_what_was_found():
    fits = measured("figure-poisson")["fits"]
    text = (DOCS / "reproduction.md").read_text()
    for method in figure_poisson.METHODS:
        found = [fit for fit in fits if fit["method"] == method]
        R2 = ", ".join(f"{fit['R2']:.3f}" for fit in sorted(found, key=lambda fit: fit["run"]))
        assert f" | {R2} | {np.mean([fit['mse_F'] for fit in found]):.3f} |" in text


def test_the_page_on_held_out_cells_has_what_was_found():
    fits = measured("figure-gaussian")["fits"]
    text = (DOCS / "reproduction.md").read_text()
    for M in figure_gaussian.SIZES:
        runs = [[fit for fit in fits if (fit["M"], fit["method"]) == (M, name)] for name in figure_gaussian.METHODS]
        assert {len(found) for found in runs} == {figure_gaussian.N_RUNS}
        errors = [f"{np.mean([fit['mse_Y'] for fit in found]):.3f}" for found in runs]
        lowest = [f"{min(fit['R2'] for fit in found):.3f}" for found in runs]
        kernel = f"{np.mean([fit['mse_K'] for fit in runs[1]]):.4f}"
        assert f"| {' | '.join([str(M), *errors, *lowest, kernel])} |" in text


def test_the_page_on_place_cells_and_digits_has_what_was_found():
    text = (DOCS / "reproduction.md").read_text()
    for method, title in figure_hippocampus.METHODS.items():
        fits = [fit for fit in measured("figure-hippocampus")["fits"] if fit["method"] == method]
        means = [np.mean([value for fit in fits for value in fit[key]]) for key in ("accuracy", "R2")]
        assert f"| {title} | {means[0]:.3f} | {means[1]:.3f} |" in text
    for fit in measured("figure-mnist")["fits"]:
        assert f"{fit['accuracy']:.3f}" in text.split("## Digits and faces")[1]


def defined_in_metrics() -> set[str]:
    defined = {name for name, value in vars(metrics).items() if getattr(value, "__module__", "") == metrics.__name__}
    return {name for name in defined if not name.startswith("_")}


def test_every_public_name_is_in_the_reference():
    text = "".join(path.read_text() for path in (DOCS / "api").glob("*.md"))
    documented = {name.split(".")[-1] for name in re.findall(r"^\.\. auto\w+:: (\S+)", text, re.MULTILINE)}
    modules = (rflvm, likelihoods, plots, report, datasets, baselines)
    public = {name for module in modules for name in module.__all__} - {"__version__", "likelihoods", "dynamics"}
    public |= defined_in_metrics()
    assert public <= documented


def docstrings_with_examples() -> list[Any]:
    """(module, name, docstring) wherever a docstring has an example."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        if ">>>" not in text:
            continue
        module = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                docstring = ast.get_docstring(node) or ""
                name = module if isinstance(node, ast.Module) else node.name
                if ">>>" in docstring:
                    found.append(pytest.param(module, name, docstring, id=name))
    return found


def test_entry_points_have_examples():
    having = {str(parameter.id) for parameter in docstrings_with_examples()}
    assert (set(EXAMPLES) | defined_in_metrics()) - having == {"Accuracy"}


@pytest.mark.usefixtures("_drawing")
@pytest.mark.parametrize(("module", "name", "docstring"), docstrings_with_examples())
def test_an_example_in_a_docstring(module, name, docstring, tmp_path, monkeypatch):
    """As a reader would type it: nothing is imported for it, and warnings are errors."""
    monkeypatch.chdir(tmp_path)
    importlib.import_module(module)
    report: list[str] = []
    test = doctest.DocTestParser().get_doctest(docstring, {}, name, module, 0)
    flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    results = doctest.DocTestRunner(optionflags=flags).run(test, out=report.append)
    assert results.attempted
    assert not results.failed, "".join(report)
