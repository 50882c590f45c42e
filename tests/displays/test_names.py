import subprocess
import sys

import pytest

import gnomon
from gnomon import displays


@pytest.mark.parametrize("name", displays.__all__)
def test_every_display_has_the_form(name):
    display = getattr(displays, name)
    assert callable(display.plot)
    assert any(hasattr(display, form) for form in ("from_estimator", "from_data", "from_search"))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing"):
        displays.nothing  # noqa: B018


def test_names_are_listed():
    assert set(displays.__all__) <= set(dir(displays))
    assert "displays" in dir(gnomon)


def test_import_loads_no_matplotlib():
    names = ", ".join(displays.__all__)
    code = f"import sys, gnomon; from gnomon.displays import {names}; " + (
        "assert gnomon.displays is sys.modules['gnomon.displays']; "
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
