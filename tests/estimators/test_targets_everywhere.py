"""What kind y is, and which rows have a label, is one rule for every part of the library."""

import json

import numpy as np
import pytest

import gnomon
from gnomon.estimators import kind_of, labelled_rows, permuted_labels

# Every value occurs at most twice, so that a split shows what it takes y for.
CASES = {
    "twelve whole floats in 20 rows": (np.arange(20.0) % 12, "classes"),
    "thirty whole floats": (np.arange(60.0) % 30, "numeric"),
    "sixty integers": (np.arange(120) % 60, "classes"),
    "fractions": (np.arange(40) % 20 + 0.5, "numeric"),
}


def inputs(y):
    return np.column_stack([y, np.cos(np.arange(len(y))), np.sin(3.0 * np.arange(len(y)))])


def of_the_estimator(X, y, folder):
    return gnomon.SPPCA(1, supervision=0.5).fit(X, y).target_coding_.kind


def of_the_comparison(X, y, folder):
    result = gnomon.compare(X, y, models=["PCA"], n_components=1, cv=2, control=False)
    return {"accuracy": "classes", "R2": "numeric"}[result.measure]


def of_the_split(X, y, folder):
    """The rows of a class are spread over the folds, those of numbers as it happens."""
    tests = [y[test] for _, test in gnomon.SemiSupervisedSplit(2).split(X, y)]
    apart = all(len(np.unique(values)) == len(values) for values in tests)
    return "classes" if apart else "numeric"


def of_the_scorer(X, y, folder):
    """For classes -1 is no label, for numbers it is a value."""
    count = gnomon.labelled_scorer(lambda model, X, y: len(y))
    y = np.where(np.arange(len(y)) == 3, -1, y)
    return "classes" if count(gnomon.PPCA(), X, y) < len(y) else "numeric"


def of_the_display(X, y, folder):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    display = gnomon.displays.EmbeddingDisplay.from_data(X[:, :2], y)
    legend = display.ax_.get_legend()
    pyplot.close("all")
    return "numeric" if legend is None else "classes"


def of_the_command(X, y, folder):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    testing = pytest.importorskip("typer.testing")
    from gnomon.tools.cli import app

    names = ("a", "b", "c", "y")
    columns = dict(zip(names, [*X.T, y], strict=True))
    path = folder / "t.parquet"  # which keeps whole floats apart from integers, as csv does not
    parquet.write_table(arrow.table(columns), path)
    options = ["--target", "y", "-k", "1", "--out", str(folder / "o"), "--json"]
    result = testing.CliRunner().invoke(app, ["fit", str(path), *options])
    assert result.exit_code == 0, result.output
    name = json.loads(result.stdout)["held out"]["name"]
    return {"accuracy": "classes", "R²": "numeric"}[name]


READERS = (
    of_the_estimator,
    of_the_comparison,
    of_the_split,
    of_the_scorer,
    of_the_display,
    of_the_command,
)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.__name__)
@pytest.mark.filterwarnings("ignore:y has .* different integers")
def test_everything_takes_y_for_the_same_kind(case, reader, tmp_path):
    y, kind = CASES[case]
    assert kind_of(y) == kind
    assert reader(inputs(y), y, tmp_path) == kind


def test_minus_one_is_a_label_where_y_was_said_to_be_numeric():
    y = np.array([-1.0, 0, 1, 2, np.nan])
    assert labelled_rows(y).tolist() == [False, True, True, True, False]
    assert labelled_rows(y, "numeric").tolist() == [True, True, True, True, False]


def test_labels_are_permuted_among_labelled_rows_only(rng):
    y = np.where(np.arange(40) % 2 == 0, np.arange(40) % 3, -1)
    permuted = permuted_labels(y, rng)
    assert ((permuted == -1) == (y == -1)).all()
    assert sorted(permuted) == sorted(y)
    assert np.any(permuted != y)


def test_rows_of_several_outputs_are_permuted_whole(rng):
    Y = np.column_stack([np.arange(10.0), 10 * np.arange(10.0)])
    Y[7] = np.nan
    permuted = permuted_labels(Y, rng)
    assert np.isnan(permuted[7]).all()
    known = np.delete(permuted, 7, axis=0)
    assert (known[:, 1] == 10 * known[:, 0]).all()
    assert (known[:, 0] != np.delete(np.arange(10), 7)).any()
