"""The exceptions of gnomon."""


class NumericalError(ArithmeticError):
    """A computation left the range where its result means anything."""
