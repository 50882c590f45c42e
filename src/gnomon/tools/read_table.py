"""Tables for models in Python, prepared as the command line prepares them."""

import warnings


def read_table(
    path,
    *,
    target=None,
    task="auto",
    unlabelled=None,
    id=None,
    ignore=(),
    links=None,
    chunks=None,
    scale="auto",
    fill_gaps=False,
    model=None,
    encoding="utf-8",
    separator=None,
    decimal=".",
):
    r"""Read a table from a file as ``gnomon fit`` reads it: a matrix, a target, names of the rows.

    Numbers are centred and divided by their standard deviations, dates become days, texts with
    few different ones indicators; gaps stay gaps. Columns that are of no use are left out, with
    a warning that names them.

    Parameters
    ----------
    path : str or path-like
        A csv, tsv, parquet, feather, npz, mtx, svmlight or h5ad file.
    target : str or sequence of str, default=None
        Column to explain, or several of numbers or of yes and no; empty cells are unlabelled.
    task : {"auto", "classes", "numeric", "multilabel"}, default="auto"
        What the target is. "auto" takes texts and integers for classes, and floats for numbers
        unless they are whole and at most 20 different ones. Several targets are numbers, or
        multilabel where all their cells are yes and no, true and false, or 1 and 0.
    unlabelled : str, default=None
        Value of the target that means no label, besides empty cells.
    id : str, default=None
        Column with the names of the rows.
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
        A file that ``gnomon fit`` wrote: the table is then prepared as that model's own was, and
        of the options above only ``fill_gaps`` counts.
    encoding, separator, decimal : str, default="utf-8", None, "."
        Of a text file; the separator is found if it is None.

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
    ...     text = "width,length,kind\n1,2,a\n2,,b\n4,3,\n3,5,a\n"
    ...     size = path.write_text(text)
    ...     table = gnomon.read_table(path, target="kind")
    >>> table.X.shape, table.recipe.names
    ((4, 2), ['width', 'length'])
    >>> table.kind, table.y.tolist()
    ('classes', ['a', 'b', None, 'a'])
    """
    from gnomon.tools.prepare import load_fit, prepare, prepare_again, read_question, without_gaps
    from gnomon.tools.tables import open_table

    table = open_table(path, encoding=encoding, separator=separator, decimal=decimal)
    notes: list[str] = []
    if model is None:
        asked = {"target": target, "task": task, "unlabelled": unlabelled, "id": id}
        asked |= {"ignore": tuple(ignore), "links": links, "chunks": chunks, "scale": scale}
        ready = prepare(table, read_question(asked), notes.append)
    else:
        ready, _ = prepare_again(load_fit(model), table, notes.append)
    for note in dict.fromkeys(notes):
        warnings.warn(note, stacklevel=2)
    return ready._replace(X=without_gaps(ready.X, ready.recipe)) if fill_gaps else ready
