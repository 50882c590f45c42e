"""The command ``gnomon``: its options and their help.

The work is in `commands`, imported when needed; what is said of it in `console`.
"""

import codecs
import inspect as signatures
import io
import signal
import sys
import unicodedata
from functools import wraps
from pathlib import Path
from typing import Annotated

from gnomon.exceptions import how_to_install

try:
    import typer
except ImportError as error:
    raise SystemExit(f"gnomon: the command needs more: {how_to_install('cli')}") from error

import gnomon
from gnomon.tools.console import Console, Terminated, one_line_errors

app = typer.Typer(
    name="gnomon",
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Low-dimensional pictures of tables, from what you know: labels, links, chunks, gaps.",
    epilog="Start with `gnomon demo`, or `gnomon fit table.csv --target species --out result`.",
)

TableFile = Annotated[
    Path,
    typer.Argument(help="csv, tsv, xlsx, ods, parquet, feather, npz, mtx, svmlight or h5ad file."),
]
ModelFile = Annotated[Path, typer.Argument(help="A file that `gnomon fit` wrote.")]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        help="Column to explain; empty cells are unlabelled. Give it once for each of several "
        "numbers, or of several columns of yes and no.",
    ),
]
Id = Annotated[str | None, typer.Option("--id", help="Column with the names of the rows.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="Folder for the results.")]
READING = {
    "encoding": Annotated[str | None, typer.Option(help="Of a text file; utf-8 if not given.")],
    "separator": Annotated[
        str | None, typer.Option(help="Between cells of a text file; found if not given.")
    ],
    "decimal": Annotated[
        str | None, typer.Option(help="Decimal point or comma; found if not given.")
    ],
    "thousands": Annotated[
        str | None, typer.Option(help="Mark between thousands: . , ' or a blank.")
    ],
    "na": Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORD",
            help="Cell that means no value, in all columns or, as COLUMN=WORD, in one; repeat it.",
        ),
    ],
    "censored": Annotated[
        str | None,
        typer.Option(help="What <0.5 among numbers is: half (of the limit; >9 is 9) or gap."),
    ],
    "dayfirst": Annotated[
        bool | None,
        typer.Option("--dayfirst/--monthfirst", help="Order in dates; found if not given."),
    ],
    "sheet": Annotated[str | None, typer.Option(help="Of a workbook: its name, or number from 1.")],
    "transpose": Annotated[
        bool | None, typer.Option("--transpose/--no-transpose", help="Rows are the features.")
    ],
    "max_growth": Annotated[
        float | None,
        typer.Option(help="How many times its size a file may take in memory; 200 if not given."),
    ],
}
Task = Annotated[
    str, typer.Option(help="What the target is: auto, classes, numeric or multilabel.")
]
Unlabelled = Annotated[
    str | None, typer.Option(help="Value of the target that means no label, besides empty cells.")
]
Ignore = Annotated[
    list[str] | None, typer.Option(help="Column to leave out; give it once for each.")
]
Scale = Annotated[
    str, typer.Option(help="standard, none, or auto: standard for columns, none for matrices.")
]
Layout = Annotated[
    str,
    typer.Option(
        help="What the picture shows: axes, two of them at a time, or neighbours: a plane in which "
        "rows near each other on the whole map are near."
    ),
]
TimeLimit = Annotated[
    float | None, typer.Option(help="Seconds after which to end with what there is.")
]
Seed = Annotated[int, typer.Option(help="Start of the random numbers.")]
LinksFile = Annotated[
    Path | None,
    typer.Option(
        help="File with a link per row: two names, perhaps a weight; or the word neighbours."
    ),
]
NewLinks = Annotated[
    Path | None,
    typer.Option("--links", help="Links of these rows, to each other and to those of the fit."),
]
Chunks = Annotated[
    str | None, typer.Option(help="Column whose equal values mean the same unknown class.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing unless it fails.")]
Json = Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


def _reads_table(command):
    """The command with the options of READING; it gets those that were given as one dict."""

    @wraps(command)
    def with_options(**options):
        given = {name: options.pop(name) for name in READING}
        given["na"] = tuple(given["na"] or ()) or None
        command(**options, reading={k: value for k, value in given.items() if value is not None})

    own = list(signatures.signature(command).parameters.values())
    place = [parameter.name for parameter in own].index("reading")
    empty = own.pop(place)
    own[place:place] = [empty.replace(name=n, annotation=kind) for n, kind in READING.items()]
    with_options.__signature__ = signatures.Signature(own)  # type: ignore[attr-defined]
    return with_options


def _version(asked: bool):
    if asked:
        typer.echo(f"gnomon {gnomon.__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
):
    pass


def _run(name, quiet, as_json, debug, **options):
    """Call the command of that name; imports happen here, when the options are known."""
    console = Console(quiet=quiet, as_json=as_json)
    with one_line_errors(console, debug=debug):
        from gnomon.tools import commands

        getattr(commands, name)(console, **options)


@app.command(epilog="Example: `gnomon fit wine.csv --target class --id bottle --out wine`")
@_reads_table
def fit(
    table: TableFile,
    target: Target = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for the results; TABLE-map if not given."),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            "--model", "-m", help="auto, ppca, sppca, kernel-sppca, prpca, dcagm or bsdr."
        ),
    ] = "auto",
    components: Annotated[
        str, typer.Option("--components", "-k", help="Number of dimensions, or auto.")
    ] = "auto",
    task: Task = "auto",
    unlabelled: Unlabelled = None,
    links: LinksFile = None,
    chunks: Chunks = None,
    id: Id = None,
    ignore: Ignore = None,
    supervision: Annotated[
        str | None, typer.Option(help="Weight of the labels, 0 to 1, or auto (sppca).")
    ] = None,
    scale: Scale = "auto",
    layout: Layout = "axes",
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    reading=None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
):
    """Fit a model to a table.

    Writes the embedding with standard deviations, predictions for unlabelled rows, the model
    and a report into a folder.
    """
    asked: dict = {"model": model, "components": components, "supervision": supervision}
    asked |= {"target": target, "task": task, "unlabelled": unlabelled, "links": links}
    asked |= {"chunks": chunks, "id": id, "ignore": tuple(ignore or ()), "scale": scale}
    asked |= {"layout": layout, "seed": seed}
    more = {"reading": reading, "asked": asked, "time_limit": time_limit}
    _run("fit", quiet, as_json, debug, path=table, out=out, **more)


def _of_model(name, help, example):
    """Add a command that takes a model and a table and writes a file."""

    @app.command(name, help=help, epilog=f"Example: `gnomon {name} {example}`")
    @_reads_table
    def command(
        model: ModelFile,
        table: TableFile,
        out: Annotated[
            Path | None, typer.Option("--out", "-o", help="csv or parquet file; - for the screen.")
        ] = None,
        links: NewLinks = None,
        reading=None,
        quiet: Quiet = False,
        as_json: Json = False,
        debug: Debug = False,
    ):
        files = {"model_path": model, "path": table, "out": out}
        _run(name, quiet, as_json, debug, **files, links=links, reading=reading)


_of_model(
    "transform",
    "Place the rows of a table in the picture of a model, with standard deviations.",
    "wine/model.gnomon new.csv --out -",
)
_of_model(
    "predict",
    "Predict the target of a table's rows: classes with probabilities, numbers with deviations.",
    "wine/model.gnomon new.csv",
)


@app.command(epilog="Example: `gnomon report wine/model.gnomon wine.csv --out wine.html`")
@_reads_table
def report(
    model: ModelFile,
    table: TableFile,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="HTML file; report.html if not given.")
    ] = None,
    links: NewLinks = None,
    layout: Annotated[
        str | None,
        typer.Option(help="What the picture shows: axes or neighbours; as fitted if not given."),
    ] = None,
    time_limit: TimeLimit = None,
    reading=None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
):
    """Write the report of a model on a table: one HTML file that opens offline."""
    files = {"model_path": model, "path": table, "out": out, "links": links}
    more = {"reading": reading, "time_limit": time_limit, "layout": layout}
    _run("report", quiet, as_json, debug, **files, **more)


@app.command(epilog="Example: `gnomon impute wine/model.gnomon wine.csv --out filled.csv`")
@_reads_table
def impute(
    model: ModelFile,
    table: TableFile,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="csv or parquet file; - for the screen.")
    ] = None,
    beyond_range: Annotated[
        bool,
        typer.Option("--beyond-range", help="Fill with values that the fit has not seen, too."),
    ] = False,
    reading=None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
):
    """Fill the gaps of a table in its own units, and say how sure each filling is."""
    files = {"model_path": model, "path": table, "out": out}
    _run("impute", quiet, as_json, debug, **files, reading=reading, beyond_range=beyond_range)


@app.command(epilog="Example: `gnomon compare wine.csv --target class --out wine`")
@_reads_table
def compare(
    table: TableFile,
    target: Target = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for comparison.csv.")
    ] = None,
    components: Annotated[
        str, typer.Option("--components", "-k", help="Numbers of dimensions, with commas.")
    ] = "2,5,10",
    models: Annotated[
        str | None, typer.Option(help="Which to compare, with commas; all that apply if not given.")
    ] = None,
    time_limit: TimeLimit = None,
    task: Task = "auto",
    unlabelled: Unlabelled = None,
    links: LinksFile = None,
    chunks: Chunks = None,
    id: Id = None,
    ignore: Ignore = None,
    scale: Scale = "auto",
    seed: Seed = 0,
    reading=None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
):
    """Which projection suits this table: models and peers, on honest splits."""
    asked: dict = {"target": target, "task": task, "unlabelled": unlabelled, "links": links}
    asked |= {"chunks": chunks, "id": id, "ignore": tuple(ignore or ()), "scale": scale}
    asked |= {"seed": seed}
    more = {"components": components, "models": models, "time_limit": time_limit}
    files = {"path": table, "out": out, "reading": reading}
    _run("compare", quiet, as_json, debug, **files, asked=asked, **more)


@app.command(epilog="Example: `gnomon label birds.csv --target kind --image photo`")
@_reads_table
def label(
    table: TableFile,
    target: Annotated[
        str, typer.Option("--target", "-t", help="Column to label; it may not be there yet.")
    ],
    classes: Annotated[
        str | None, typer.Option(help="Names of the classes with commas, in the order of keys.")
    ] = None,
    id: Id = None,
    image: Annotated[
        str | None, typer.Option(help="Column with the name of an image file for each row.")
    ] = None,
    image_folder: Annotated[
        Path | None, typer.Option(help="Where those files are; the folder of the table if not.")
    ] = None,
    text: Annotated[
        str | None, typer.Option(help="Column with a text to read for each row.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Folder for what is kept; TABLE-labels if not given."),
    ] = None,
    model: Annotated[
        str, typer.Option("--model", "-m", help="auto, sppca, kernel-sppca, dcagm or bsdr.")
    ] = "auto",
    unlabelled: Unlabelled = None,
    ignore: Ignore = None,
    scale: Scale = "auto",
    seed: Seed = 0,
    port: Annotated[int, typer.Option(help="Port of the page; a free one if 0.")] = 0,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in the browser.")
    ] = True,
    reading=None,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
):
    """Label the rows of a table on a page of this machine that learns from every label.

    The table itself is never written: labels go to a journal, and from there to a table, a model
    and a report. Run again, it goes on where it was left.
    """
    asked: dict = {"target": target, "task": "classes", "unlabelled": unlabelled, "id": id}
    asked |= {"ignore": tuple(ignore or ()), "scale": scale, "seed": seed}
    names = None if classes is None else classes.split(",")
    shown = {"classes": names, "image": image, "image_folder": image_folder, "text": text}
    more = {"shown": shown, "model": model, "seed": seed, "port": port, "browser": browser}
    _run("label", quiet, as_json, debug, path=table, out=out, reading=reading, asked=asked, **more)


@app.command(epilog="Example: `gnomon inspect wine/model.gnomon`")
def inspect(
    model: ModelFile,
    details: Annotated[
        bool, typer.Option("--details", help="Also parameters, arrays and every column.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
    debug: Debug = False,
):
    """Say what a model is, what it was fitted to, how good it is and how to use it."""
    _run("inspect", quiet, as_json, debug, model_path=model, details=details)


@app.command(epilog="Example: `gnomon demo --out demo`")
def demo(
    out: Out = Path("demo"), quiet: Quiet = False, as_json: Json = False, debug: Debug = False
):
    """Show it all on bundled data with few labels and some gaps."""
    _run("demo", quiet, as_json, debug, out=out)


def main():
    """The entry point of the command line."""
    signal.signal(signal.SIGTERM, _terminate)
    codecs.register_error("gnomon.plain", _plain)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="gnomon.plain")
    app()


def _plain(error):
    """Signs that a terminal does not know by their nearest ones: R2 for R with a small 2."""
    signs = unicodedata.normalize("NFKD", error.object[error.start : error.end])
    return "".join(sign if sign.isascii() else "?" for sign in signs), error.end


def _terminate(number, frame):
    """Leave what is under way, so that files that are not whole are removed."""
    raise Terminated
