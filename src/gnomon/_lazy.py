"""Names of a package, and packages of an extra, that are imported when first used."""

import sys
from importlib import import_module

from gnomon.exceptions import how_to_install


def lazy_names(package, homes):
    """``__getattr__`` and ``__dir__`` of a package; homes maps each name to its module.

    A name whose home is the package's own submodule of that name is the submodule itself.
    """

    def get(name):
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = import_module(homes[name])
        value = home if homes[name] == f"{package}.{name}" else getattr(home, name)
        setattr(sys.modules[package], name, value)
        return value

    def names():
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names


def import_extra(module, extra, what):
    """A module that an extra brings, or an error that says what needs it and how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(f"{what} needs {package}: {how_to_install(extra)}") from error
