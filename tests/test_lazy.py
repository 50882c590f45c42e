"""What is imported when first used, and what is said where it is not there."""

import re
import sys
from inspect import isfunction
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
