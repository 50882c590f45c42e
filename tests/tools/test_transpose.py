"""Tables whose rows are the features."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from scipy import io, sparse

pytest.importorskip("pyarrow")
from gnomon.exceptions import TableError
from gnomon.tools import tables
from gnomon.tools.tables import as_numbers, as_texts, column_kind, open_table


@pytest.fixture
def turned(tmp_path):
    def read(text, **options):
        (tmp_path / "t.csv").write_text(text)
        return open_table(tmp_path / "t.csv", transpose=True, **options)

    return read


def test_rows_become_columns_of_their_own_kinds(turned):
    table = turned("gene,s1,s2,s3\ntissue,x,,y\ng1,1.5,NA,2\nday,25/03/2021,.,01/04/2021\n")
    assert table.names == ["sample", "tissue", "g1", "day"]
    assert as_texts(table.column("sample")).tolist() == ["s1", "s2", "s3"]
    assert as_texts(table.column("tissue")).tolist() == ["x", None, "y"]
    assert_array_equal(as_numbers(table.column("g1")), [1.5, np.nan, 2])
    assert column_kind(table.column("day")) == "date"


def test_numbers_alone_are_turned(turned):
    table = turned("gene,s1,s2\ng1,1,2\ng2,3,4.5\nsample,5,6\n")
    assert table.names == ["name of the sample", "g1", "g2", "sample"]
    assert_array_equal(as_numbers(table.column("g2")), [3, 4.5])


def test_decimal_commas_and_limits_survive_the_turn(turned):
    table = turned("gene;s1;s2;s3\nkind;x;y;x\ng1;1,5;<2,5;3,75\n")
    assert_array_equal(as_numbers(table.column("g1")), [1.5, 1.25, 3.75])


def test_rows_of_one_name_are_refused(turned):
    with pytest.raises(TableError, match="'g1' more than once"):
        turned("gene,s1\ng1,1\ng1,2\n")


def test_a_sparse_matrix_is_turned(tmp_path, rng):
    X = rng.poisson(1, size=(6, 4)).astype(float)
    io.mmwrite(tmp_path / "t.mtx", sparse.csr_array(X))
    table = open_table(tmp_path / "t.mtx", transpose=True)
    (batch,) = table.batches()
    assert_array_equal(batch.matrix.toarray(), X.T)
    assert table.features == [f"x{i + 1}" for i in range(6)]


def test_a_matrix_with_columns_is_not_turned(tmp_path):
    np.savez(tmp_path / "t.npz", X=np.ones((3, 2)), y=np.ones(3))
    with pytest.raises(TableError, match="columns beside its matrix"):
        open_table(tmp_path / "t.npz", transpose=True)


def test_a_stream_is_not_turned(turned, monkeypatch):
    monkeypatch.setattr(tables, "STREAM_ABOVE", 5)
    with pytest.raises(TableError, match="too large to transpose"):
        turned("gene,s1\ng1,1\n")
