import json
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.decomposition import PCA

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.papers import cells as module
from benchmarks.papers import layouts, page
from benchmarks.papers import methods_yytkw06 as methods
from benchmarks.papers.data import MissingDataError, load
from benchmarks.papers.page import own_table, table
from benchmarks.papers.published_yytkw06 import published
from benchmarks.papers.verdicts import tally, verdict


@pytest.fixture
def cells(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(module, "RESULTS", tmp_path / "results")
    return lambda: module.Cells("paper")


def test_a_run_goes_on_where_it_stopped(cells):
    calls = []

    def compute():
        calls.append(1)
        return {"error": 0.25}

    cells().run(("Table 1", "data", "method", 2, 0), compute)
    again = cells()
    again.run(("Table 1", "data", "method", 2, 0), compute)
    again.run(("Table 1", "data", "method", 2, 1), compute)
    assert len(calls) == 2
    found = again.means()["Table 1", "data", "method", 2, "error"]
    assert (found["ours"], found["sd"], found["repeats"]) == (0.25, 0.0, 2)


def test_a_summary_keeps_rows_that_have_more_repeats_than_the_run(cells):
    def key(method, repeat):
        return "Table 1", "data", method, 2, repeat

    first = cells()
    for repeat in range(3):
        first.run(key("longer", repeat), lambda: {"error": 0.5})
    first.run(key("shorter", 0), lambda: {"error": 0.5})
    first.write({}, {})
    first.path.unlink()
    second = cells()
    for method, repeat in [("longer", 0), ("shorter", 0), ("shorter", 1), ("new", 0)]:
        second.run(key(method, repeat), lambda: {"error": 0.25})
    figure = {("Table 1", "data", "longer", 2, "error"): (0.4, 0.1)}
    second.write(figure, {})
    rows = json.loads(second.summary.read_text())["rows"]
    found = {row["method"]: (row["ours"], row["repeats"]) for row in rows}
    assert found == {"longer": (0.5, 3), "new": (0.25, 1), "shorter": (0.25, 2)}
    assert rows[0]["difference"] == pytest.approx(0.1)
    assert second.reached() == {key(method, 0)[:-1] for method in found}


def test_failures_and_missing_data_are_named_and_left_out_of_means(cells):
    run = cells()

    def fail():
        raise ValueError("no good")

    def missing():
        raise MissingDataError("not there")

    run.run(("Table 1", "data", "method", 2, 0), fail)
    run.run(("Table 1", "other", "method", 2, 0), missing)
    assert run.means() == {}
    run.write({}, {})
    text = (module.RESULTS / "paper.json").read_text()
    assert "no good" in text
    assert "not there" in text


def test_without_data_the_reason_is_given(monkeypatch):
    monkeypatch.delenv("GNOMON_DATA", raising=False)
    with pytest.raises(MissingDataError, match="GNOMON_DATA"):
        load("yale")


@pytest.mark.parametrize(
    "ours, expected", [(0.509, "within"), (0.488, "better"), (0.512, "worse"), (0.491, "within")]
)
def test_verdicts_are_by_two_standard_errors_of_the_difference(ours, expected):
    """The error is that of both means: the root of 0.02^2 / 25 + 0.015^2 / 25, 0.005."""
    row = {"method": "SPPCA", "measure": "error", "data": "d", "size": 5, "repeats": 25}
    row |= {"paper": 0.5, "paper_sd": 0.02, "ours": ours, "sd": 0.015, "difference": ours - 0.5}
    row |= {"paper_repeats": 25}
    assert verdict(row) == expected
    assert expected in table([row])


def test_a_single_split_of_the_paper_has_the_deviation_of_ours():
    row = {"method": "BSDR", "measure": "accuracy", "data": "d", "size": 2, "repeats": 10}
    row |= {"paper": 0.9, "paper_sd": 0.0, "ours": 0.88, "sd": 0.01, "paper_repeats": 10}
    assert verdict(row) == "within"
    assert verdict(row | {"ours": 0.87}) == "worse"
    assert verdict(row | {"ours": 0.9, "sd": 0.0}) == "within"


def test_a_star_needs_every_rank_sum_test(rng):
    low, high = rng.normal(0.3, 0.02, 50), rng.normal(0.4, 0.02, 50)
    own = {
        "LDA": {"size": 5, "ours": 0.3, "values": list(low)},
        "PCA": {"size": 5, "ours": 0.4, "values": list(high)},
        "FULL": {"size": 0, "ours": 0.2, "values": list(low - 0.1)},
    }
    assert layouts.leading(own) == "LDA"
    assert layouts.is_marked(own, "LDA")
    like = own | {"PLS": {"size": 5, "ours": 0.3, "values": list(rng.normal(0.3, 0.02, 50))}}
    assert not layouts.is_marked(like, "LDA")
    assert not layouts.is_marked(own | {"PLS": {"size": 5, "ours": 0.4}}, "LDA")


def test_sizes_stand_in_numerical_order_in_the_layout_of_a_figure():
    row = {"table": "Figure 4", "data": "cora_ds", "method": "PCA", "measure": "accuracy"}
    rows = [row | {"size": q, "ours": q / 100, "repeats": 2 + q % 2} for q in (10, 5, 20)]
    text = layouts.drawn("LYZ09", rows)
    assert "(2 to 3 splits)" in text
    assert "| | 5 | 10 | 20 |" in text
    assert "| cora_ds, PCA | 0.050 | 0.100 | 0.200 |" in text


def test_another_task_has_a_verdict_and_does_not_count():
    row = {"table": "Table 2", "method": "SPPCA", "measure": "error", "size": 5, "repeats": 25}
    row |= {"paper": 0.5, "paper_sd": 0.02, "ours": 0.5, "sd": 0.02, "paper_repeats": 50}
    assert tally([row | {"data": "yale"}, row | {"data": "ng20"}])["SPPCA"]["within"] == 1


def test_a_constant_chosen_on_the_figures_is_no_explanation_and_says_so():
    row = {"table": "Table 2", "data": "d", "size": 5, "measure": "error", "repeats": 50}
    own = {"method": "S2PPCA", "ours": 0.6, "paper": 0.5, "paper_sd": 0.02, "difference": 0.1}
    rows = [row | own | {"paper_repeats": 50, "sd": 0.02}]
    rows += [row | {"method": "S2PPCA, s = 0.15", "ours": 0.5, "sd": 0.02}]
    found = tally(rows)["S2PPCA"]
    assert (found["explained"], found["by a chosen constant"]) == (0, 1)
    assert "s = 0.15, constant chosen on these figures: 0.500" in own_table(rows)


def test_a_worse_figure_names_the_change_that_explains_it():
    row = {"table": "Table 2", "data": "d", "size": 5, "measure": "error", "repeats": 3, "sd": 0.01}
    own = row | {"method": "SPPCA", "ours": 0.6, "paper": 0.5, "paper_sd": 0.02, "difference": 0.1}
    own |= {"paper_repeats": 2}
    tried = row | {"method": "SPPCA, noise fixed", "ours": 0.53}
    assert "| worse | noise fixed: 0.530 |" in own_table([own, tried])
    assert "| worse | not found |" in own_table([own, tried | {"ours": 0.55}])
    principal = row | {"method": "PCA", "ours": 0.7, "paper": 0.6, "paper_sd": 0.02}
    principal |= {"paper_repeats": 2}
    assert "PCA differs too: +0.100" in own_table([own, principal | {"difference": 0.1}])
    assert "not found" in own_table([own, principal | {"ours": 0.5, "difference": -0.1}])
    assert tally([own, tried])["SPPCA"]["explained"] == 1


def test_a_change_explains_a_figure_only_if_it_is_good_for_all_measures_of_its_cell():
    row = {"table": "Table 3", "data": "d", "size": 5, "repeats": 3, "sd": 0.01, "difference": -0.1}
    own = {"method": "SPPCA", "ours": 0.4, "paper": 0.5, "paper_sd": 0.02, "paper_repeats": 2}
    rows = [row | own | {"measure": measure} for measure in ("F1 micro", "AUC")]
    half = [r | {"method": "SPPCA, with y", "ours": 0.5 * (r["measure"] == "AUC")} for r in rows]
    assert tally(rows + half)["SPPCA"]["not found"] == 2
    whole = [r | {"method": "SPPCA, noise fixed", "ours": 0.48} for r in rows]
    assert own_table(rows + half + whole).count("noise fixed: 0.480 |") == 2


@pytest.mark.parametrize("told, expected", [(0.55, "out of reach"), (0.53, "not found")])
def test_a_worse_figure_is_out_of_reach_if_all_labels_do_not_suffice(told, expected):
    row = {"table": "Table 2", "data": "d", "size": 5, "measure": "error", "repeats": 3, "sd": 0.01}
    own = {"method": "S2PPCA", "ours": 0.6, "paper": 0.5, "paper_sd": 0.02, "difference": 0.1}
    own |= {"paper_repeats": 2}
    rows = [row | own, row | {"method": "S2PPCA, all labels", "ours": 0.58}]
    assert tally(rows)["S2PPCA"]["not found"] == 1
    rows += [row | {"method": "S2PPCA, all labels, noise fixed", "ours": told}]
    assert tally(rows)["S2PPCA"][expected] == 1
    assert ("out of reach: with all labels 0.550" in own_table(rows)) == (told == 0.55)


def test_principal_components_of_the_rows_shown_are_found_in_their_span(rng, monkeypatch):
    X = rng.standard_normal((30, 50))
    known = np.arange(30) < 8
    given = methods.Task(X, np.arange(30) % 2, np.where(known, np.arange(30) % 2, -1), known)
    monkeypatch.setattr(methods, "task", lambda name, repeat: given)
    methods.span.cache_clear()
    expected = PCA(3).fit(X[known]).transform(X)
    found = methods.pca_labelled("any", 0, 3)
    assert np.abs(found) == pytest.approx(np.abs(expected))
    shown = X[known] - X[known].mean(axis=0)
    slow = PLSRegression(2, scale=False).fit(shown, methods.indicators(given)).x_rotations_
    expected = (X - X[known].mean(axis=0)) @ slow
    assert np.abs(methods.pls("any", 0, 2)) == pytest.approx(np.abs(expected))
    methods.span.cache_clear()


def test_all_printed_figures_are_there():
    figures = published()
    assert figures["Table 2", "orl", "S2PPCA", 20, "error"] == (0.2755, 0.0286)
    assert figures["Table 3", "yeast", "S2PPCA", 20, "AUC"] == (0.5921, 0.0119)
    assert sum(key[0] == "Table 2" for key in figures) == 9 * 5 * 3 - 5 * 3 + 9 - 3 * 9 + 3 * 9


@pytest.mark.parametrize("name", ["index", "yytkw06", "g13"])
def test_the_pages_are_what_the_committed_results_say(name):
    committed = (page.PAGES / f"{name}.md").read_text()
    assert committed == page.written()[name].rstrip() + "\n"


def test_the_time_of_a_paper_counts_every_cell_once():
    row = {"table": "Table 3", "data": "d", "method": "PCA", "size": 5, "repeats": 3}
    rows = [row | {"measure": measure, "seconds": 1200} for measure in ("AUC", "F1 macro")]
    assert page.hours({"paper": "P", "rows": rows}) == "1.0 h for [P]"
    untimed = row | {"method": "LDA", "measure": "AUC"}
    assert page.hours({"paper": "P", "rows": [*rows, untimed]}) == "more than 1.0 h for [P]"
