"""The exceptions of gnomon, and what they say where a package is missing."""


class NumericalError(ArithmeticError, ValueError):
    """A computation left the range where its result means anything."""


class ModelFileError(ValueError):
    """A file that is not a whole gnomon model file, or a model that such a file cannot hold."""


class TableError(ValueError):
    """A table, or a column of it, that cannot be read as what it should be."""


def how_to_install(extra) -> str:
    """How to get the packages of an extra, from an index or from a clone of the repository."""
    return f"pip install 'gnomon-learn[{extra}]', or '.[{extra}]' in a clone"
