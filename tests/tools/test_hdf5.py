"""Files of HDF5 from a stranger: what they may not hold, and what becomes of who reads them."""

import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from gnomon.exceptions import TableError
from gnomon.tools import formats, hdf5
from gnomon.tools.tables import open_table

h5py = pytest.importorskip("h5py")


def size_of(path, most=2**30):
    with h5py.File(path) as file:
        return hdf5.size_of(file, most)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "t.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.ones((6, 4))
        file["X"].attrs["names"] = ["a", "bc"]
        file["obs/age"] = np.arange(6, dtype=np.int32)
        file["uns/none"] = h5py.Empty("f4")
        file["uns/one"] = 3.0
    return path


def test_a_size_is_that_of_all_arrays(path):
    assert size_of(path) == 6 * 4 * 8 + 6 * 4 + 8


def test_cells_that_were_never_written_count(path):
    with h5py.File(path, "a") as file:
        file.create_dataset("layers/a", (2**32, 2**32), "f4", chunks=(1000, 1000))
    assert size_of(path) > 2**66


def test_texts_count_as_long_as_they_are(path):
    before = size_of(path)
    with h5py.File(path, "a") as file:
        file["obs/name"] = ["x" * 1000] * 3
    assert 3000 <= size_of(path) - before < 3100


def test_texts_are_counted_no_further_than_needed(path, monkeypatch):
    monkeypatch.setattr(hdf5, "PIECE", 1)
    with h5py.File(path, "a") as file:
        file["obs/name"] = ["x" * 1000] * 100
    assert 5000 < size_of(path, most=5000) < 7500


def outside(file):
    file["X"] = h5py.ExternalLink("/etc/passwd", "/x")


def soft(file):
    file["uns/x"] = h5py.SoftLink("/X")


def loop(file):
    file["uns/x"] = h5py.SoftLink("/")


def other_bytes(file):
    file.create_dataset("X", (6, 4), "u1", external=[("/etc/passwd", 0, 24)])


def virtual(file):
    layout = h5py.VirtualLayout((6, 4), "f4")
    layout[0] = h5py.VirtualSource("/etc/passwd", "x", (4,))
    file.create_virtual_dataset("X", layout)


@pytest.mark.parametrize("lead", [outside, soft, loop, other_bytes, virtual])
def test_what_leads_elsewhere_is_refused(path, lead):
    with h5py.File(path, "a") as file:
        if lead not in (soft, loop):
            del file["X"]
        lead(file)
    with pytest.raises(ValueError, match="leads elsewhere"):
        size_of(path)


@pytest.mark.parametrize("held", ["X", "uns", "/"])
def test_what_is_there_twice_is_refused(path, held):
    with h5py.File(path, "a") as file:
        file["obs/again"] = file[held]
    with pytest.raises(ValueError, match="two names"):
        size_of(path)


def test_groups_in_each_other_to_any_depth_are_walked(path):
    with h5py.File(path, "a") as file:
        group = file["uns"]
        for _ in range(2 * sys.getrecursionlimit()):
            group = group.create_group("a")
        group["last"] = np.ones(10)
    assert size_of(path) == 6 * 4 * 8 + 6 * 4 + 8 + 80


class Reader(SimpleNamespace):
    """In the place of anndata, which is not installed everywhere."""

    @staticmethod
    def read_h5ad(path):
        raise RuntimeError("unwelcome\nencoding")


@pytest.fixture
def reader(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", Reader)


@pytest.mark.usefixtures("reader")
def test_whatever_its_reader_says_is_told_in_a_line(path):
    with pytest.raises(TableError, match=r"t\.h5ad cannot be read: unwelcome encoding$"):
        open_table(path)


@pytest.mark.usefixtures("reader")
def test_a_file_that_leads_elsewhere_is_no_table(path):
    with h5py.File(path, "a") as file:
        soft(file)
    with pytest.raises(TableError, match=r"cannot be read: 'x' of '/uns' leads elsewhere$"):
        open_table(path)


@pytest.mark.usefixtures("reader")
def test_a_file_that_grows_too_much_is_no_table(path):
    with h5py.File(path, "a") as file:
        file.create_dataset("layers/a", (10**6, 10**6), "f4", chunks=(1000, 1000))
    with pytest.raises(TableError, match=r"would grow to 4,000,000,0"):
        open_table(path)


@pytest.mark.usefixtures("reader")
@pytest.mark.skipif(os.name == "nt", reason="no such signals")
def test_a_file_that_kills_hdf5_is_refused(path, tmp_path, monkeypatch):
    dies = tmp_path / "dies.py"
    dies.write_text(f"import os\nos.kill(os.getpid(), {int(signal.SIGSEGV)})\n")
    monkeypatch.setattr(hdf5, "__file__", str(dies))
    with pytest.raises(TableError, match="HDF5 dies of it"):
        open_table(path)


@pytest.mark.usefixtures("reader")
def test_a_file_that_keeps_hdf5_waiting_is_refused(path, tmp_path, monkeypatch):
    waits = tmp_path / "waits.py"
    waits.write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.setattr(hdf5, "__file__", str(waits))
    monkeypatch.setattr(formats, "PATIENCE", 0.01)
    with pytest.raises(TableError, match="comes to no end"):
        open_table(path)


@pytest.mark.usefixtures("reader")
@pytest.mark.skipif(os.name == "nt", reason="counts no work")
def test_a_file_that_keeps_hdf5_at_work_for_ever_is_refused(path, tmp_path, monkeypatch):
    works = tmp_path / "works.py"
    endless = "hdf5.size_of = lambda *_: [None for _ in iter(int, 1)]"
    works.write_text(
        f"import sys\nfrom gnomon.tools import hdf5\n{endless}\nhdf5.main(*sys.argv[1:])"
    )
    monkeypatch.setattr(hdf5, "__file__", str(works))
    monkeypatch.setattr(formats, "LEAST_WORK", 1)
    with pytest.raises(TableError, match="comes to no end"):
        open_table(path)
