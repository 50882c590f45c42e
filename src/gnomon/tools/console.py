"""What the command says, one line each: to people or to programs, also when something fails."""

import json
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

from gnomon.exceptions import visible


class Terminated(BaseException):
    """The system asks the process to end."""


class Console:
    """Messages and progress to standard error, results to standard output."""

    def __init__(self, *, quiet=False, as_json=False):
        self.quiet, self.as_json = quiet, as_json
        self.files: list[str] = []
        self.notes: list[str] = []

    def note(self, text):
        """Something worth knowing about the data, said once and kept for the report."""
        if text not in self.notes:
            self.notes.append(text)
            self.say(f"note: {text}")

    def say(self, text):
        """A line for people."""
        if self.is_talking:
            text = visible(text, keep="\n")
            self._err.print(text, markup=False, highlight=False, soft_wrap=True)

    def wrote(self, path):
        """Remember a file that is whole, so that an interruption can name it."""
        self.files.append(str(path))
        return Path(path)

    def result(self, pairs: dict, extra: dict | None = None):
        """The outcome: two columns for people, JSON for programs."""
        if self.as_json:
            whole = pairs | (extra or {}) | {"notes": self.notes, "files": self.files}
            print(json.dumps(whole, default=str, indent=2))
        elif not self.quiet:
            self._table(pairs)

    def text(self, text, values: dict):
        """A text for people, values for programs."""
        if self.as_json:
            self.result(values)
        elif not self.quiet:
            print(visible(text, keep="\n"))

    @property
    def is_talking(self) -> bool:
        """Whether progress is wanted."""
        return not (self.quiet or self.as_json)

    def _table(self, pairs):
        """Names and values in two columns; nothing is cut, so that a path can be copied."""
        from rich.text import Text

        width = max(map(len, pairs)) + 2
        for name, value in pairs.items():
            lines = visible(str(value), keep="\n").replace("\n", "\n" + " " * width)
            line = Text.assemble((name.ljust(width), "bold"), lines)
            _screen().print(line, soft_wrap=True)

    @contextmanager
    def stage(self, title):
        """A line that lives while the stage does; yields a function that adds to it."""
        # Colours may be forced, as in a notebook; a line is drawn again only on a terminal.
        if not (self.is_talking and sys.stderr.isatty()):
            yield lambda text: None
            return
        from rich.text import Text

        title = visible(title)
        with self._err.status(Text(title)) as status:
            yield lambda text: status.update(Text(f"{title} {visible(text)}"))

    @contextmanager
    def warnings_as_notes(self):
        """Warnings of the libraries as notes, each once."""
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                yield
            finally:
                for warning in caught:
                    if not issubclass(warning.category, DeprecationWarning | FutureWarning):
                        self.note(" ".join(str(warning.message).split()))

    @property
    def _err(self):
        return _screen(stderr=True)


def _screen(**options):
    from rich.console import Console as Rich

    return Rich(**options)


@contextmanager
def one_line_errors(console, *, debug):
    """What went wrong as one sentence and an exit code; the traceback only for --debug."""
    try:
        yield
    except (KeyboardInterrupt, Terminated) as error:
        kept = f"; kept: {', '.join(console.files)}" if console.files else "; nothing was written"
        by_key = isinstance(error, KeyboardInterrupt)
        _leave(f"{'interrupted' if by_key else 'terminated'}{kept}", 130 if by_key else 143)
    except BrokenPipeError:
        _leave("", 1)
    except Exception as error:
        if debug:
            raise
        _leave(f"gnomon: {explain(error)}", 1)


def explain(error) -> str:
    """An exception as one sentence."""
    text = " ".join(str(error).split())
    expected = (ValueError, OSError, ImportError, ArithmeticError, TypeError)
    if isinstance(error, MemoryError):
        return "this does not fit in memory; take fewer rows or columns"
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror.lower()}"
    if isinstance(error, expected) and text:
        return text
    name = type(error).__name__
    return f"this should not happen ({name}: {text}); run again with --debug and report it"


def _leave(text, code):
    if text:
        print(visible(text), file=sys.stderr)
    raise SystemExit(code)
