"""A page as one file: style and script inside, with the digests by which a policy lets them run.

Numbers go into a page packed, and texts of the data as JSON that cannot end its element.
"""

import base64
import hashlib
import json
from importlib.resources import files

import numpy as np
from jinja2 import Environment, FunctionLoader

from gnomon.displays.style import ON_DARK, PALETTE, PLAIN_COLOURS

# The colours of classes as the drawing takes them.
COLOURS = {"light": PALETTE, "dark": ON_DARK, "plain": PLAIN_COLOURS}
# In a column of levels, the number that stands for none.
NO_LEVEL = 65535
# The drawing and the hand on it, which every page with a picture begins with.
DRAWING = (("picture.js", "hand.js"), __package__)


def asset(name, package=__package__) -> str:
    """The text of a file that lies beside the modules of a package."""
    return files(package).joinpath(name).read_text(encoding="utf-8")


def script(names, package) -> str:
    """The drawing and the scripts of a page as one, each of which needs those before it."""
    parts = [asset(name, home) for own, home in (DRAWING, (names, package)) for name in own]
    whole = "\n".join(parts)
    return f'"use strict";\n(() => {{\n{whole}}})();\n'


def style(name, package) -> str:
    """The style that pages share, and then that of a page."""
    return asset("style.css") + asset(name, package)


def digest(text) -> str:
    """The SHA-256 of a script or style, as a content-security policy names it."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def policy(own_style, own_script, *more) -> str:
    """The content-security policy of a page: nothing but its style and script, and ``more``."""
    allowed = (
        "default-src 'none'",
        f"script-src '{digest(own_script)}'",
        f"style-src '{digest(own_style)}'",
        *more,
        "base-uri 'none'",
        "form-action 'none'",
    )
    return "; ".join(allowed)


def rendered(template, package, **values) -> str:
    """The HTML of a page; values are escaped unless the template says that they are safe.

    Parts that pages share, as ``head.html``, are included from this package.
    """
    shared = Environment(autoescape=True, trim_blocks=True, loader=FunctionLoader(asset))
    return shared.from_string(asset(template, package)).render(**values)


def as_json(values) -> str:
    """JSON without blanks and without numbers that JSON does not have."""
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def as_script(values) -> str:
    """JSON that is safe inside a script element: no way to close it or to open a comment."""
    text = as_json(values)
    for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, code)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def pack(values, dtype) -> str:
    """An array as text: its bytes in base 64."""
    array = np.ascontiguousarray(np.asarray(values).astype(dtype))
    return base64.b64encode(array.tobytes()).decode()
