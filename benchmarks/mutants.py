"""Break the code in one place at a time and see whether the tests notice.

    python benchmarks/covering.py --folder build/mutants         which tests run which lines
    python benchmarks/mutants.py --folder build/mutants          draw and run; goes on if stopped
    python benchmarks/mutants.py --folder build/mutants --again  survivors, with the tests of now
    python benchmarks/mutants.py --folder build/mutants --report

A mutant is one change of `models`, `stats`, `linalg`, `inference` or `estimators`: a sign, a
factor, an index, a number by one, a comparison, a word of logic, a term that is dropped. Left out
are numbers that are tuned and not derived (constants of modules, defaults of arguments, guards
below 1e-5) and the words of messages. Only tests that run the changed statement can notice it:
those of the mirrored file first, then one of each other file in turn, cheap ones first, until a
test fails, does not end, or the tests take more than LIMIT seconds. What is left after that round
has a second one with the other tests of the push suite that run the statement, cheap ones first,
up to MOST seconds, but for those that are argued to be the same program. Only a mutant that no
test of both rounds notices is a survivor. Until 2026-11-18 there was no second round, so that the
shares of earlier draws are lower for that too.
"""

import argparse
import ast
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from covering import (
    LAYERS,
    OPTIONS,
    ROOT,
    copy_tree,
    import_libraries,
    is_changed,
    known,
    run_in_child,
    test_files,
)

# Seconds of tests that a mutant is given beyond those of the mirrored file, in the first round.
LIMIT = 25
# And in the second: 6,750 of the 6,969 tests, where all run the statement, which take 522 seconds.
MOST = 300
# Bytes of address space: a mutant that asks for more has failed.
MEMORY = 12 * 2**30
# Draws before this one, which had the first round only.
EARLIER = (
    "seed 18: 196 of 240 caught when drawn, 87 % of those that are not the same program;",
    "seed 1918: 183 of 220, 88.8 %. What was left of both is caught by tests written since.",
)
EQUIVALENT = ROOT / "benchmarks" / "equivalent_mutants.json"

OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
KINDS = {ast.Add: "sign", ast.Sub: "sign", ast.Mult: "factor", ast.Div: "factor"}
OPPOSITE = {
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
BY_ONE = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
COUNTS = re.compile(r"^(\d+|len\(.*\)|n|d|k|n_\w+|.*\.(shape(\[\d\])?|size|ndim|nnz))$")


class Mutant(NamedTuple):
    """The change of that number in a file, and the statement before and after."""

    file: str
    number: int
    kind: str
    first: int
    last: int
    was: str
    now: str

    @property
    def key(self) -> str:
        """By which a result is known again, also where lines have moved."""
        return f"{self.file}: {self.was} -> {self.now}"


# What can be changed


def changes(tree):
    """Each change: the place of a node (parent, field, index), what comes there, its kind."""
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
                if isinstance(node, ast.AST) and not getattr(node, "left_out", False):
                    for kind, new in _replacements(node, parent):
                        yield (parent, field, index), new, kind


def _replacements(node, parent):
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        yield KINDS[type(node.op)], ast.BinOp(node.left, OPERATORS[type(node.op)](), node.right)
        if KINDS[type(node.op)] == "sign":
            yield "dropped term", node.left
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield ("sign" if isinstance(node.op, ast.USub) else "logic"), node.operand
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "logic", ast.BoolOp(other, node.values)
    elif isinstance(node, ast.Compare):
        yield from _comparisons(node)
    elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield from _numbers(node, parent)


def _comparisons(node):
    for i, operator in enumerate(node.ops):
        for kind, table in (("comparison", OPPOSITE), ("off by one", BY_ONE)):
            sides = [ast.unparse(side) for side in (node.left, *node.comparators)]
            counted = any(COUNTS.match(side) for side in sides[i : i + 2])
            if type(operator) in table and (kind == "comparison" or counted):
                operators = [*node.ops[:i], table[type(operator)](), *node.ops[i + 1 :]]
                yield kind, ast.Compare(node.left, operators, node.comparators)


def _numbers(node, parent):
    if isinstance(node.value, int):
        factor = isinstance(parent, ast.BinOp) and not isinstance(parent.op, ast.Add | ast.Sub)
        indexes = isinstance(parent, ast.Subscript | ast.Slice | ast.Tuple | ast.UnaryOp)
        kind = "factor" if factor else "index" if indexes else "off by one"
        yield kind, ast.Constant(node.value + 1)
    elif node.value == 0 or abs(node.value) >= 1e-5:
        yield "factor", ast.Constant(2 * node.value or 1.0)


def parse(text):
    """A module with marks on what is left out, and on every node its statement."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        _leave_out(*_not_derived(node))
        if isinstance(node, ast.stmt):
            for part in _own(node):
                part.statement = node
    return tree


def _not_derived(node) -> list:
    """Parts of a node that are words, types, defaults or tuned numbers."""
    if isinstance(node, ast.JoinedStr):
        return [node]
    if isinstance(node, ast.arguments):
        return [*node.defaults, *node.kw_defaults]
    if isinstance(node, ast.Module | ast.ClassDef):
        return [s for s in node.body if isinstance(s, ast.Assign | ast.AnnAssign)]
    return [getattr(node, "annotation", None), getattr(node, "returns", None)]


def _leave_out(*roots):
    for root in filter(None, roots):
        for node in ast.walk(root):
            node.left_out = True


def _own(statement):
    """A statement and what belongs to it, without the statements in its body."""
    todo = [statement]
    while todo:
        node = todo.pop()
        yield node
        todo += [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.stmt)]


def mutants_of(path, tree) -> list[Mutant]:
    """Every mutant of a file."""
    module, name = parse(path.read_text()), path.relative_to(tree).as_posix()
    found = []
    for number, (place, new, kind) in enumerate(changes(module)):
        statement = place[0].statement
        body = getattr(statement, "body", None)
        last = body[0].lineno - 1 if isinstance(body, list) else statement.end_lineno
        was = _first_words(statement)
        with _Changed(place, new):
            now = _first_words(statement)
        lines = statement.lineno, max(statement.lineno, last)
        found.append(Mutant(name, number, kind, *lines, was, now))
    return found


def _first_words(statement):
    """A statement on one line, without its body."""
    text = ast.unparse(statement)
    return text.splitlines()[0] if hasattr(statement, "body") else " ".join(text.split())


class _Changed:
    """The tree with a node in a place, as long as it lasts."""

    def __init__(self, place, new):
        (self.parent, self.field, self.index), self.new = place, new

    def __enter__(self):
        self.old = self._put(self.new)

    def __exit__(self, *_):
        self._put(self.old)

    def _put(self, node):
        if self.index is None:
            old = getattr(self.parent, self.field)
            setattr(self.parent, self.field, node)
        else:
            old = getattr(self.parent, self.field)[self.index]
            getattr(self.parent, self.field)[self.index] = node
        return old


def mutated(mutant, tree) -> str:
    """The text of the file with the change."""
    module = parse((tree / mutant.file).read_text())
    place, new, _ = list(changes(module))[mutant.number]
    with _Changed(place, new):
        return ast.unparse(ast.fix_missing_locations(module))


def every_mutant(tree) -> list[Mutant]:
    """All there are."""
    return [
        mutant
        for layer in LAYERS
        for path in sorted((tree / "src" / "gnomon" / layer).rglob("*.py"))
        for mutant in mutants_of(path, tree)
    ]


def draw(tree, number, seed) -> list[Mutant]:
    """So many of all mutants, by chance."""
    every = every_mutant(tree)
    return random.Random(seed).sample(every, number)  # noqa: S311  no secret


# Tests that can notice


def reaching(mutant, tests, shared) -> set[str]:
    """Tests that run the statement, or share what a test made that runs it."""
    lines = set(range(mutant.first, mutant.last + 1))
    found = {n for n, t in tests.items() if not lines.isdisjoint(t["lines"].get(mutant.file, ()))}
    files = {n.split("::")[0] for n in found} & shared
    return found | {n for n in tests if n.split("::")[0] in files}


def tests_for(mutant, tests, shared) -> list[list[str]]:
    """The first round: tests of the mirrored file, then others while time lasts."""
    found = reaching(mutant, tests, shared)
    near = sorted(n for n in found if n.startswith((mirrored(mutant), mutant.file)))
    return [by_cost(near, tests), within(by_turns(found - set(near), tests), tests, LIMIT)]


def others_for(mutant, tests, shared, tried) -> list[list[str]]:
    """Every other test that runs the statement, cheap ones first."""
    rest = reaching(mutant, tests, shared) - {name for turn in tried for name in turn}
    return [within(by_cost(rest, tests), tests, MOST)]


def changed_tests(mutant, folder, tree) -> list[str]:
    """Files of tests written since the measurement: the mirrored one, or those of its folder."""
    inside = Path(mutant.file).relative_to("src/gnomon").parent
    changed = [file for file in test_files(tree) if is_changed(folder, tree, file)]
    own = [file for file in changed if file == mirrored(mutant)]
    return own or [file for file in changed if Path(file).parent == Path("tests") / inside]


def mirrored(mutant) -> str:
    """The file that has the tests of a file."""
    inside = Path(mutant.file).relative_to("src/gnomon")
    return f"tests/{inside.parent.as_posix()}/test_{inside.stem.lstrip('_')}.py"


def by_cost(names, tests):
    """Tests by what they take."""
    return sorted(names, key=lambda name: tests[name]["seconds"])


def by_turns(names, tests):
    """The cheapest test of each file, then the second of each, and so on."""
    turn = {}
    by_file = {}
    for name in by_cost(names, tests):
        turn[name] = by_file[name.split("::")[0]] = by_file.get(name.split("::")[0], 0) + 1
    return sorted(names, key=lambda name: (turn[name], tests[name]["seconds"], name))


def within(names, tests, limit):
    """As many as take so many seconds together."""
    spent, kept = 0.0, []
    for name in names:
        spent += tests[name]["seconds"]
        if spent > limit:
            break
        kept.append(name)
    return kept


def files_that_share(tree) -> set[str]:
    """Files whose tests share what one of them made: all run where one runs the statement."""
    return {
        path.relative_to(tree).as_posix()
        for path in (tree / "tests").rglob("test_*.py")
        if re.search(r'scope="|cache', path.read_text())
    }


class Chosen:
    """A plugin of pytest: the chosen tests in their order, each with a limit of its own."""

    def __init__(self, names, tests, out):
        self.rank = {name: i for i, name in enumerate(names)}
        self.tests, self.out = tests, out
        self.at = "the import"
        signal.signal(signal.SIGPROF, self.too_long)
        signal.setitimer(signal.ITIMER_PROF, 60)

    def too_long(self, *_):
        self.note(f"{self.at} (does not end)")
        os._exit(3)

    def note(self, words):
        if not self.out.exists():
            self.out.write_text(words)

    def pytest_collection_modifyitems(self, items):
        if any("::" in name for name in self.rank):
            chosen = (item for item in items if item.nodeid in self.rank)
            items[:] = sorted(chosen, key=lambda item: self.rank[item.nodeid])

    def pytest_collectreport(self, report):
        if report.failed:
            self.note(f"{report.nodeid} (not imported)")

    def pytest_runtest_logstart(self, nodeid, location):
        self.at = nodeid
        lasts = self.tests[nodeid]["seconds"] if nodeid in self.tests else 2.0
        signal.setitimer(signal.ITIMER_PROF, 10 + 10 * lasts)

    def pytest_runtest_logreport(self, report):
        if report.failed:
            self.note(report.nodeid)


def try_tests(turns, tests, out) -> int:
    """Run the turns until a test fails; 0 where none does."""
    import pytest

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    sys.dont_write_bytecode = True
    for names in filter(None, turns):
        files = sorted({name.split("::")[0] for name in names})
        status = pytest.main([*OPTIONS, "-x", *files], plugins=[Chosen(names, tests, out)])
        if status not in (0, 5):
            return 1
    return 0


def run(mutant, tree, tests, turns) -> str:
    """The test that caught the mutant, "" where none did. The tree is as before afterwards."""
    target, out = tree / mutant.file, tree.parent / "caught.txt"
    compiled = next((target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"), None)
    keep = [p for p in (target, compiled) if p]
    kept = [shutil.copy2(p, tree.parent / f"kept{i}") for i, p in enumerate(keep)]
    try:
        target.write_text(mutated(mutant, tree))
        if compiled:
            compiled.unlink()
        out.unlink(missing_ok=True)
        failed = run_in_child(tree, lambda: try_tests(turns, tests, out))
        return (out.read_text() if out.exists() else "the process ended") if failed else ""
    finally:
        for copy, place in zip(kept, keep, strict=True):
            shutil.copy2(copy, place)


# Results


def results(folder) -> list[dict]:
    """Results there are, in the order in which they came."""
    lines = []
    for path in sorted(folder.glob("results*.jsonl")):
        lines += path.read_text().splitlines()
    return [json.loads(line) for line in lines]


def to_run(folder, options) -> list[Mutant]:
    """Drawn mutants without a result; after the first round, and for ``again``, survivors."""
    drawn, before = draw(folder / "tree", options.number, options.seed), results(folder)
    caught = {e["key"] for e in before if e["caught"]}
    same = json.loads(EQUIVALENT.read_text())
    left = {e["key"] for e in before} - caught - same.keys()
    if options.again:
        return [m for m in every_mutant(ROOT) if m.key in left]
    first = [m for m in drawn if m.key not in {e["key"] for e in before}]
    tried = {e["key"] for e in before if e["round"] == 2 and not options.wider}
    second = [m for m in drawn if m.key in left - tried]
    # Estimators last: their tests see all the others too.
    return sorted(first, key=lambda m: "estimators" in m.file) or second


def run_all(folder, options):
    """Run mutants one by one, first rounds before second; each has its line of results at once."""
    import_libraries()
    part, parts = map(int, options.part.split("/"))
    shared = files_that_share(folder / "tree")
    with tempfile.TemporaryDirectory() as place:
        tree = copy_tree(place, ROOT if options.again else folder / "tree")
        while todo := to_run(folder, options)[part - 1 :: parts]:
            for mutant in todo:
                run_one(mutant, folder, tree, shared, options)
            if options.again or options.wider:
                break


def run_one(mutant, folder, tree, shared, options):
    """Run a mutant in its round and note what came of it."""
    tests, began = known(folder), sum(os.times()[:4])
    turns = tests_for(mutant, tests, shared)
    second = mutant.key in {e["key"] for e in results(folder)}
    if options.again:
        turns = [changed_tests(mutant, folder, tree)]
    elif second:
        turns = others_for(mutant, tests, shared, turns)
    caught = run(mutant, tree, tests, turns)
    entry = mutant._asdict() | {"key": mutant.key, "caught": caught, "round": 1 + second}
    entry |= {"tests": sum(map(len, turns)), "again": options.again}
    entry |= {"seconds": round(sum(os.times()[:4]) - began, 1)}
    with (folder / f"results{options.part[0]}.jsonl").open("a") as file:
        file.write(json.dumps(entry) + "\n")
    print(f"{caught or 'SURVIVED':60.60}  {mutant.first}  {mutant.key}", flush=True)


def report(folder, options):
    """Shares by layer and by kind, and the survivors with what is known of them."""
    from measure import write

    first, last = {}, {}
    # Parts were written side by side, so that a file of results may be older than the one before.
    for entry in sorted(results(folder), key=lambda e: e["again"]):
        if not entry["again"]:
            first[entry["key"]] = entry
        if entry["key"] in first:
            last[entry["key"]] = entry
    reasons = json.loads(EQUIVALENT.read_text()) if EQUIVALENT.exists() else {}
    rows = []
    for name, of in [("layer", lambda e: e["file"].split("/")[2]), ("kind", lambda e: e["kind"])]:
        for value in sorted({of(e) for e in last.values()}):
            rows.append(
                _row(
                    f"{name}: {value}", [e for e in last.values() if of(e) == value], first, reasons
                )
            )
    rows.append(_row("all", list(last.values()), first, reasons))
    rounds = Counter(e.get("round", 1) for e in first.values() if e["caught"])
    survivors = [e for e in last.values() if not e["caught"]]
    notes = [
        f"{options.number} were drawn (seed {options.seed}), {len(last)} different ones were run.",
        f"{100 * rows[-1][2] / (rows[-1][1] - rows[-1][4]):.1f} % of those that are not the same",
        "program were caught when drawn.",
        f"Caught when drawn: {rounds[1]} by the mirrored tests and {LIMIT} seconds of others,",
        f"{rounds[2]} by the rest of the push tests that run the statement. Earlier draws had the",
        "first round only: " + " ".join(EARLIER),
        "",
        "Survivors:",
        "",
    ]
    notes += [
        f"- `{e['file']}` line {e['first']}: `{e['was']}` became `{e['now']}`: "
        + reasons.get(e["key"], f"none of {first[e['key']]['tests']} tests notices it.")
        for e in sorted(survivors, key=lambda e: e["key"])
    ]
    header = ["mutants", "run", "caught when drawn", "caught now", "the same program"]
    write("mutants", "Changes of one place that the push tests notice", header, rows, notes)


def _row(name, entries, first, reasons):
    caught = [e for e in entries if e["caught"]]
    same = [e for e in entries if not e["caught"] and "same" in reasons.get(e["key"], "")]
    before = [e for e in entries if first[e["key"]]["caught"]]
    return [name, len(entries), len(before), len(caught), len(same)]


def main():
    """Draw mutants and run them, or report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "mutants")
    parser.add_argument("--number", type=int, default=240)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--part", default="1/1", help="1/2 and 2/2 in two processes")
    parser.add_argument("--wider", action="store_true", help="survivors, with tests measured since")
    parser.add_argument("--again", action="store_true", help="survivors, with the tests of now")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.report:
        return report(folder, options)
    run_all(folder, options)


if __name__ == "__main__":
    main()
