"""Cells of a table: run once, kept in a file, summed up beside the paper's figures.

A run appends a line of JSON for each cell and skips those it finds finished, so that it goes on
where it stopped and tries again what failed. The summary, with versions and machine, is what is
committed.
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

RESULTS = Path(__file__).parents[1] / "results" / "papers"
RUNS = Path(__file__).parents[1] / ".runs"


def arguments(description):
    """--quick for two repeats and the small data sets; --repeats for another number."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--quick", action="store_true", help="two repeats, small data sets only")
    parser.add_argument("--repeats", type=int, default=None, help="repeats of every cell")
    parser.add_argument("--data", nargs="*", default=None, help="only these data sets")
    parser.add_argument("--time-limit", type=float, default=np.inf, help="seconds")
    return parser.parse_args()


class Cells:
    """Finished cells of one paper, keyed by table, data set, method, size and repeat."""

    def __init__(self, paper, time_limit=np.inf, *, quick=False):
        RUNS.mkdir(exist_ok=True)
        # A quick run leaves the committed results alone.
        self.folder = RUNS if quick else RESULTS
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
        """Mean, standard deviation and number of repeats, by the key and the measure."""
        groups = defaultdict(list)
        for (table, data, method, size, _), record in self.done.items():
            for measure, value in record["values"].items():
                if measure != "failure":
                    groups[table, data, method, size, measure].append(value)
        return {
            key: (float(np.mean(v)), float(np.std(v, ddof=1)) if len(v) > 1 else 0.0, len(v))
            for key, v in groups.items()
        }

    def write(self, published, notes):
        """Write the summary: a record for each cell, with the paper's figure where it has one."""
        rows = []
        for key, (mean, sd, count) in sorted(self.means().items(), key=str):
            paper = published.get(key)
            row = dict(zip(("table", "data", "method", "size", "measure"), key, strict=True))
            row |= {"ours": round(mean, 4), "sd": round(sd, 4), "repeats": count}
            if paper is not None:
                row |= {"paper": paper[0], "paper_sd": paper[1]}
                row["difference"] = round(mean - paper[0], 4)
            rows.append(row)
        self.folder.mkdir(parents=True, exist_ok=True)
        summary = {"paper": self.paper, **_circumstances(), "notes": notes, "rows": rows}
        summary["failed"] = self._failures()
        summary["skipped"] = self.skipped
        (self.folder / f"{self.paper}.json").write_text(json.dumps(summary, indent=1) + "\n")
        _print(rows)

    def _failures(self):
        found = {}
        for (table, data, method, size, _), record in self.done.items():
            if "failure" in record["values"]:
                found[f"{table}, {data}, {method}, {size}"] = record["values"]["failure"]
        return found


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
