"""Tables for models in Python, prepared as the command line prepares them."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def read_table(
    path: str | Path,
    *,
    target: str | Sequence[str] | None = None,
    task: Any = "auto",
    unlabelled: Any = None,
    id: Any = None,
    ignore: Any = (),
    links: str | Path | None = None,
    chunks: str | None = None,
    scale: str = "auto",
    fill_gaps: Any = False,
    model: Any = None,
    encoding: Any = None,
    separator: Any = None,
    decimal: Any = None,
    thousands: Any = None,
    na: Any = (),
    censored: Any = None,
    dayfirst: Any = None,
    sheet: Any = None,
    transpose: Any = None,
    max_growth: Any = None,
) -> Any:
    r"""Read a table from a file as ``gnomon fit`` reads it: a matrix, a target, names of the rows.

    Numbers are centred and divided by their standard deviations, dates become days, texts with
    few different ones indicators; gaps stay gaps. Columns that are of no use are left out, with
    a warning that names them.

    Parameters
    ----------
    path : str or path-like
        A csv, tsv, xlsx, xls, ods, parquet, feather, npz, mtx, svmlight or h5ad file.
    target : str or sequence of str, default=None
        Column to explain, or several of numbers or of yes and no; empty cells are unlabelled.
    task : {"auto", "classes", "numeric", "multilabel"}, default="auto"
        What the target is. "auto" takes texts and integers for classes, and floats for numbers
        unless they are whole and at most 20 different ones. Several targets are numbers, or
        multilabel where all their cells are yes and no, true and false, or 1 and 0.
    unlabelled : str, default=None
        Value of the target that means no label, besides empty cells.
    id : str, default=None
        Column with the names of the rows; if None, the first column of texts that all differ.
    ignore : sequence of str, default=()
        Columns to leave out.
    links : str or path-like, default=None
        File with a link per row: two names of rows, perhaps a weight.
    chunks : str, default=None
        Column whose equal values mean the same unknown class.
    scale : {"auto", "standard", "none"}, default="auto"
        Whether columns are divided by their standard deviations; "auto" does so for columns of
        a table, not for a matrix.
    fill_gaps : bool, default=False
        Whether gaps get the means of their columns, for models that take none.
    model : str or path-like, default=None
        A file that ``gnomon fit`` wrote: the table is then read and prepared as that model's own
        was; of the options above only ``fill_gaps`` counts, those below where they are given.
    encoding : str, default=None
        Of a text file; "utf-8" if None.
    separator : str, default=None
        Between the cells of a text file; found if None.
    decimal : {".", ","}, default=None
        Decimal point; found if None: a comma where all texts of a column fit numbers with one.
    thousands : {".", ",", "'", " "}, default=None
        Mark between thousands; found if None, where it is not mistaken for a decimal point.
    na : str or sequence of str, default=()
        Cells that mean that there is no value, in all columns, or as "column=word" in one. Empty
        cells, NA, N/A, NaN, null and #N/A always do; among numbers and dates so do ., -, ?, n.d.,
        nd, n.a., k.A., missing, unknown and the like.
    censored : {"half", "gap"}, default=None
        What "<0.5" is in a column of numbers: half the limit (and ">100" the limit), as with
        None, or a gap.
    dayfirst : bool, default=None
        Whether 03/04/2021 is in April; if None, other dates of the column decide, or else it is.
    sheet : str or int, default=None
        Sheet of a workbook, by name or by number from 1; the first if None.
    transpose : bool, default=None
        Whether rows of the file are features, named by its first column, and columns samples.
    max_growth : float, default=None
        How many times its size a file may take in memory; 200 if None. What takes less than
        1 GiB is read however well it was compressed.

    Returns
    -------
    table : named tuple
        ``X``, dense or sparse, with NaN in the gaps; ``y``, texts with None or numbers with NaN
        where a row has no label, a column for each of several targets, and its ``kind``,
        "classes", "numeric" or "multilabel"; the names ``ids`` of the rows, from 1 on where no
        column has them; ``chunks``, numbers with -1 for none; ``links``; the ``recipe``, whose
        ``names`` are those of the features; and ``gaps``, the number of empty cells in each
        column that has any. What was not asked for is None.

    Raises
    ------
    gnomon.exceptions.TableError
        Where the file, or a column of it, cannot be read as what it should be.

    See Also
    --------
    load : The model of a file.

    Examples
    --------
    >>> import pathlib, tempfile, gnomon
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "flowers.csv")
    ...     text = "width,length,kind\n1,2,a\n2,?,b\n4,3,\n3,5,a\n"
    ...     size = path.write_text(text)
    ...     table = gnomon.read_table(path, target="kind", na="?")
    >>> table.X.shape, table.recipe.names
    ((4, 2), ['width', 'length'])
    >>> table.kind, table.y.tolist()
    ('classes', ['a', 'b', None, 'a'])
    """
    from gnomon.tools import prepare
    from gnomon.tools.tables import open_table

    notes: list[str] = []
    how = {"encoding": encoding, "separator": separator, "decimal": decimal}
    how |= {"thousands": thousands, "na": (na,) if isinstance(na, str) else tuple(na) or None}
    how |= {"censored": censored, "dayfirst": dayfirst, "sheet": sheet, "transpose": transpose}
    how |= {"max_growth": max_growth}
    how = {name: value for name, value in how.items() if value is not None}
    if model is None:
        asked = {"target": target, "task": task, "unlabelled": unlabelled, "id": id}
        asked |= {"ignore": tuple(ignore), "links": links, "chunks": chunks, "scale": scale}
        question = prepare.read_question(asked)
        table = open_table(path, note=notes.append, **how)
        question = prepare.named_rows(table, question, notes.append)
        ready = prepare.prepare(table, question, notes.append)
    else:
        saved = prepare.load_fit(model)
        table = prepare.open_for(saved, path, notes.append, **how)
        ready, _ = prepare.prepare_again(saved, table, notes.append)
    for note in dict.fromkeys(notes):
        warnings.warn(note, stacklevel=2)
    return ready._replace(X=prepare.without_gaps(ready.X, ready.recipe)) if fill_gaps else ready
