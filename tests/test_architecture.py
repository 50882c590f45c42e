"""The import rule of docs/architecture.md, section 3."""

import ast
from pathlib import Path

import pytest

import gnomon

ROOT = Path(gnomon.__file__).parent
BELOW = {
    "linalg": set(),
    "stats": {"linalg"},
    "models": {"linalg", "stats", "inference"},
    "inference": set(),
    "estimators": {"linalg", "stats", "models", "inference"},
    "displays": {"linalg", "stats", "models", "inference", "estimators"},
    "tools": {"linalg", "stats", "models", "inference", "estimators", "displays"},
}
MODULES = [path for layer in BELOW for path in (ROOT / layer).rglob("*.py")]
MAY_IMPORT_SKLEARN = {"estimators", "displays", "tools"}


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path):
    layer = path.relative_to(ROOT).parts[0]
    for module in imported(path):
        package, _, rest = module.partition(".")
        if package == "gnomon" and rest:
            assert rest.split(".")[0] in BELOW[layer] | {layer, "exceptions", "datasets", "_lazy"}
        if package == "sklearn":
            assert layer in MAY_IMPORT_SKLEARN
