"""Model files: whole, refused, or the same answer; never code and never another answer."""

import io
import json
import os
import pickle
import resource
import runpy
import subprocess
import sys
import zipfile
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, TransformerMixin

import gnomon
from gnomon.exceptions import ModelFileError
from gnomon.inference.callbacks import Checkpoint
from gnomon.inference.checkpoint import atomic_file, write_atomically
from gnomon.tools import encoding, modelfile

safetensors_numpy = pytest.importorskip("safetensors.numpy")


class Stub(TransformerMixin, BaseEstimator):
    def __init__(self, size=2):
        self.size = size

    def fit(self, X, y=None):
        self.components_ = np.asfortranarray(X[: self.size])
        self.classes_ = np.array(["a", "b"], dtype=object)
        self.objective_ = [float(v) for v in X.ravel()[:30]]
        return self

    def transform(self, X):
        return X @ self.components_.T


@pytest.fixture(autouse=True)
def public(monkeypatch):
    monkeypatch.setitem(gnomon._HOMES, "Stub", __name__)
    monkeypatch.setattr(gnomon, "Stub", Stub, raising=False)


@pytest.fixture
def sample(rng):
    return rng.normal(size=(20, 5))


@pytest.fixture
def file(tmp_path, sample):
    return modelfile.save(Stub().fit(sample), tmp_path / "model.gnomon", notes={"id": "row"})


def test_a_model_comes_back_bit_for_bit(file, sample):
    model = modelfile.load(file)
    assert_array_equal(model.transform(sample), Stub().fit(sample).transform(sample))
    assert model.objective_ == Stub().fit(sample).objective_
    assert modelfile.read(file).notes == {"id": "row"}


def test_the_same_model_gives_the_same_bytes(file, tmp_path, sample):
    again = modelfile.save(Stub().fit(sample), tmp_path / "again", notes={"id": "row"})
    assert again.read_bytes() == file.read_bytes()


def test_arrays_that_come_back_are_writable(file):
    modelfile.load(file).components_[0, 0] = 1


def test_the_file_says_what_wrote_it(file):
    document = modelfile.read(file).document
    assert document["versions"]["gnomon"] == gnomon.__version__
    assert document["model"]["estimator"] == "Stub"


def test_any_safetensors_reader_reads_the_arrays(file):
    assert set(safetensors_numpy.load_file(file)) == {"a0", "a1"}


def refuse(path):
    with pytest.raises(ModelFileError) as error:
        modelfile.load(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_file_cut_anywhere_is_refused(file):
    content = file.read_bytes()
    cuts = {*range(12), *np.linspace(12, len(content) - 1, 60).astype(int)}
    for cut in cuts:
        file.write_bytes(content[:cut])
        refuse(file)


def test_a_file_with_more_behind_it_is_refused(file):
    file.write_bytes(file.read_bytes() + b"\0")
    refuse(file)


def test_a_flipped_byte_is_refused_or_changes_nothing(file, sample, rng):
    expected = modelfile.load(file)
    content = file.read_bytes()
    for position in rng.integers(len(content), size=1000):
        damaged = bytearray(content)
        damaged[position] ^= int(rng.integers(1, 256))
        file.write_bytes(damaged)
        try:
            model = modelfile.load(file)
        except ModelFileError:
            continue
        assert vars(model).keys() == vars(expected).keys()
        assert_array_equal(model.transform(sample), expected.transform(sample))


class Trap:
    """Leaves a mark when unpickled."""

    def __init__(self, mark):
        self.mark = mark

    def __reduce__(self):
        return (Path.touch, (self.mark,))


def with_pickle(trap, path):
    path.write_bytes(pickle.dumps(trap))


def with_joblib(trap, path):
    joblib.dump(trap, path)


def with_object_array(trap, path):
    with path.open("wb") as file:
        np.savez(file, a=np.array([trap], dtype=object))


def with_zip(trap, path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../model.pkl", pickle.dumps(trap))


@pytest.mark.parametrize("write", [with_pickle, with_joblib, with_object_array, with_zip])
@pytest.mark.parametrize("suffix", ["gnomon", "pkl", "joblib", "npz", "zip"])
def test_files_that_carry_code_are_refused_and_not_run(write, suffix, tmp_path):
    mark, path = tmp_path / "mark", tmp_path / f"model.{suffix}"
    write(Trap(mark), path)
    assert "never opens" in refuse(path)
    assert not mark.exists()


def container(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def tensor(shape, offsets, dtype="F64"):
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


META = {"gnomon": '0\n{"format":1,"model":null,"notes":null}'}
HOSTILE = {
    "empty": b"",
    "text": b"a,b\n1,2\n",
    "no header": bytes(8),
    "header of 2**63 bytes": (2**63).to_bytes(8, "little") + b"{}",
    "header longer than the file": (1000).to_bytes(8, "little") + b"{}",
    "not JSON": container(b"{not json"),
    "not UTF-8": container(b'{"\xff\xfe": 1}'),
    "a list": container(b'[{"a": 1}]'),
    "deep": container(b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
    "no metadata": container({"a": tensor([1], [0, 8])}, bytes(8)),
    "foreign metadata": container({"__metadata__": {"format": "pt"}}),
    "metadata of a wrong kind": container({"__metadata__": [1]}),
    "name twice": container(b'{"__metadata__":{"gnomon":"0","gnomon":"1"}}'),
    "a number too long": container(b'{"a":' + b"9" * 5000 + b"}"),
    "not a number": container(b'{"a":NaN}'),
    "huge array": container({"__metadata__": META, "a": tensor([10**12], [0, 8 * 10**12])}),
    "size beside its shape": container(
        {"__metadata__": META, "a": tensor([10**9], [0, 8])}, bytes(8)
    ),
    "size overflows": container({"__metadata__": META, "a": tensor([2**62, 16], [0, 0])}),
    "negative size": container({"__metadata__": META, "a": tensor([-1], [0, 8])}, bytes(8)),
    "overlap": container(
        {"__metadata__": META, "a": tensor([1], [0, 8]), "b": tensor([1], [0, 8])}, bytes(8)
    ),
    "hole": container({"__metadata__": META, "a": tensor([1], [8, 16])}, bytes(16)),
    "unknown dtype": container({"__metadata__": META, "a": tensor([1], [0, 8], "O")}, bytes(8)),
    "foreign dtype": container({"__metadata__": META, "a": tensor([4], [0, 8], "BF16")}, bytes(8)),
    "wrong checksum": container({"__metadata__": META}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_are_refused(name, tmp_path):
    path = tmp_path / "model.gnomon"
    path.write_bytes(HOSTILE[name])
    refuse(path)


def forge(path, document):
    """A file with a right checksum: what somebody could write who means harm."""
    text = document if isinstance(document, str) else json.dumps(document)
    path.write_bytes(modelfile._pack(text, {}))


def foreign(name, attributes=(), **params):
    return {"estimator": name, "params": params, "attributes": dict(attributes)}


FOREIGN = [
    foreign("KMeans", n_clusters=3),
    foreign("FunctionTransformer", func="os.system"),
    foreign("StandardScaler", command="id"),
    foreign("StandardScaler", {"__class__": "os.system"}),
    foreign("StandardScaler", {"n_features_in_": 3, "mean_": {"objects": [1], "shape": [10**12]}}),
    foreign("Pipeline", steps=[{"tuple": ["a", foreign("Popen", args="id")]}]),
    foreign("Pipeline", steps=[{"tuple": ["a", "passthrough"]}], memory="/tmp/cache"),
    foreign("Pipeline", steps={"dict": []}),
    foreign("StandardScaler"),
]


def notes_with(recipe, question=None):
    """The notes of a table that a file could have."""
    asked = {"dict": [["task", "auto"], *(question or {}).items()]}
    return {"dict": [["recipe", recipe], ["question", asked]]}


def rule(feature=(), **fields):
    """A rule for a table of one column, with some parts replaced."""
    numbers = {"objects": [1.0], "shape": [1]}
    right = {"column": "a", "kind": "number", "levels": [], "center": numbers, "scale": numbers}
    features = [{"dict": [[key, value] for key, value in (right | dict(feature)).items()]}]
    parts = {"features": features, "matrix_names": [], "matrix_center": None, "matrix_scale": None}
    parts |= {"left_out": {"dict": []}, "scaled": True} | fields
    return {"dict": [[key, value] for key, value in parts.items()]}


QUESTIONS = [("target", 5), ("target", {}), ("target", [5]), ("id", 1), ("ignore", [1])]
QUESTIONS += [("ignore", {}), ("task", 2), ("command", "id")]
RULES = [
    notes_with(1),
    notes_with({"dict": []}),
    notes_with(rule()),  # numbers that are objects
    notes_with(rule({"column": 1})),
    notes_with(rule({"kind": "os.system"})),
    notes_with(rule({"levels": "abc"})),
    notes_with(rule({"levels": [1]})),
    notes_with(rule({"center": "text"})),
    notes_with(rule({"low": "text"})),
    notes_with(rule({"whole": 1})),
    notes_with(rule({"unknown": 1})),
    notes_with(rule(matrix_names=[1], features=[])),
    notes_with(rule(matrix_names="abc", features=[])),
    notes_with(rule(matrix_center=[1.0], features=[])),
    notes_with(rule(left_out=[], features=[])),
    notes_with(rule(features=[]), {"target": {"dict": []}}),
    notes_with(rule(features=[]), {"command": "id"}),
    notes_with(rule(features=[]), {"ignore": [{"dict": []}]}),
]


@pytest.mark.parametrize(
    "document",
    [
        "null",
        "{}",
        {"format": 0, "model": None, "notes": {}},
        {"format": "1", "model": None, "notes": {}},
        {"format": 1},
        {"format": 1, "model": {"estimator": "subprocess.Popen", "params": {"args": "id"}}},
        {"format": 1, "model": {"estimator": "Stub", "params": {"nobody": 1}, "attributes": {}}},
        {"format": 1, "model": {"estimator": "Stub", "params": {}, "attributes": {"fit": 1}}},
        {"format": 1, "model": {"reduce": ["os", "system"]}},
        *(
            {"format": 3, "model": model, "notes": {"dict": []}, "versions": {}}
            for model in FOREIGN
        ),
        *({"format": 3, "model": None, "notes": notes, "versions": {}} for notes in RULES),
    ],
    ids=repr,
)
def test_forged_documents_are_refused(document, tmp_path):
    path = tmp_path / "model.gnomon"
    forge(path, document)
    refuse(path)


def test_a_newer_format_is_refused_by_its_number(tmp_path):
    path = tmp_path / "model.gnomon"
    forge(path, {"format": 99, "model": None})
    assert "has format 99" in refuse(path)


def test_older_formats_are_migrated_one_by_one(file, monkeypatch):
    def rename(document):
        params = {"size": 7}
        return document | {"model": document["model"] | {"params": params}}

    last = modelfile.FORMAT
    monkeypatch.setattr(modelfile, "FORMAT", last + 2)
    steps = {last: rename, last + 1: lambda document: document}
    monkeypatch.setattr(modelfile, "MIGRATIONS", steps)
    assert modelfile.load(file).size == 7


def with_parameters(path, name, params):
    """A file of a model with these parameters, whatever its class takes."""
    model = {"estimator": name, "params": params, "attributes": {}}
    forge(path, {"format": 1, "model": model, "notes": {"dict": []}, "versions": {}})
    return path


@pytest.fixture
def removed(monkeypatch):
    """A class that had two parameters once, and has one that is on the list by mistake."""
    table = {"Stub": {"kernel": (None, "linear"), "gamma": modelfile.ANY, "size": (5,)}}
    monkeypatch.setattr(modelfile, "REMOVED", table)


@pytest.mark.parametrize("kernel", [None, "linear"])
def test_parameters_that_are_gone_may_have_been_neutral(removed, tmp_path, kernel):
    params = {"kernel": kernel, "gamma": 0.7, "size": 3}
    model = modelfile.load(with_parameters(tmp_path / "m.gnomon", "Stub", params))
    assert model.get_params() == {"size": 3}


def test_parameters_that_are_gone_and_meant_something_are_refused_by_name(removed, tmp_path):
    params = {"kernel": "rbf", "gamma": 0.7, "size": 3}
    said = refuse(with_parameters(tmp_path / "m.gnomon", "Stub", params))
    assert "is a Stub with kernel='rbf', a parameter that gnomon no longer has" in said


def test_parameters_that_never_were_are_refused(removed, tmp_path):
    assert "nobody" in refuse(with_parameters(tmp_path / "m.gnomon", "Stub", {"nobody": None}))


REMOVED = [(name, key) for name, gone in modelfile.REMOVED.items() for key in gone]


@pytest.mark.parametrize(("name", "key"), REMOVED, ids=lambda value: value)
def test_what_was_removed_loads_if_neutral_or_is_still_there(name, key, tmp_path):
    """A value that is not neutral is kept while the class takes it, and refused after."""
    neutral, taken = modelfile.REMOVED[name][key], getattr(gnomon, name)().get_params()
    value = "anything" if neutral is modelfile.ANY else neutral[0]
    model = modelfile.load(with_parameters(tmp_path / "m.gnomon", name, {key: value}))
    assert (key in model.get_params()) == (key in taken)
    if neutral is not modelfile.ANY and key not in taken:
        assert key in refuse(with_parameters(tmp_path / "n.gnomon", name, {key: "other"}))


def test_folders_and_pipes_are_refused(tmp_path):
    refuse(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    refuse(tmp_path / "pipe")


def test_a_missing_file_is_the_systems_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        modelfile.load(tmp_path / "nowhere")


def test_a_lying_header_allocates_nothing(tmp_path):
    path = tmp_path / "model.gnomon"
    path.write_bytes(HOSTILE["huge array"])
    code = (
        "import resource, sys, gnomon\n"
        "from gnomon.tools import modelfile\n"
        "import safetensors.numpy\n"
        "resource.setrlimit(resource.RLIMIT_AS, (2**31, 2**31))\n"
        "try:\n    modelfile.load(sys.argv[1])\n"
        "except gnomon.exceptions.ModelFileError:\n    print('refused')\n"
    )
    command = [sys.executable, "-c", code, str(path)]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "refused\n"


def limit_file_size():
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_a_write_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "model.gnomon"
    path.write_bytes(b"old")
    code = (
        "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "from gnomon.inference.checkpoint import write_atomically\n"
        "write_atomically(sys.argv[1], bytes(1000))\n"
    )
    command = [sys.executable, "-B", "-c", code, str(path)]
    run = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit_file_size)
    assert "File too large" in run.stderr
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "model.gnomon"
    path.write_bytes(b"old")

    with pytest.raises(KeyboardInterrupt), atomic_file(path) as file:
        file.write(b"new")
        raise KeyboardInterrupt
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_new_file_has_the_usual_rights(tmp_path):
    old = os.umask(0o022)
    try:
        assert write_atomically(tmp_path / "file", b"").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(old)


def test_a_file_that_is_replaced_keeps_its_rights(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o640)
    with atomic_file(path) as file:
        file.write(b"new")
        (other,) = (p for p in tmp_path.iterdir() if p != path)
        assert other.stat().st_mode & 0o077 == 0
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link_and_its_file_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "file")
    assert write_atomically(tmp_path / "link", b"new") == tmp_path / "link"
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "file").read_bytes() == b"new"
    assert len(list(tmp_path.rglob("*"))) == 3


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(tmp_path / "pipe", b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert (tmp_path / "pipe").is_fifo()


def test_what_a_kill_leaves_is_removed_by_the_next_write(tmp_path):
    code = (
        "import os, signal, sys\n"
        "from gnomon.inference.checkpoint import atomic_file\n"
        "with atomic_file(sys.argv[1]) as file:\n"
        "    file.write(bytes(10**6))\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path = tmp_path / "a[b].gnomon"
    path.write_bytes(b"old")
    subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True)
    assert path.read_bytes() == b"old"
    (left,) = (p for p in tmp_path.iterdir() if p != path)
    write_atomically(path, b"newer")
    assert left.exists(), "another process may have made it just now"
    (tmp_path / ".other.0123456789abcdef").write_bytes(b"")
    for file in tmp_path.iterdir():
        os.utime(file, (0, 0))
    write_atomically(path, b"new")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".other.0123456789abcdef", path.name]


def test_what_somebody_writes_at_the_same_time_is_left(tmp_path):
    path = tmp_path / "file"
    with atomic_file(path) as first:
        first.write(b"first")
        write_atomically(path, b"second")
        assert path.read_bytes() == b"second"
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_strings_that_would_fill_the_memory_are_refused(tmp_path):
    strings = {"strings": ["a" * 10**6, *[""] * 20_000], "shape": [20_001]}
    model = {"estimator": "Stub", "params": {}, "attributes": {"names_": strings}}
    parts = {"format": 3, "model": model, "notes": {"dict": []}, "versions": {}}
    forge(tmp_path / "model.gnomon", parts)
    with pytest.raises(ModelFileError, match="strings that take more than"):
        modelfile.load(tmp_path / "model.gnomon")


def test_many_arrays_of_strings_share_their_room(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "MOST_STRING_BYTES", 1000)
    strings = {"strings": ["a" * 100, ""], "shape": [2]}
    for count, accepted in ((1, True), (2, False)):
        attributes = {f"names{i}_": strings for i in range(count)}
        model = {"estimator": "Stub", "params": {}, "attributes": attributes}
        parts = {"format": 3, "model": model, "notes": {"dict": []}, "versions": {}}
        forge(tmp_path / "model.gnomon", parts)
        if accepted:
            modelfile.load(tmp_path / "model.gnomon")
        else:
            refuse(tmp_path / "model.gnomon")
    model = Stub().fit(np.eye(3))
    model.names_ = np.array(["a" * 300])
    with pytest.raises(ModelFileError, match="which no file holds"):
        modelfile.save(model, tmp_path / "model.gnomon")


def test_what_watches_a_fit_is_not_kept(tmp_path, sample):
    sample[0, 0] = np.nan
    watch = Checkpoint(tmp_path / "fit.npz", every=1)
    model = gnomon.PPCA(2, callback=watch).fit(sample)
    same = modelfile.load(modelfile.save(model, tmp_path / "model.gnomon"))
    assert same.callback is None
    assert model.callback is watch
    assert_array_equal(same.transform(sample), model.transform(sample))


def test_a_model_that_cannot_be_saved_leaves_no_file(tmp_path):
    with pytest.raises(ModelFileError, match=r"Stub\.size is a"):
        modelfile.save(Stub(size=io.BytesIO()), tmp_path / "model.gnomon")
    assert list(tmp_path.iterdir()) == []


def test_a_right_rule_with_right_numbers_is_taken(tmp_path):
    """So that each forged rule above is refused for what is wrong in it."""
    pytest.importorskip("pyarrow")
    number = np.ones(1)
    feature = {"column": "a", "kind": "number", "levels": [], "center": number, "scale": number}
    parts = {"features": [feature], "matrix_names": [], "matrix_center": None}
    parts |= {"matrix_scale": None, "left_out": {}, "scaled": True}
    notes = {"recipe": parts, "question": {"task": "auto"}}
    path = modelfile.save(Stub(), tmp_path / "m.gnomon", notes=notes)
    assert repr(modelfile.load(path)) == "TableModel(Stub, of the columns 'a')"
    for reading in ({"separator": 5}, {"command": "id"}, {"na": [1]}, 1):
        path = modelfile.save(Stub(), path, notes=notes | {"reading": reading})
        assert "a rule for tables" in refuse(path)
    for name, value in QUESTIONS:
        asked = notes | {"question": {"task": "auto", name: value}}
        assert "a rule for tables" in refuse(modelfile.save(Stub(), path, notes=asked))
    for name, value in {"low": "text", "whole": 1, "levels": [1], "column": 1, "scale": 1}.items():
        parts["features"] = [feature | {name: value}]
        assert "a rule for tables" in refuse(modelfile.save(Stub(), path, notes=notes))


def test_notes_of_the_user_may_have_any_name(tmp_path, sample):
    path = modelfile.save(Stub().fit(sample), tmp_path / "m.gnomon", notes={"recipe": "boil"})
    assert type(modelfile.load(path)) is Stub


GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.gnomon")), ids=lambda path: path.stem)
def test_files_of_earlier_releases_stay_loadable(path):
    model = modelfile.load(path)
    X = runpy.run_path(str(GOLDEN / "make.py"))["sample"](path.stem.split("-")[0])
    for method, answer in json.loads(path.with_suffix(".json").read_text()).items():
        found = getattr(model, method)(X)
        if method == "predict":
            assert found.tolist() == answer
        else:
            assert_allclose(found, answer, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("number", range(1, modelfile.FORMAT))
def test_there_are_files_of_every_earlier_format(number):
    assert any(f"format{number}" in path.name for path in GOLDEN.glob("*.gnomon"))
