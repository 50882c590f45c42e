"""Configuration of the documentation; `make docs` builds it, and every warning is an error."""

import os
import re
import sys
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The command `gnomon` of guides is the one of the interpreter that builds them, and their cells
# find docs/shell.py, which runs it.
os.environ["PYTHONPATH"] = os.pathsep.join(
    [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
)
os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])

import matplotlib

matplotlib.use("Agg")

sys.path.insert(0, str(Path(__file__).parent))
from figures import substitutions

import gnomon

HERE = Path(__file__).parent

project = "gnomon"
author = "the gnomon developers"
copyright = "the gnomon developers"
version = release = gnomon.__version__

extensions = [
    # Markdown, with the code of guides run.
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    # Formulas are readable without a network.
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
]
# The first is what pages of the API are written as.
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb"}
exclude_patterns = [
    "_build",
    "_templates",
    "**/*.ipynb",
    "jupyter_execute",
    "gallery/*.py",
    "sg_execution_times.rst",
]
templates_path = ["_templates"]
nitpicky = False

myst_enable_extensions = [
    "dollarmath",
    "amsmath",
    "colon_fence",
    "deflist",
    "smartquotes",
    "substitution",
]
# Figures on the pages are those of benchmarks/results.
myst_substitutions = substitutions()
myst_heading_anchors = 4

# Guides run in folders of their own; what has not changed is taken from the last build.
nb_execution_mode = "cache"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
# Packages for cells ask for other versions of pandas than some machines have.
nb_execution_excludepatterns = [] if find_spec("scanpy") else ["guides/cells.md"]
nb_merge_streams = True
nb_mime_priority_overrides = [("html", "text/html", None)]

autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# From the first picture to what is beyond a map.
SECTIONS = ("start", "maps", "labels", "links", "gaps", "numbers", "uncertainty", "large", "beyond")
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"[\\/]plot_",
    "ignore_pattern": r"__init__\.py",
    "subsection_order": [f"../examples/{name}" for name in SECTIONS],
    "within_subsection_order": "FileNameSortKey",
    "doc_module": ("gnomon",),
    "reference_url": {"gnomon": None},
    "backreferences_dir": "gallery/backreferences",
    "capture_repr": (),
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "abort_on_example_error": True,
    "show_memory": False,
    "write_computation_times": False,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "gnomon"
html_static_path = ["_static"]
html_css_files = ["gnomon.css"]
html_js_files = ["equations.js"]
html_show_sourcelink = False
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
}


def read_bibliography():
    """Entries of references.bib: key to the words that name the work."""
    text = (HERE / "references.bib").read_text(encoding="utf-8")
    return {key: _words(body) for key, body in re.findall(r"@\w+\{(\w+),(.*?)\n\}", text, re.S)}


def _words(body):
    fields = dict(re.findall(r"(\w+)\s*=\s*\{((?:[^{}]|\{[^{}]*\})*)\}", body))
    clean = {name: _plain(value) for name, value in fields.items()}
    people = [" ".join(reversed(p.split(", "))) for p in clean["author"].split(" and ")]
    names = people[0] if len(people) == 1 else ", ".join(people[:-1]) + " and " + people[-1]
    where = clean.get("journal") or clean.get("booktitle") or clean.get("publisher", "")
    volume = f" {clean['volume']}" if "volume" in clean else ""
    number = f"({clean['number']})" if "number" in clean else ""
    pages = f", {clean['pages']}" if "pages" in clean else ""
    return f"{names} ({clean['year']}). {clean['title']}. *{where}*{volume}{number}{pages}."


def _plain(value):
    value = re.sub(r"\{\\(['\"`^~])(\w)\}", _accented, value)
    return re.sub(r"[{}]", "", value).replace("--", "\N{EN DASH}")


def _accented(match):
    import unicodedata

    marks = {'"': "DIAERESIS", "'": "ACUTE ACCENT", "`": "GRAVE ACCENT"}
    marks |= {"^": "CIRCUMFLEX ACCENT", "~": "TILDE"}
    mark = unicodedata.lookup(f"COMBINING {marks[match[1]]}")
    return unicodedata.normalize("NFC", match[2] + mark)


def link_citations(app, docname, source):
    """Make every [key] of references.bib on a markdown page a link to the list of references."""
    if Path(app.env.doc2path(docname)).suffix != ".md":
        return
    entries = read_bibliography()
    if docname == "references":
        app.env.note_dependency("references.bib", docname=docname)
        source[0] += "".join(f"\n({key})=\n[{key}]\n: {text}\n" for key, text in entries.items())
        return
    up = "../" * docname.count("/")
    source[0] += (
        "\n" + "".join(f"\n[{key}]: {up}references.md#{key.lower()}" for key in entries) + "\n"
    )


def skip_inherited(app, what, name, obj, skip, options):
    """Leave out what scikit-learn documents: its pages, not ours, are the reference for it."""
    home = getattr(obj, "__module__", None) or ""
    if home.startswith("sklearn") or (name.startswith("set_") and name.endswith("_request")):
        return True
    return None


def quote_attributes(app, what, name, obj, options, lines):
    """Keep ``n_features_in_`` in a type from being read as a link."""
    for i, line in enumerate(lines):
        head, colon, kind = line.partition(" : ")
        if colon and head.strip().isidentifier():
            lines[i] = head + colon + re.sub(r"(?<![`\w])(\w+_)(?![`\w])", r"``\1``", kind)


def widen_reproduction(app, pagename, templatename, context, doctree):
    """Give the tables of the papers the room of the bar on the right."""
    if pagename.startswith("reproduction/"):
        context["meta"] = (context.get("meta") or {}) | {"html_theme.sidebar_secondary.remove": ""}


def setup(app):
    """Connect the hooks above."""
    app.connect("html-page-context", widen_reproduction)
    app.connect("source-read", link_citations)
    app.connect("autodoc-skip-member", skip_inherited)
    app.connect("autodoc-process-docstring", quote_attributes, priority=400)
