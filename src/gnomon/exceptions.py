"""The exceptions of gnomon."""


class NumericalError(ArithmeticError, ValueError):
    """A computation left the range where its result means anything."""


class ModelFileError(ValueError):
    """A file that is not a whole gnomon model file, or a model that such a file cannot hold."""


class TableError(ValueError):
    """A table, or a column of it, that cannot be read as what it should be."""
