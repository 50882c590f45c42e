"""The way of a fit through the files, and their sizes, for the page on architecture.

`python docs/house.py` writes both tables into docs/architecture.md; a test compares them with
the code, so that the page cannot grow old.
"""

import ast
import os
import re
import statistics
import sys
import tempfile
import warnings
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from unittest import mock

import numpy as np

import gnomon

PAGE = Path(__file__).parent / "architecture.md"
SOURCE = Path(gnomon.__file__).parent
LAYERS = ("linalg", "stats", "inference", "models", "estimators", "displays", "tools")
# The most files that a fit may enter.
LIMITS = {
    "PPCA": 8,
    # With heads, and with the folds that show whether a head finds rows left out as well as class
    # shares do, how many of these are judged, and the regressions without each fold, which one
    # ascent brings to their tops.
    "SPPCA": 18,
    "SPPCA by likelihood": 18,
    # With tall thin products, which share their rows between threads.
    "SPPCA by likelihood, large X": 20,
    # With `eigen`, whose products with blocks find the leading directions of a large kernel, and
    # with what rows left out say of its width.
    "KernelSPPCA": 21,
    "PRPCA, learnt": 14,
    # With chunks, whose labels are weighed by the regression of SPPCA before they are passed on,
    # with the question whether rows are so many that a sample of them takes the steps, and with
    # that whether labelled rows left out are found at all. With the question whether labels
    # are few for the columns.
    "DCAGM": 22,
    # With the same question of rows, and with the head that tells classes as for DCAGM.
    "BSDR": 22,
    "BSDR by Gibbs sampling": 18,
    # With `standardize`, which tells whether the columns that are scored are principal components.
    "gnomon fit": 45,
}
# A class body runs when it is imported; only functions have this flag of the interpreter.
IS_FUNCTION = 0x1


def files_entered(call) -> list[str]:
    """The files of gnomon in which a function was called, in the order of their first calls."""
    found: dict[str, None] = {}
    root = str(SOURCE) + os.sep

    def note(frame, event, argument):
        path = frame.f_code.co_filename
        if event == "call" and path.startswith(root) and frame.f_code.co_flags & IS_FUNCTION:
            found.setdefault(Path(path).relative_to(SOURCE).as_posix())

    call()  # once before, so that nothing is imported on the way
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


def fits():
    """A small fit of every kind, by the name that the page has for it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 6))
    y, some = (X[:, 0] > 0).astype(int), (X[:, 0] > 0).astype(int)
    some[::2] = -1
    large = rng.standard_normal((420, 2)) @ rng.standard_normal((2, 300))
    large += rng.standard_normal(large.shape)
    labels = np.where(np.arange(420) % 3 > 0, -1, large[:, 0] > 0)
    links = gnomon.Links.from_edges([(i, i + 1) for i in range(59)])
    chunks = np.repeat([0, 1, -1], [2, 2, 56])
    few = {"n_chains": 2, "n_draws": 4, "n_warmup": 2}
    likelihood = {"supervision": "likelihood"}
    return {
        "PPCA": lambda: gnomon.PPCA().fit(X),
        "SPPCA": lambda: gnomon.SPPCA().fit(X, some),
        "SPPCA by likelihood": lambda: gnomon.SPPCA(**likelihood).fit(X, some),
        "SPPCA by likelihood, large X": lambda: gnomon.SPPCA(**likelihood).fit(large, labels),
        "KernelSPPCA": lambda: gnomon.KernelSPPCA().fit(X, some),
        "PRPCA, learnt": lambda: gnomon.PRPCA(relation="learnt").fit(X, links=links),
        "DCAGM": lambda: gnomon.DCAGM().fit(X, some, chunks=chunks),
        "BSDR": lambda: gnomon.BSDR().fit(X, y),
        "BSDR by Gibbs sampling": lambda: gnomon.BSDR(inference="gibbs", **few).fit(X, y),
        "gnomon fit": _command,
    }


def _command():
    """The command line on a small table."""
    from gnomon.tools import cli

    rows = np.random.default_rng(0).standard_normal((40, 4))
    lines = [",".join(map(str, row)) + (",low" if row[0] < 0 else ",high") for row in rows]
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "table.csv"
        table.write_text("\n".join(["a,b,c,d,kind", *lines]) + "\n", encoding="utf-8")
        words = ["gnomon", "fit", str(table), "--target", "kind", "--out", f"{folder}/map"]
        with mock.patch.object(sys, "argv", words), redirect_stdout(StringIO()):
            try:
                cli.main()
            except SystemExit as end:
                if end.code:
                    raise


def walks() -> dict[str, list[str]]:
    """The files that each fit enters."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: files_entered(call) for name, call in fits().items()}


def walk_text(found) -> str:
    """The walks as a list a model."""
    parts = []
    for name, files in found.items():
        way = " → ".join(f"`{path.removesuffix('.py')}`" for path in files)
        parts.append(f"**{name}**, {len(files)} files: {way}")
    return "\n\n".join(parts)


def sizes() -> str:
    """Files, lines and the lengths of functions of every layer."""
    lines = ["| layer | files | lines | functions | median | 90 % up to |", "|---|" + 5 * "---|"]
    every: list[int] = []
    for layer in LAYERS:
        paths = sorted((SOURCE / layer).rglob("*.py"))
        lengths = [n for path in paths for n in function_lengths(path)]
        every += lengths
        lines.append(_size_row(layer, paths, lengths))
    lines.append(_size_row("all", sorted(SOURCE.rglob("*.py")), every))
    return "\n".join(lines)


def _size_row(name, paths, lengths):
    total = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)
    median, most = statistics.median(lengths), np.quantile(lengths, 0.9)
    return f"| {name} | {len(paths)} | {total:,} | {len(lengths)} | {median:.0f} | {most:.0f} |"


def function_lengths(path):
    """Lines of each function without its docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            has_docstring = ast.get_docstring(node) is not None
            body = node.body[1:] if has_docstring else node.body
            if body:
                yield body[-1].end_lineno - body[0].lineno + 2


def marked(text, name, content):
    """The text with what stands between two marks replaced."""
    pattern = rf"(<!-- {name} -->\n).*?(\n<!-- end of {name} -->)"
    text, count = re.subn(pattern, lambda match: match[1] + content + match[2], text, flags=re.S)
    if count != 1:
        raise ValueError(f"the page has the marks of {name!r} {count} times; once is wanted")
    return text


def page(found=None) -> str:
    """The page with both tables as they are today."""
    found = walks() if found is None else found
    text = PAGE.read_text(encoding="utf-8")
    return marked(marked(text, "walks", walk_text(found)), "sizes", sizes())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
