"""The documentation names what there is, and what it says runs."""

import re
import shlex
import tomllib
from importlib import import_module
from inspect import isfunction
from pathlib import Path

import numpy as np
import pytest

import gnomon
from gnomon import datasets, displays, io

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
EXAMPLES = sorted((ROOT / "examples").rglob("plot_*.py"))
FORM = (
    "In ten lines",
    "When to use something else",
    "Parameters that matter",
    "What comes out",
    "Cost",
    "The model",
    "The algorithm",
    "Errata and references",
)
LEVELS = ("first steps", "with practice", "for the curious")
PAGES = [path for part in ("", "guides", "models") for path in sorted((DOCS / part).glob("*.md"))]
# The pages of the path, in its order.
GUIDES = [
    DOCS / f"{name}.md"
    for name in re.findall(r"^([\w/]+)$", (DOCS / "guides.md").read_text(encoding="utf-8"), re.M)
]


def listed(prefix):
    """Names below prefix that the summaries of the API page list."""
    text = (DOCS / "api.md").read_text(encoding="utf-8")
    return set(re.findall(rf"^   {re.escape(prefix)}\.(\w+)$", text, re.M))


def test_the_api_page_has_every_public_name():
    modules = {name for name, home in gnomon._HOMES.items() if home == f"gnomon.{name}"}
    assert listed("gnomon") == set(gnomon._HOMES) - modules


def test_the_api_page_has_every_sample():
    public = {name for name, value in vars(datasets).items() if _is_function(datasets, value)}
    assert listed("gnomon.datasets") == public


def _is_function(module, value):
    own = isfunction(value) and value.__module__ == module.__name__
    return own and not value.__name__.startswith("_")


def test_the_api_page_has_every_display():
    assert listed("gnomon.displays") == set(displays.__all__)


def test_the_api_page_has_every_function_for_other_formats():
    public = {name for name, value in vars(io).items() if _is_function(io, value)}
    assert listed("gnomon.io") == public


@pytest.mark.parametrize("name", displays.__all__)
def test_every_display_is_in_the_gallery(name):
    assert any(name in path.read_text(encoding="utf-8") for path in EXAMPLES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_a_section_a_title_a_level_and_a_conclusion(path):
    text = path.read_text(encoding="utf-8")
    assert (path.parent / "GALLERY_HEADER.rst").exists() and path.parent.parent == ROOT / "examples"
    assert re.match(r'(""")\n?.+\n=+\n\n.+', text)
    assert any(f"*Level: {level}.*" in text for level in LEVELS)
    assert "\n# **What it shows.** " in text


def test_the_gallery_has_thirty_examples_on_real_data():
    real = re.compile(r"load_(wine|iris|digits|breast|diabetes|linn|sample|scipy)|karate_club")
    assert sum(bool(real.search(path.read_text(encoding="utf-8"))) for path in EXAMPLES) >= 30


@pytest.mark.parametrize("path", GUIDES, ids=lambda path: path.stem)
def test_guides_run_draw_and_leave_something_to_try(path):
    text = path.read_text(encoding="utf-8")
    assert text.startswith("---\nfile_format: mystnb\n")
    assert "```{code-cell}" in text and "## One thing to try" in text
    assert re.search(r"Display|plt\.|\.plot\(|```{image}", text)


@pytest.mark.parametrize("name", ["ppca", "sppca", "kernel_sppca", "prpca", "dcagm", "bsdr"])
def test_pages_of_models_have_one_form(name):
    text = (DOCS / "models" / f"{name}.md").read_text(encoding="utf-8")
    found = [title for title in re.findall(r"^## (.+)$", text, re.M) if title in FORM]
    assert tuple(found) == FORM


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_code_on_pages_begins_and_ends(path):
    """A fence that is left open would show the text after it as code."""
    fences = re.findall(r"^[ >]*(`{3,}|:{3,})", path.read_text(encoding="utf-8"), re.M)
    assert all(fences.count(mark) % 2 == 0 for mark in fences)


def test_every_guide_is_on_the_path():
    path = (DOCS / "guides.md").read_text(encoding="utf-8")
    names = [page.stem for page in (DOCS / "guides").glob("*.md")]
    assert [name for name in names if f"\nguides/{name}\n" not in path] == []


@pytest.mark.parametrize("page", ["index.md", "quickstart.md", "large_data.md"])
def test_the_code_on_the_first_pages_runs(page, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    monkeypatch.chdir(tmp_path)
    text = (DOCS / page).read_text(encoding="utf-8")
    names: dict = {}
    for block in re.findall(r"```(?:python|\{code-cell\})\n(.*?)```", text, re.S):
        exec(compile(_python_only(block), page, "exec"), names)
    plt.close("all")


def _python_only(cell):
    """A cell without its options; one for the shell, which the build runs, is empty here."""
    if "from shell import run" in cell:
        return ""
    return "\n".join(line for line in cell.splitlines() if not line.startswith(":"))


def test_what_is_installed_has_the_name_of_the_distribution():
    """The project that an index has under the name gnomon is another one."""
    texts = [ROOT / "README.md", ROOT / "pyproject.toml", *DOCS.rglob("*.md"), *EXAMPLES]
    texts += [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    wrong = re.compile(r"""(?:pip install.*|["'])\bgnomon\[""")
    found = [str(path) for path in texts if wrong.search(path.read_text(encoding="utf-8"))]
    assert found == []


def test_extras_are_on_the_page_of_the_installation():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == "gnomon-learn"
    extras = project["optional-dependencies"]
    page = (DOCS / "installation.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page, re.M))
    assert set(rows) == set(extras)
    for extra in set(extras) - {"all"}:
        packages = [re.match(r"[\w-]+", need)[0] for need in extras[extra]]
        assert [name for name in packages if name not in rows[extra]] == []
    assert set(extras["all"][0].partition("[")[2].rstrip("]").split(",")) == set(extras) - {"all"}


def test_the_shell_block_of_the_readme_runs_as_it_stands(tmp_path, monkeypatch):
    """Every line but that of pip, on a small table with the columns that the block names."""
    pytest.importorskip("typer")
    from typer.testing import CliRunner

    from gnomon.tools import demo
    from gnomon.tools.cli import app
    from gnomon.tools.compare import candidates

    text = (ROOT / "README.md").read_text(encoding="utf-8").partition("## Ten lines of shell")[2]
    lines = re.search(r"```\n(.*?)```", text, re.S)[1].splitlines()
    commands = [shlex.split(line, comments=True) for line in lines]
    assert {words[0] for words in commands} == {"pip", "gnomon"}
    monkeypatch.chdir(tmp_path)
    # All models take ten seconds, and are compared elsewhere.
    monkeypatch.setattr(demo, "COMPARED_MODELS", ("PCA",))
    monkeypatch.setattr(candidates, "CANDIDATES", candidates.CANDIDATES[:2])
    _write_tables()
    for words in commands:
        if words[0] == "gnomon":
            result = CliRunner().invoke(app, words[1:])
            assert result.exit_code == 0, f"{words}: {result.output}{result.exception!r}"
    assert {"report.html", "more-filled.csv", "demo"} <= {path.name for path in Path().iterdir()}


def _write_tables():
    rng = np.random.default_rng(0)
    rows = [
        f"{a + 3 * (i % 2):.2f},{b:.2f},{c:.2f}"
        for i, (a, b, c) in enumerate(rng.normal(size=(24, 3)))
    ]
    kinds = ["small" if i % 2 else "large" for i in range(20)] + [""] * 4
    table = ["a,b,c,kind", *(f"{row},{kind}" for row, kind in zip(rows, kinds, strict=True))]
    Path("table.csv").write_text("\n".join(table) + "\n")
    Path("more.csv").write_text("a,b,c\n1,2,\n,0,1\n")


def test_every_key_that_a_page_cites_is_in_the_references():
    keys = set(re.findall(r"@\w+\{(\w+),", (DOCS / "references.bib").read_text()))
    pages = [p for p in DOCS.rglob("*.md") if "_build" not in p.parts and "gallery" not in p.parts]
    cited = {key for p in pages for key in re.findall(r"\[([A-Z]+\d\d)\]", p.read_text("utf-8"))}
    assert cited <= keys


@pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="a copy without benchmarks")
def test_the_readme_has_the_figures_of_the_results(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from figures import readme_parts

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [start for start, part in readme_parts() if part not in text] == []


@pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="a copy without benchmarks")
def test_no_other_figure_stands_in_the_readme_and_each_names_its_result(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from figures import RESULTS, claims, readme_parts

    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for _, part in readme_parts():
        text = text.replace(part, "")
    text = re.sub(r"```.*?```|`[^`]*`", "", text, flags=re.S)
    assert re.findall(r"(?<![\w.])\d*\.\d+", text) == []
    for *_, result in claims():
        assert (RESULTS / f"{result}.json").exists(), result


@pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="a copy without benchmarks")
def test_the_page_on_tests_is_that_of_their_results(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from trust import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "run docs/trust.py"


@pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="a copy without benchmarks")
def test_every_package_has_a_least_version(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from floors import floors

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.match(r"[\w-]+", one)[0] for each in lists for one in each}
    assert names - {project["name"]} == set(floors())


@pytest.mark.skipif(not (ROOT / "benchmarks").exists(), reason="a copy without benchmarks")
def test_every_equation_of_the_papers_has_its_place_and_its_proof(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    from papers import PAGE, PAPERS, page

    for thing in [thing for things in PAPERS.values() for thing in things]:
        assert thing.name and thing.what and thing.shown, thing
        assert thing.where or thing.shown.startswith("("), thing
        if thing.where.startswith("benchmarks/"):
            assert (ROOT / thing.where).exists(), thing
        elif thing.where:
            module, _, name = thing.where.rpartition(".")
            assert hasattr(import_module(f"gnomon.{module}"), name), thing
        if thing.shown.startswith("tests/"):
            path, _, name = thing.shown.partition("::")
            assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8"), thing
        elif thing.shown.startswith("benchmarks/"):
            assert (ROOT / thing.shown).exists(), thing
        else:
            assert thing.shown.startswith("("), thing
    assert PAGE.read_text(encoding="utf-8") == page(), "run docs/papers.py"
