"""What the benchmarks share: timing in one run, memory in a process of its own, results files."""

import contextlib
import json
import os
import platform
import subprocess
import sys
import threading
import time
import tracemalloc
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import gnomon

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("numpy", "scipy", "scikit-learn")


def data_folder():
    """The folder of the papers' data sets, or None with a word on why."""
    folder = os.environ.get("GNOMON_DATA")
    if not folder or not Path(folder).is_dir():
        print("skipped: GNOMON_DATA does not name the folder of the papers' data sets")
        return None
    sys.path.insert(0, folder)
    return Path(folder)


def alternate(functions, repeats=5, clock=time.perf_counter):
    """Least seconds of each function, all measured in turn so that they share the weather."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = clock()
            function()
            best[name] = min(best[name], clock() - start)
    return best


@contextlib.contextmanager
def busy_core():
    """Another process that computes all the time."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


def peak_memory(function):
    """Most megabytes that a call holds at once beyond what was there before."""
    tracemalloc.start()
    function()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 2**20


def anonymous_memory(function, every=0.005):
    """Most megabytes of its own (RssAnon, on Linux) that this process has beyond those before."""
    before, most, done = _anonymous(), [0.0], threading.Event()

    def watch():
        while not done.wait(every):
            most[0] = max(most[0], _anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        function()
    finally:
        done.set()
        watcher.join()
    return max(most[0] - before, 0.0)


def _anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("RssAnon"))) / 1024


def process_memory(code):
    """Peak resident megabytes of a new Python process that runs the code."""
    ending = "import resource; print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    command = [sys.executable, "-c", f"{code}\n{ending}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return int(done.stdout.split()[-1]) / 1024


def machine():
    """Where and with what a benchmark ran."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "blas threads": os.environ.get("OPENBLAS_NUM_THREADS", "default"),
        "python": platform.python_version(),
        "gnomon": gnomon.__version__,
        **{name: version(name) for name in PACKAGES},
    }


def describe():
    """The same in one line."""
    return ", ".join(f"{key} {value}" for key, value in machine().items())


def write(name, title, header, rows, notes=()):
    """Print a table, and write it with the machine to results/name.md and .json."""
    table = [" | ".join(header), " | ".join(["---"] * len(header))]
    table += [" | ".join(map(str, row)) for row in rows]
    lines = [
        f"# {title}",
        "",
        *(f"| {row} |" for row in table),
        "",
        *notes,
        "",
        f"Run on: {describe()}.",
    ]
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.md").write_text("\n".join(lines) + "\n")
    record = {"title": title, "header": header, "rows": rows, "machine": machine()}
    (RESULTS / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")
    print("\n".join(lines))


def _cpu():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return platform.processor()
