"""The exceptions of gnomon, and what they say: of foreign texts, and of missing packages."""

import unicodedata


class NumericalError(ArithmeticError, ValueError):
    """A computation left the range where its result means anything."""


class ModelFileError(ValueError):
    """A file that is not a whole gnomon model file, or a model that such a file cannot hold."""


class TableError(ValueError):
    """A table, or a column of it, that cannot be read as what it should be."""


def how_to_install(extra) -> str:
    """How to get the packages of an extra, from an index or from a clone of the repository."""
    return f"pip install 'gnomon-learn[{extra}]', or '.[{extra}]' in a clone"


def visible(text, keep="") -> str:
    """A text with a sign for each one that a terminal would obey: colours, moves, new lines.

    Names and cells come from files of strangers. ``keep`` has the signs that are the caller's own.
    """
    return "".join(sign if _is_plain(sign) or sign in keep else "\ufffd" for sign in text)


def _is_plain(sign):
    return sign.isprintable() or unicodedata.category(sign) == "Zs"
