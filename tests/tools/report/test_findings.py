"""What the report finds in held-out predictions, classes, columns and rows."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import pearsonr
from sklearn.metrics import balanced_accuracy_score, confusion_matrix

pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
from gnomon import outliers
from gnomon.tools.compare.held_out import OutOfFold, Score
from gnomon.tools.report import findings

NAMES = np.array(["a", "b", "c"])


@pytest.fixture
def held_out(rng):
    truth = rng.integers(3, size=300)
    proba = rng.dirichlet([1, 1, 1], size=300)
    proba[np.arange(300), truth] += 1
    proba /= proba.sum(axis=1, keepdims=True)
    return OutOfFold(truth, proba.argmax(axis=1), proba, None, NAMES)


def test_the_matrix_counts_what_was_predicted_for_each_class(held_out):
    card = findings.confusion(held_out)
    counts = confusion_matrix(held_out.truth, held_out.predicted)
    found = [[int(cell.text or 0) for cell in row.cells[:3]] for row in card.rows]
    assert found == counts.tolist()
    assert [row.name for row in card.rows] == ["a", "b", "c"]
    assert all(row.cells[k].look.startswith("cell p") for k, row in enumerate(card.rows))
    expected = balanced_accuracy_score(held_out.truth, held_out.predicted)
    assert f"is {expected:.3f}; the 95 % interval" in card.text


def test_the_interval_of_balanced_accuracy_holds_the_truth(rng):
    shares, sizes = np.array([0.9, 0.7, 0.5]), np.array([100, 40, 20])
    inside = 0
    for _ in range(2000):
        _, low, high = findings.balanced_accuracy(rng.binomial(sizes, shares), sizes)
        inside += low <= shares.mean() <= high
    assert inside > 0.92 * 2000  # .940 of 10,000
    value, low, high = findings.balanced_accuracy(np.array([5, 5, 0]), np.array([5, 5, 0]))
    assert value == high == 1 and low < 0.95


def test_of_very_many_classes_the_largest_are_shown():
    truth = np.repeat(np.arange(30), np.arange(1, 31))
    rows = OutOfFold(truth, truth, None, None, np.array([f"class {k}" for k in range(30)]))
    card = findings.confusion(rows)
    assert [row.name for row in card.rows] == [f"class {k}" for k in range(5, 30)]
    assert "25 largest of 30 classes" in card.hint
    assert card.wide


def test_calibration_counts_rows_by_their_probability(held_out):
    card = findings.calibration(held_out)
    sure = held_out.proba.max(axis=1)
    counts = np.unique((10 * sure).astype(int), return_counts=True)[1]
    drawn = re.findall(r'"middle" class="soft">(\d+)<', card.charts[0])
    assert {str(n) for n in counts} <= set(drawn)
    assert f"is given {sure.mean():.0%} and is right" in card.text
    assert findings.calibration(held_out._replace(proba=None)) is None


def test_dots_of_true_probabilities_lie_on_the_diagonal(rng):
    sure = rng.uniform(0.5, 1, size=200_000)
    truth = (rng.random(len(sure)) > sure).astype(int)
    proba = np.column_stack([sure, 1 - sure])
    rows = OutOfFold(truth, np.zeros(len(sure), int), proba, None, NAMES[:2])
    (chart,) = findings.calibration(rows).charts
    dots = re.findall(r"M([\d.]+) ([\d.]+)h0", chart)
    line = re.search(r'class="limit" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"', chart).groups()
    x0, y0, x1, y1 = map(float, line)
    for x, y in dots:
        assert_allclose(float(y), y0 + (float(x) - x0) / (x1 - x0) * (y1 - y0), atol=2)


def test_errors_of_numbers_and_the_coverage_of_their_intervals(rng):
    truth = 10 * rng.normal(size=400)
    predicted = truth + rng.normal(size=400)
    measured, residuals = findings.number_cards(
        "yield", truth, predicted, np.ones(400), (1.02, 0.9, 1.1)
    )
    error = truth - predicted
    assert "RMSE of yield is 1.02 on held-out rows; the 95 % interval is 0.9 to" in measured.text
    assert f"{np.mean(np.abs(error) <= 1.96):.1%} hold what was measured" in measured.text
    assert f"mean residual is {error.mean():.3g}" in residuals.text
    assert measured.charts[0].count("h0") == residuals.charts[0].count("h0") == 400
    plain, _ = findings.number_cards("yield", truth, predicted, None, (1.0, 0.9, 1.1))
    assert "gives no intervals" in plain.text
    assert "faint" not in plain.charts[0]


def test_of_many_rows_some_are_drawn(rng):
    truth = rng.normal(size=5000)
    measured, _ = findings.number_cards("y", truth, truth, None, (0.0, 0.0, 0.0))
    assert measured.charts[0].count("h0") == findings.MOST_DOTS
    assert "2,000 of the rows are drawn" in measured.hint


def subject_of(X, y, kind, names=None, targets=("y",), score=None):
    labelled = np.array([v is not None for v in y]) if kind == "classes" else np.isfinite(y)
    names = names or [f"x{j}" for j in range(X.shape[1])]
    ids = [f"row {i}" for i in range(X.shape[0])]
    ready = SimpleNamespace(X=X, y=y, kind=kind, ids=ids, recipe=SimpleNamespace(names=names))
    labelled = labelled if labelled.ndim == 1 else labelled.any(axis=1)
    asked = SimpleNamespace(targets=targets)
    return SimpleNamespace(ready=ready, X=X, labelled=labelled, asked=asked, score=score)


def test_each_of_several_numbers_has_its_cards(rng):
    truth = rng.normal(size=(50, 2))
    truth[:10, 1] = np.nan
    rows = OutOfFold(truth, truth + 0.1, None, np.ones((50, 2)), np.array([]))
    parts = [Score("R²", 0.9, 0.8, 1.0, 50, rmse=(v, v, v)) for v in (0.3, 0.1)]
    score = Score("R²", 0.9, 0.8, 1.0, 50, parts=tuple(parts), rows=rows)
    subject = subject_of(np.zeros((50, 1)), truth, "numeric", targets=("fat", "water"), score=score)
    cards = findings.prediction_cards(subject)
    keys = ["measured", "residuals", "measured-2", "residuals-2"]
    assert [card.key for card in cards] == keys
    assert "RMSE of water is 0.1 on" in cards[2].text and "(40 rows)" in cards[2].text
    assert findings.prediction_cards(SimpleNamespace(score=None)) == []


@pytest.mark.parametrize("as_sparse", [False, True])
def test_differences_are_those_of_means_in_deviations_within(rng, as_sparse):
    X = rng.normal(size=(60, 4)) * [1, 2, 3, 4]
    labels = rng.integers(3, size=60)
    given = sparse.csr_array(X) if as_sparse else X
    value, low, high = findings.class_differences(given, labels, 3)
    for k in range(3):
        own, rest = X[labels == k], X[labels != k]
        within = (len(own) - 1) * own.var(axis=0, ddof=1) + (len(rest) - 1) * rest.var(
            axis=0, ddof=1
        )
        expected = (own.mean(axis=0) - rest.mean(axis=0)) / np.sqrt(within / 58)
        assert_allclose(value[k], expected)
    assert np.all((low < value) & (value < high))


def test_gaps_do_not_count_in_differences(rng):
    X, labels = rng.normal(size=(40, 2)), np.arange(40) % 2
    X[:7, 0] = np.nan
    value, _, _ = findings.class_differences(X, labels, 2)
    alone, _, _ = findings.class_differences(X[7:, :1], labels[7:], 2)
    assert_allclose(value[:, 0], alone[:, 0])
    assert_allclose(value[0], -value[1])


def test_intervals_hold_for_all_features_at_once(rng):
    zero_is_out = 0
    for _ in range(100):
        X, labels = rng.normal(size=(60, 50)), np.arange(60) % 2
        _, low, high = findings.class_differences(X, labels, 2)
        zero_is_out += np.any((low[0] > 0) | (high[0] < 0))
    assert zero_is_out < 15


def test_correlations_are_pearsons_over_what_is_known(rng):
    X = rng.normal(size=(50, 3))
    Y = np.column_stack([X[:, 0] + rng.normal(size=50), -X[:, 2] + rng.normal(size=50)])
    X[:5, 1] = Y[5:9, 0] = np.nan
    value, low, high = findings.correlations(X, Y)
    for k in range(2):
        for j in range(3):
            seen = np.isfinite(X[:, j]) & np.isfinite(Y[:, k])
            found = pearsonr(X[seen, j], Y[seen, k])
            assert_allclose(value[k, j], found.statistic)
            # The interval for all three is that of one at a higher level.
            expected = found.confidence_interval(1 - 0.05 / 3)
            assert_allclose([low[k, j], high[k, j]], expected, atol=1e-6)


def test_the_planted_features_distinguish_the_classes(rng):
    y = np.array(["a", "b", None], dtype=object)[np.arange(90) % 3]
    X = rng.normal(size=(90, 30))
    X[:, 7] += 3 * (np.arange(90) % 3 == 0)
    card = findings.distinguishing(subject_of(X, y, "classes"))
    assert "among the 60 labelled rows" in card.text
    assert len(card.charts) == 2
    for chart in card.charts:
        names = re.findall(r"<title>(x\d+): ", chart)
        assert names[0] == "x7" and len(names) == findings.TOP_FEATURES


def test_features_along_a_scale_are_a_line(rng):
    names = [f"{n} nm" for n in range(400, 520, 10)]
    X = rng.normal(size=(30, 12))
    card = findings.distinguishing(subject_of(X, X[:, 3], "numeric", names))
    assert card.title == "What goes with the target"
    assert "along the scale" in card.text
    assert ">nm<" in card.charts[0]


@pytest.mark.parametrize("names, unit", [
    ([f"wl_{n}" for n in range(400, 420)], "wl"),
    ([f"{n / 2} nm" for n in range(400, 420)], "nm"),
    ([f"{n}" for n in range(30, 10, -1)], ""),
    ([f"{n}" for n in range(-5, 15)], ""),
    ([f"t{n}h" for n in range(0, 40, 2)], "t h"),
])  # fmt: skip
def test_names_that_are_numbers_in_order_are_a_scale(names, unit):
    numbers, found = findings.ordered_scale(names)
    assert found == unit
    assert np.all(np.diff(numbers) > 0) or np.all(np.diff(numbers) < 0)


@pytest.mark.parametrize("names", [
    [f"wl_{n}" for n in range(400, 409)],
    [f"x{n}" for n in range(30)],
    [f"{n}" for n in range(1, 31)],
    [f"pixel_{i}_{j}" for i in range(5) for j in range(5)],
    [f"wl_{n}" for n in (*range(400, 410), 405)],
    [*(f"wl_{n}" for n in range(400, 420)), "site"],
    [f"{'ab'[n % 2]}{n}" for n in range(10, 40)],
])  # fmt: skip
def test_other_names_are_no_scale(names):
    assert findings.ordered_scale(names) is None


@pytest.mark.one_sample("beyond a plane in three columns each takes the share that its axes say")
def test_outlying_rows_are_named_with_the_columns_that_made_them_so(make_subject):
    subject = make_subject()
    subject.X = subject.X.copy()
    subject.X[5, 1] += 40
    card = findings.outlier_card(subject)
    found = outliers(subject.model, subject.X)
    beyond = np.sum((found.t2 > found.t2_limit[0]) | (found.q > found.q_limit[0]))
    assert card.text.startswith(f"{beyond} of 90 rows lie beyond")
    assert card.rows[0].name == "row 5" and card.rows[0].at == 5
    assert card.rows[0].cells[-1].text.startswith("v (")
    assert card.charts[0].count("h0") == 90
    assert card.charts[0].count('"limit"') == 4


def test_models_without_a_density_have_no_outliers():
    assert findings.outlier_card(SimpleNamespace(model=object(), X=np.zeros((30, 2)))) is None
