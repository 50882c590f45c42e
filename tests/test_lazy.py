"""What is imported when first used, and what is said where it is not there."""

import sys

import pytest

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
