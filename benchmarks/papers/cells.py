"""Cells of a table: run once, kept in a file, summed up beside the paper's figures.

A run appends a line of JSON for each cell and skips those it finds finished, so that it goes on
where it stopped and tries again what failed. The summary, with versions and machine, is what is
committed. A row of the committed summary stays as long as it has more repeats than the run at
hand, so that a short run, or one without the earlier cells, takes nothing away; to measure afresh
after a change, remove the summary and the cells. A new row keeps the values of its repeats too, for
tests of ranks, and the versions that made it.
"""

import argparse
import json
import platform
import time
from collections import defaultdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import numpy as np
from benchmarks.papers.data import MissingDataError

import gnomon

RESULTS = Path(__file__).parents[1] / "results" / "papers"
RUNS = Path(__file__).parents[1] / ".runs"
# What tells rows of a summary apart.
KEY = ("table", "data", "method", "size", "measure")
# Over how many splits each paper takes its means.
PRINTED_SPLITS = {"YYTKW06": 50, "LYZ09": 100, "G13": 10}


def arguments(description):
    """--quick for two repeats and the small data sets; --repeats for another number."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="two repeats, small data sets only")
    parser.add_argument("--repeats", type=int, default=None, help="repeats of every cell")
    parser.add_argument("--data", nargs="*", default=None, help="only these data sets")
    parser.add_argument("--sizes", nargs="*", type=int, default=None, help="only these sizes")
    parser.add_argument("--methods", nargs="*", default=None, help="only these methods")
    parser.add_argument("--time-limit", type=float, default=np.inf, help="seconds")
    return parser.parse_args()


class Cells:
    """Finished cells of one paper, keyed by table, data set, method, size and repeat."""

    def __init__(self, paper, time_limit=np.inf, *, quick=False):
        RUNS.mkdir(exist_ok=True)
        # A quick run leaves the committed results alone.
        self.summary = (RUNS if quick else RESULTS) / f"{paper}.json"
        self.paper, self.path = paper, RUNS / f"{paper}.jsonl"
        self.deadline = time.monotonic() + time_limit
        self.done = {}
        self.skipped = {}
        if self.path.exists():
            for line in self.path.read_text().splitlines():
                record = json.loads(line)
                if "failure" not in record["values"]:
                    self.done[tuple(record["key"])] = record

    def run(self, key, compute):
        """Values of a cell, a dictionary of floats: kept ones, or computed now and kept."""
        key = tuple(key)
        if key in self.done or time.monotonic() > self.deadline:
            return
        start = time.perf_counter()
        try:
            values = compute()
        except MissingDataError as reason:
            self.skipped[key[1]] = str(reason)
            return
        except Exception as error:
            values = {"failure": f"{type(error).__name__}: {error}"[:300]}
        record = {"key": list(key), "values": values, "seconds": time.perf_counter() - start}
        self.done[key] = record
        with self.path.open("a") as file:
            file.write(json.dumps(record) + "\n")
        print(key, values, f"{record['seconds']:.1f} s", flush=True)

    def means(self):
        """Mean, standard deviation, number of repeats and mean seconds, by key and measure."""
        groups = defaultdict(list)
        for (*cell, _), record in self.done.items():
            for measure, value in record["values"].items():
                if isinstance(value, float):
                    groups[*cell, measure].append((value, record["seconds"]))
        return {key: _summed(pairs) for key, pairs in groups.items()}

    def tables(self):
        """Sums over the repeats of the tables that cells hold, and the number of repeats."""
        found = {}
        for (_, data, method, size, _), record in self.done.items():
            if "confusion" in record["values"]:
                own = found.setdefault(f"{data}, {method}, {size}", {"repeats": 0, "sum": 0})
                own["repeats"] += 1
                own["sum"] = own["sum"] + np.array(record["values"]["confusion"])
        return {key: own | {"sum": own["sum"].tolist()} for key, own in found.items()}

    def reached(self):
        """Cells of which this run or the summary has a repeat."""
        return {key[:-1] for key in (*self.done, *self._stored())}

    def _stored(self):
        """Rows of the summary as it is, by their keys."""
        return {tuple(row[part] for part in KEY): row for row in self._read("rows", [])}

    def _read(self, part, nothing):
        """A part of the summary as it is."""
        if not self.summary.exists():
            return nothing
        return json.loads(self.summary.read_text()).get(part, nothing)

    def write(self, published, notes):
        """Write the summary: a record for each cell, with the paper's figure where it has one."""
        rows = self._stored()
        for key, own in self.means().items():
            rows[key] = _longer(dict(zip(KEY, key, strict=True)) | own, rows.get(key))
        splits = PRINTED_SPLITS.get(self.paper, 1)
        rows = [
            _beside(rows[key], published.get(key), splits) for key in sorted(rows, key=in_order)
        ]
        summary = {"paper": self.paper, **_circumstances(), "notes": notes, "rows": rows}
        summary["failed"] = self._failures()
        summary["skipped"] = self.skipped
        summary["confusions"] = self._read("confusions", {}) | self.tables()
        self.summary.parent.mkdir(parents=True, exist_ok=True)
        self.summary.write_text(written(summary))
        _print(rows)

    def _failures(self):
        found = {}
        for (table, data, method, size, _), record in self.done.items():
            if "failure" in record["values"]:
                found[f"{table}, {data}, {method}, {size}"] = record["values"]["failure"]
        return found


def in_order(key):
    """Keys by table, data, method, size as a number, measure."""
    table, data, method, size, measure = key
    return table, data, method, float(size), measure


def written(summary):
    """The summary as text: a line for every row and for every confusion matrix."""
    rows = ",\n ".join(json.dumps(row) for row in summary["rows"])
    tables = ",\n ".join(f"{json.dumps(k)}: {json.dumps(t)}" for k, t in _tables(summary))
    text = json.dumps(summary | {"rows": "ROWS", "confusions": "TABLES"}, indent=1)
    text = text.replace('"ROWS"', f"[\n {rows}]", 1)
    return text.replace('"TABLES"', "{" + tables + "}", 1) + "\n"


def _tables(summary):
    return summary.get("confusions", {}).items()


def _summed(pairs):
    """Mean, standard deviation and number of the values, all of them, the mean of the seconds."""
    values, seconds = zip(*pairs, strict=True)
    sd = np.std(values, ddof=1) if len(values) > 1 else 0.0
    rounded = {"ours": round(float(np.mean(values)), 4), "sd": round(float(sd), 4)}
    made = {"values": [round(value, 4) for value in values], "made": gnomon.__version__}
    return rounded | {"repeats": len(values), "seconds": round(float(np.mean(seconds)), 3)} | made


def _longer(own, stored):
    """Of two rows of a cell the one with more repeats.

    One without seconds takes the other's, and so does one without the values of its splits: those
    of fewer splits serve a test of ranks as well.
    """
    if stored is None or own["repeats"] >= stored["repeats"]:
        return own
    return {name: own[name] for name in ("seconds", "values")} | stored


def _beside(row, paper, splits):
    """A row beside the paper's figure, if there is one."""
    row = {name: value for name, value in row.items() if name != "difference"}
    if paper is None:
        return row
    figures = {"paper": paper[0], "paper_sd": paper[1], "paper_repeats": splits}
    return row | figures | {"difference": round(row["ours"] - paper[0], 4)}


def _circumstances():
    packages = ("numpy", "scipy", "scikit-learn")
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{platform.machine()}, {platform.system()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in packages},
        "seed": "repeat r uses numpy.random.default_rng(r)",
    }


def _print(rows):
    print(f"\n{'data':18}{'method':26}{'size':>6}{'measure':>12}{'paper':>9}{'ours':>9}{'diff':>9}")
    for row in rows:
        paper, difference = row.get("paper"), row.get("difference")
        print(
            f"{row['data']:18}{row['method']:26}{row['size']!s:>6}{row['measure']:>12}"
            f"{'' if paper is None else f'{paper:.4f}':>9}{row['ours']:>9.4f}"
            f"{'' if difference is None else f'{difference:+.4f}':>9}"
        )
