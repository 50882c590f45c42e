"""Progress bars on standard error: rich where it is installed, else a line that is written over."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import count


@contextmanager
def bar(total) -> Iterator[Callable[[str], None]]:
    """A bar of so many steps; yields what advances it, with a word on the step."""
    yield from _plain_bar(total) if find_spec("rich") is None else _rich_bar(total)


def _rich_bar(total):
    from rich import progress
    from rich.console import Console

    counts = progress.BarColumn(), progress.MofNCompleteColumn(), progress.TimeRemainingColumn()
    name, step = (progress.TextColumn(text) for text in ("comparing", "{task.description}"))
    with progress.Progress(name, *counts, step, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        yield lambda text: bar.update(task, advance=1, description=text)


def _plain_bar(total):
    number = count(1)
    yield lambda text: print(
        f"\rcomparing {next(number)}/{total}  {text:<40}", end="", file=sys.stderr, flush=True
    )
    print(file=sys.stderr)
