"""Workbooks and files that hold a matrix."""

import gzip
import pickle
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import io, sparse
from sklearn.datasets import dump_svmlight_file

pa = pytest.importorskip("pyarrow")
from pyarrow import feather, parquet

from gnomon.exceptions import TableError
from gnomon.tools import growth, tables
from gnomon.tools.tables import Reading, as_numbers, as_texts, column_kind, open_table

ROWS = [
    ["name", "size", "crp", "kind", "when", None],
    ["a", 1.5, "<0.5", "x", "25/03/2021", 1],
    ["b", None, 2, "none", "26/03/2021", 2],
    ["c", 3, "n.d.", "x", "01/04/2021", 3],
    ["d", 3, 7.25, "x", "01/04/2021", 4],
]
OTHER = [["a", "b"], [1, 2], [3, 4]]


def write_xlsx(path, sheets):
    """A workbook as a spreadsheet program writes it, as far as a reader needs it."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    rel = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    names = list(sheets)
    entries = "".join(
        f'<sheet name="{n}" sheetId="{i}" r:id="rId{i}"/>' for i, n in enumerate(names, 1)
    )
    links = "".join(
        f'<Relationship Id="rId{i}" Type="{rel}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(names) + 1)
    )
    kinds = f'<Types xmlns="{package}/content-types"><Default Extension="xml" '
    kinds += 'ContentType="application/xml"/></Types>'
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("[Content_Types].xml", kinds)
        book.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="rId1" '
            f'Type="{rel}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        book.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{rel}"><sheets>{entries}</sheets></workbook>',
        )
        book.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships">{links}</Relationships>',
        )
        for i, name in enumerate(names, 1):
            rows = "".join(
                f'<row r="{r}">{"".join(map(_xlsx_cell, row, [f"{c}{r}" for c in "ABCDEF"]))}</row>'
                for r, row in enumerate(sheets[name], 1)
            )
            text = f'<worksheet xmlns="{main}"><sheetData>{rows}</sheetData></worksheet>'
            book.writestr(f"xl/worksheets/sheet{i}.xml", text)
    return path


def _xlsx_cell(value, place):
    if value is None:
        return ""
    if isinstance(value, str):
        value = value.replace("<", "&lt;")
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def write_ods(path, sheets):
    names = "urn:oasis:names:tc:opendocument:xmlns"
    tables = ""
    for name, rows in sheets.items():
        cells = "".join(
            f"<table:table-row>{''.join(map(_ods_cell, row))}</table:table-row>" for row in rows
        )
        tables += f'<table:table table:name="{name}">{cells}</table:table>'
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        book.writestr("META-INF/manifest.xml", f'<manifest xmlns="{names}:manifest:1.0"/>')
        book.writestr(
            "content.xml",
            f'<office:document-content xmlns:office="{names}:office:1.0" '
            f'xmlns:table="{names}:table:1.0" xmlns:text="{names}:text:1.0"><office:body>'
            f"<office:spreadsheet>{tables}</office:spreadsheet></office:body>"
            "</office:document-content>",
        )
    return path


def _ods_cell(value):
    if value is None:
        return "<table:table-cell/>"
    kind, text = ("string", value) if isinstance(value, str) else ("float", str(value))
    text = text.replace("<", "&lt;")
    more = f' office:value="{text}"' if kind == "float" else ""
    start = f'<table:table-cell office:value-type="{kind}"{more}>'
    return f"{start}<text:p>{text}</text:p></table:table-cell>"


@pytest.fixture(params=["xlsx", "ods"])
def workbook(request, tmp_path):
    pytest.importorskip("python_calamine")
    write = {"xlsx": write_xlsx, "ods": write_ods}[request.param]
    return write(tmp_path / f"t.{request.param}", {"first": ROWS, "other": OTHER})


def test_a_sheet_is_read_as_text_is(workbook):
    notes = []
    table = open_table(workbook, note=notes.append)
    assert table.names == ["name", "size", "crp", "kind", "when", "column 6"]
    assert_array_equal(as_numbers(table.column("size")), [1.5, np.nan, 3, 3])
    assert_array_equal(as_numbers(table.column("crp")), [0.25, 2, np.nan, 7.25])
    assert as_texts(table.column("kind")).tolist() == ["x", "none", "x", "x"]
    assert column_kind(table.column("when")) == "date"
    assert pa.types.is_integer(table.column("column 6").type)
    assert "of the sheets 'first', 'other' the first was read; say --sheet" in notes[0]


@pytest.mark.parametrize("sheet", ["other", "2", 2])
def test_a_sheet_is_taken_by_name_or_number(workbook, sheet):
    notes = []
    table = open_table(workbook, sheet=sheet, note=notes.append)
    assert_array_equal(as_numbers(table.column("b")), [2, 4])
    assert notes == []


def test_a_sheet_that_is_not_there_is_named(workbook):
    with pytest.raises(TableError, match="no sheet 'third'; it has 'first', 'other'"):
        open_table(workbook, sheet="third")


def test_a_workbook_that_is_none_is_one_sentence(tmp_path):
    pytest.importorskip("python_calamine")
    for name in ("t.xlsx", "t.ods", "t.xls"):
        (tmp_path / name).write_bytes(b"no workbook")
        with pytest.raises(TableError, match="cannot be read"):
            open_table(tmp_path / name)


def test_workbooks_need_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    write_xlsx(tmp_path / "t.xlsx", {"a": OTHER})
    with pytest.raises(TableError, match=r"needs python-calamine.*\[excel\]"):
        open_table(tmp_path / "t.xlsx")


def test_matrices_are_read(tmp_path, rng):
    X = rng.poisson(1, size=(6, 4)).astype(float)
    y = np.array([0, 1, 0, 1, 0, 1])
    np.savez(tmp_path / "a.npz", X=X, y=y)
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_array(X))
    io.mmwrite(tmp_path / "c.mtx", sparse.csr_array(X))
    dump_svmlight_file(X, y, str(tmp_path / "d.svmlight"))
    for name in ("a.npz", "b.npz", "c.mtx", "d.svmlight"):
        table = open_table(tmp_path / name)
        (batch,) = table.batches()
        found = batch.matrix.toarray() if sparse.issparse(batch.matrix) else batch.matrix
        assert_array_equal(found, X)
        assert len(table.features) == 4
    assert as_texts(open_table(tmp_path / "a.npz").column("target")).tolist() == list("010101")
    assert as_texts(open_table(tmp_path / "d.svmlight").column("target")).tolist() == list("010101")


def test_single_cell_files_are_read(tmp_path, rng):
    anndata = pytest.importorskip("anndata")
    X = sparse.csr_matrix(rng.poisson(1, size=(6, 4)).astype(np.float32))
    data = anndata.AnnData(X)
    data.obs["kind"] = list("aabbab")
    data.var_names = ["g1", "g2", "g3", "g4"]
    data.write_h5ad(tmp_path / "t.h5ad")
    table = open_table(tmp_path / "t.h5ad")
    (batch,) = table.batches()
    assert_array_equal(batch.matrix.toarray(), X.toarray())
    assert table.features == ["g1", "g2", "g3", "g4"]
    assert as_texts(table.column("kind")).tolist() == list("aabbab")


def test_an_archive_with_objects_is_not_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (open, (str(tmp_path / "mark"), "w"))

    np.savez(tmp_path / "t.npz", X=np.array([Trap()], dtype=object))
    with pytest.raises(TableError):
        open_table(tmp_path / "t.npz")
    with zipfile.ZipFile(tmp_path / "u.npz", "w") as archive:
        archive.writestr("X.npy", pickle.dumps(Trap()))
    np.savez(tmp_path / "v.npz", X=np.eye(2))
    with zipfile.ZipFile(tmp_path / "v.npz", "a") as archive:
        archive.writestr("y.npy", pickle.dumps(Trap()))
    for name in ("u.npz", "v.npz"):
        with pytest.raises(TableError):
            open_table(tmp_path / name)
    assert not (tmp_path / "mark").exists()


def sparse_file(path, indices, indptr, shape=(2, 3), form="csr"):
    data = np.ones((len(indices), 1, 1) if form == "bsr" else len(indices))
    parts = {"data": data, "indices": np.array(indices), "indptr": np.array(indptr)}
    np.savez(path, format=form.encode(), shape=shape, **parts)
    return path


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
@pytest.mark.parametrize(
    ("indices", "indptr"),
    [
        ([0, 3], [0, 1, 2]),
        ([0, 10**9], [0, 1, 2]),
        ([0, -1], [0, 1, 2]),
        ([0, 1], [0, 3, 2]),
        ([0, 1], [0, -1, 2]),
        ([0, 1], [0, 1, 9]),
        ([0, 1], [1, 1, 2]),
    ],
)
def test_indices_beyond_a_matrix_are_refused(tmp_path, indices, indptr, form):
    shape = (3, 2) if form == "csc" else (2, 3)
    path = sparse_file(tmp_path / "t.npz", indices, indptr, shape, form)
    with pytest.raises(TableError, match="cannot be read"):
        open_table(path)


@pytest.mark.parametrize("form", ["csr", "csc", "bsr"])
def test_right_indices_of_every_form_are_read(tmp_path, form):
    shape = (3, 2) if form == "csc" else (2, 3)
    (batch,) = open_table(sparse_file(tmp_path / "t.npz", [0, 2], [0, 1, 2], shape, form)).batches()
    assert batch.matrix.shape == shape
    assert batch.matrix.sum() == 2


def test_indices_beyond_a_matrix_of_cells_are_refused(tmp_path):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    data = anndata.AnnData(sparse.csr_matrix(np.eye(4, dtype=np.float32)))
    data.write_h5ad(tmp_path / "t.h5ad")
    with h5py.File(tmp_path / "t.h5ad", "a") as file:
        file["X/indices"][3] = 10**9
    with pytest.raises(TableError, match="cannot be read"):
        open_table(tmp_path / "t.h5ad")


def test_cells_that_were_never_written_are_no_table(tmp_path):
    anndata, h5py = pytest.importorskip("anndata"), pytest.importorskip("h5py")
    anndata.AnnData(np.eye(4, dtype=np.float32)).write_h5ad(tmp_path / "t.h5ad")
    with h5py.File(tmp_path / "t.h5ad", "a") as file:
        del file["X"]
        file.create_dataset("X", (10**6, 10**6), "f4", chunks=(1000, 1000))
    with pytest.raises(TableError, match="would grow to 4,000,000,0"):
        open_table(tmp_path / "t.h5ad")


MTX = "%%MatrixMarket matrix {} real general\n{}\n1 1 1\n"


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("t.svm", "1 999999999:1\n", "999,999,999 columns"),
        ("t.mtx", MTX.format("coordinate", "900000000 10 1"), "900,000,000 rows"),
        ("t.mtx", MTX.format("coordinate", "10 900000000 1"), "900,000,000 columns"),
        ("t.mtx", MTX.format("coordinate", "10 10 900000000"), "900,000,000 entries"),
        ("t.mtx", MTX.format("array", "90000 90000"), "4,050,000,000 entries"),
    ],
)
def test_a_small_file_asks_for_no_large_matrix(tmp_path, name, content, sentence):
    (tmp_path / name).write_text(content)
    with pytest.raises(TableError, match=f"says that it has {sentence}, and has [0-9]+ bytes"):
        open_table(tmp_path / name)


def test_a_small_archive_asks_for_no_large_matrix(tmp_path):
    path = sparse_file(tmp_path / "t.npz", [0, 1], [0, 1, 2], (2, 10**10))
    with pytest.raises(TableError, match="10,000,000,000 columns"):
        open_table(path)


def packed(folder, name):
    """A file of a few kilobytes that unpacks to some megabytes."""
    zeros = np.zeros((1000, 400))
    if name.endswith("npz"):
        np.savez_compressed(folder / name, X=zeros)
    elif name.endswith("parquet"):
        table = pa.table({f"x{j}": column for j, column in enumerate(np.zeros((4, 10**5)))})
        parquet.write_table(table, folder / name)
    elif name.endswith("feather"):
        table = pa.table({f"x{j}": column for j, column in enumerate(np.zeros((4, 10**5)))})
        feather.write_feather(table, folder / name, compression="zstd")
    elif name.endswith("pq"):
        repeated = pa.array(["x" * 10**4] * 400)
        parquet.write_table(pa.table({"a": np.arange(400.0), "b": repeated}), folder / name)
    elif name.endswith("xlsx"):
        with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("xl/worksheets/sheet1.xml", bytes(4 * 10**6))
    else:
        (folder / name).write_bytes(gzip.compress(b"1 1:1\n" * 500_000))
    return folder / name


@pytest.mark.parametrize(
    "name",
    ["t.npz", "t.parquet", "t.pq", "t.feather", "t.xlsx", "t.svm.gz", "t.mtx.gz", "t.csv.gz"],
)
def test_a_bomb_is_not_opened(tmp_path, monkeypatch, name):
    if name.endswith("xlsx"):
        pytest.importorskip("python_calamine")
    path = packed(tmp_path, name)
    monkeypatch.setattr(growth, "HARMLESS", 10**6)
    with pytest.raises(TableError, match=r"would grow to [0-9,]+ bytes.*say --max-growth"):
        open_table(path)


@pytest.mark.parametrize(
    "name", ["t.npz", "t.parquet", "t.pq", "t.feather", "t.svm.gz", "t.csv.gz"]
)
def test_what_shrinks_well_is_read_if_it_is_small_or_asked_for(tmp_path, monkeypatch, name):
    path = packed(tmp_path, name)
    small = open_table(path)
    monkeypatch.setattr(growth, "HARMLESS", 10**6)
    asked = open_table(path, max_growth=1e5)
    assert [b.n_rows for b in small.batches()] == [b.n_rows for b in asked.batches()]


def test_trust_in_a_large_file_is_not_kept(tmp_path):
    assert "max_growth" not in Reading(max_growth=1e5, decimal=",").lasting()


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_a_compressed_text_is_read_in_batches_by_its_own_size(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(tables, "STREAM_ABOVE", 10**5)
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}[suffix]
    with pa.CompressedOutputStream(str(tmp_path / f"t.csv{suffix}"), codec) as file:
        file.write(b"a,b\n" + b"1,2\n" * 50_000)
    assert (tmp_path / f"t.csv{suffix}").stat().st_size < 10**5
    table = open_table(tmp_path / f"t.csv{suffix}")
    assert table.streamed
    assert sum(batch.n_rows for batch in table.batches()) == 50_000


def test_an_archive_that_lies_about_its_size_is_one_sentence(tmp_path):
    header = np.lib.format
    with zipfile.ZipFile(tmp_path / "t.npz", "w") as archive, archive.open("X.npy", "w") as file:
        shape = {"descr": "<f8", "fortran_order": False, "shape": (10**11, 100)}
        header.write_array_header_1_0(file, shape)
    with pytest.raises(TableError, match="cannot be read"):
        open_table(tmp_path / "t.npz")


@pytest.mark.parametrize("kind", [">f8", ">f4", ">i2", "<f2", "S4"])
def test_arrays_of_other_machines_halves_and_bytes_are_read(tmp_path, kind):
    target = np.array([1, 2, 1]).astype(kind)
    np.savez(tmp_path / "t.npz", X=np.eye(3).astype(kind if kind != "S4" else ">f4"), y=target)
    table = open_table(tmp_path / "t.npz")
    assert table.labels("target").tolist() == ["1", "2", "1"]
    (batch,) = table.batches()
    assert batch.matrix.dtype.isnative
    assert_array_equal(batch.matrix, np.eye(3))


def test_a_target_of_another_length_is_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((3, 2)), y=np.ones(2))
    with pytest.raises(TableError, match="one value a row is wanted, 3 in all"):
        open_table(tmp_path / "t.npz")
