"""The rules of docs/architecture.md, held by reading the source."""

import ast
import inspect
import re
from importlib import import_module
from pathlib import Path

import pytest

import gnomon

ROOT = Path(gnomon.__file__).parent
DOCS = Path(__file__).parent.parent / "docs"
BELOW = {
    "linalg": set(),
    "stats": {"linalg"},
    "inference": {"linalg"},
    "models": {"linalg", "stats", "inference"},
    "estimators": {"linalg", "stats", "models", "inference"},
    "displays": {"linalg", "stats", "models", "inference", "estimators"},
    "tools": {"linalg", "stats", "models", "inference", "estimators", "displays"},
}
FREE = {"exceptions", "datasets", "typing", "_lazy"}
MODULES = [path for layer in BELOW for path in (ROOT / layer).rglob("*.py")]
MAY_IMPORT_SKLEARN = {"estimators", "displays", "tools"}
FAMILIES = sorted(path.parent.name for path in (ROOT / "models").glob("*/fit.py"))
# Heads and what predicts from them are two ideas.
MOST_PRIVATE_MODULES = 7
MOST_PARAMETERS = 14
PAGES = {"BSDR": "bsdr.md", "BSDRRegressor": "bsdr.md", "DCAGM": "dcagm.md"}


def name_of(path):
    return str(path.relative_to(ROOT))


every_module = pytest.mark.parametrize("path", MODULES, ids=name_of)


def imports(path):
    """Pairs of a module and a name imported from it, the name None for a whole module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((name.name, None) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, name.name) for name in node.names)


@every_module
def test_imports_point_down(path):
    layer = path.relative_to(ROOT).parts[0]
    for module, _ in imports(path):
        package, _, rest = module.partition(".")
        if package == "gnomon" and rest:
            assert rest.split(".")[0] in BELOW[layer] | {layer} | FREE


@every_module
def test_only_the_face_imports_scikit_learn(path):
    layer = path.relative_to(ROOT).parts[0]
    if layer not in MAY_IMPORT_SKLEARN:
        assert not [module for module, _ in imports(path) if module.split(".")[0] == "sklearn"]


@every_module
def test_nothing_private_is_imported_across_folders(path):
    own = "gnomon." + ".".join(path.relative_to(ROOT).parts[:-1])
    for module, name in imports(path):
        if not module.startswith("gnomon.") or module == "gnomon._lazy":
            continue
        folder = module.rpartition(".")[0] if not _is_package(module) else module
        if folder == own or module == own:
            continue
        private = [part for part in [*module.split("."), name or ""] if part.startswith("_")]
        assert not private, f"{module}.{name}"


def _is_package(module):
    return (ROOT.parent / module.replace(".", "/")).is_dir()


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_one_fit(family):
    module = import_module(f"gnomon.models.{family}.fit")
    assert list(inspect.signature(module.fit).parameters) == ["problem", "settings", "loop"]
    for name in ("Problem", "Settings"):
        assert issubclass(getattr(module, name), tuple)


def test_every_folder_of_models_is_a_family():
    folders = {path.name for path in (ROOT / "models").iterdir() if path.is_dir()}
    assert folders - {"__pycache__"} == set(FAMILIES)


def test_few_modules_of_estimators_are_private():
    private = [p.name for p in (ROOT / "estimators").glob("_*.py") if p.name != "__init__.py"]
    assert len(private) <= MOST_PRIVATE_MODULES, private


@every_module
def test_every_numeric_constant_has_its_reason(path):
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and _is_numeric(node.value):
            above = node.lineno - 1
            # A reason may stand above several that belong together.
            while lines[above] and "#" not in lines[above]:
                above -= 1
            assert lines[above], lines[node.lineno - 1]


def _is_numeric(node):
    """Whether an expression is made of numbers alone."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.Tuple | ast.List):
        return bool(node.elts) and all(_is_numeric(part) for part in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _is_numeric(node.operand)
    return isinstance(node, ast.BinOp) and _is_numeric(node.left) and _is_numeric(node.right)


def importers():
    """For each module of gnomon, those that import it."""
    names = {_dotted(path): set() for path in ROOT.rglob("*.py") if path.name != "__init__.py"}
    for path in ROOT.rglob("*.py"):
        for module, name in imports(path):
            for target in (module, f"{module}.{name}"):
                if target in names and target != _dotted(path):
                    names[target].add(_dotted(path))
    return names


def _dotted(path):
    return "gnomon." + ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.skipif(not DOCS.exists(), reason="a copy without documentation")
def test_a_module_with_one_reader_is_a_room_that_the_page_explains():
    homes = set(gnomon._HOMES.values()) | {"gnomon.tools.cli"}
    lonely = {name for name, readers in importers().items() if len(readers) == 1} - homes
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("## Rooms with one door")[2].partition("\n## ")[0]
    explained = set(re.findall(r"^\| `([\w/]+)` \|", section, re.M))
    found = {name.removeprefix("gnomon.").replace(".", "/") for name in lonely}
    displays = {path for path in found if path.startswith("displays/")}
    assert found - displays == explained


ESTIMATORS = [
    name for name, home in gnomon._HOMES.items() if hasattr(getattr(gnomon, name), "get_params")
]


@pytest.mark.skipif(not DOCS.exists(), reason="a copy without documentation")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_long_constructor_is_explained_on_the_page_of_its_model(name):
    parameters = list(inspect.signature(getattr(gnomon, name)).parameters)
    text = (DOCS / "models" / PAGES.get(name, "index.md")).read_text(encoding="utf-8")
    explained = [parameter for parameter in parameters if f"`{parameter}" in text]
    assert len(parameters) - len(explained) <= MOST_PARAMETERS


@pytest.mark.skipif(not DOCS.exists(), reason="a copy without documentation")
def test_the_page_tells_the_way_of_every_fit_as_it_is(monkeypatch):
    pytest.importorskip("typer")
    monkeypatch.syspath_prepend(DOCS)
    from house import LIMITS, page, walks

    found = walks()
    for name, most in LIMITS.items():
        assert len(found[name]) <= most, found[name]
    assert page(found) == (DOCS / "architecture.md").read_text(encoding="utf-8")
