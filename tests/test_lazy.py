"""What is imported when first used, and what is said where it is not there."""

import re
import sys
from inspect import getmembers, isclass, isfunction, isroutine, signature, unwrap
from pathlib import Path

import pytest

import gnomon
from gnomon import datasets, displays, io
from gnomon._lazy import import_extra


def test_a_package_that_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    expected = (
        r"to_arviz needs arviz: pip install 'gnomon-learn\[mcmc\]', or '.\[mcmc\]' in a clone"
    )
    with pytest.raises(ImportError, match=expected):
        import_extra("arviz", "mcmc", "to_arviz")


def test_a_package_that_is_there_is_given():
    assert import_extra("json.decoder", "cli", "this") is sys.modules["json.decoder"]


@pytest.mark.parametrize("package", [gnomon, displays], ids=lambda package: package.__name__)
def test_type_checkers_see_every_public_name(package):
    text = Path(package.__file__).read_text(encoding="utf-8").partition("if TYPE_CHECKING:")[2]
    seen = re.findall(r"from ([\w.]+) import (\w+) as (\w+)", text)
    assert all(name == shown for _, name, shown in seen)
    own = package.__name__
    homes = {name: f"{own}.{name}" if home == own else home for home, name, _ in seen}
    assert homes == package._HOMES


def public_functions():
    """Functions, and constructors and methods of classes, that users call, by name."""
    for name in gnomon.__all__ + displays.__all__:
        found = getattr(gnomon, name, None) or getattr(displays, name)
        if isfunction(found):
            yield name, found
        for own, member in getmembers(found, callable) if isclass(found) else ():
            plain = unwrap(member)
            ours = str(getattr(plain, "__module__", "")).startswith("gnomon")
            if ours and isroutine(plain) and (own == "__init__" or not own.startswith("_")):
                yield f"{name}.{own}", plain


@pytest.mark.parametrize(("name", "function"), list(public_functions()))
def test_public_functions_say_what_they_take_and_give(name, function):
    own = signature(function)
    bare = [p.name for p in own.parameters.values() if p.annotation is p.empty and p.name != "self"]
    assert bare == []
    assert name.endswith("__init__") or own.return_annotation is not own.empty


def test_the_file_that_is_checked_strictly_uses_every_public_name():
    path = Path(__file__).parent / "typing" / "use_everything.py"
    text = path.read_text(encoding="utf-8")
    names = [*gnomon.__all__, *displays.__all__]
    for module in (datasets, io):
        own = [
            v for v in vars(module).values() if isfunction(v) and v.__module__ == module.__name__
        ]
        names += [v.__name__ for v in own if not v.__name__.startswith("_")]
    assert [name for name in names if not re.search(rf"\b{name}\b", text)] == []
