"""Running trials: in order, in parallel, within a time limit, and keeping what is done."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NamedTuple

from joblib import Parallel, delayed, effective_n_jobs, parallel_config

from gnomon.tools.comparison.trials import Outcome, run_trial


class Runs(NamedTuple):
    """Outcomes so far, and why there are no more ("" if all trials were run)."""

    outcomes: list[Outcome]
    stopped: str


def run_trials(problem, trials, evaluator, *, n_jobs, time_limit, progress) -> Runs:
    """Run trials until they end, the time is up, or the user interrupts."""
    deadline = None if time_limit is None else time.monotonic() + time_limit
    started: list[int] = []
    outcomes: list[Outcome] = []
    stopped = ""

    def due():
        for index, trial in enumerate(trials):
            if deadline is not None and time.monotonic() > deadline:
                return
            started.append(index)
            yield trial

    with _bar(len(trials), progress) as advance:
        try:
            for done in _execute(problem, due(), evaluator, n_jobs):
                outcomes += done
                advance(f"{done[0].model}, split {done[0].split + 1}")
        except KeyboardInterrupt:
            stopped = "interrupted"
    if not stopped and len(started) < len(trials):
        stopped = f"the time limit of {time_limit:g} s was reached"
    return Runs(outcomes, stopped)


def _execute(problem, trials, evaluator, n_jobs) -> Iterator[list[Outcome]]:
    if effective_n_jobs(n_jobs) == 1:
        for trial in trials:
            yield run_trial(problem, trial, evaluator)
        return
    # One thread of BLAS for each process, or the processes would fight for the cores.
    with parallel_config(backend="loky", inner_max_num_threads=1):
        pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="n_jobs")
        yield from pool(delayed(run_trial)(problem, trial, evaluator) for trial in trials)


@contextmanager
def _bar(total, progress) -> Iterator[Callable[[str], None]]:
    """A progress bar on stderr: rich where installed, else a line that is written over."""
    if progress == "auto":
        progress = sys.stderr.isatty()
    if not progress:
        yield lambda text: None
    elif find_spec("rich") is not None:
        yield from _rich_bar(total)
    else:
        yield from _plain_bar(total)


def _rich_bar(total):
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("comparing"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda text: bar.update(task, advance=1, description=text)


def _plain_bar(total):
    count = 0

    def advance(text):
        nonlocal count
        count += 1
        sys.stderr.write(f"\rcomparing {count}/{total}  {text:<40}")
        sys.stderr.flush()

    yield advance
    sys.stderr.write("\n")
