import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.linalg import subspace_angles

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.papers import cells as module
from benchmarks.papers.data import MissingDataError, load
from benchmarks.papers.em_yytkw06 import paper_em
from benchmarks.papers.page import own_table, table
from benchmarks.papers.published_yytkw06 import published
from benchmarks.papers.verdicts import tally, verdict

from gnomon import SPPCA


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
    mean, sd, count = again.means()["Table 1", "data", "method", 2, "error"]
    assert (mean, sd, count) == (0.25, 0.0, 2)


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
    "ours, expected", [(0.52, "within"), (0.40, "better"), (0.60, "worse"), (0.48, "within")]
)
def test_verdicts_are_by_two_standard_deviations_of_the_paper(ours, expected):
    row = {"method": "SPPCA", "measure": "error", "data": "d", "size": 5, "repeats": 3}
    row |= {"paper": 0.5, "paper_sd": 0.02, "ours": ours, "sd": 0.01, "difference": ours - 0.5}
    assert verdict(row) == expected
    assert expected in table([row])


def test_a_worse_figure_names_the_change_that_explains_it():
    row = {"table": "Table 2", "data": "d", "size": 5, "measure": "error", "repeats": 3, "sd": 0.01}
    own = row | {"method": "SPPCA", "ours": 0.6, "paper": 0.5, "paper_sd": 0.02, "difference": 0.1}
    tried = row | {"method": "SPPCA, noise fixed", "ours": 0.53}
    assert "| worse | noise fixed: 0.530 |" in own_table([own, tried])
    assert "| worse | not found |" in own_table([own, tried | {"ours": 0.55}])
    principal = row | {"method": "PCA", "ours": 0.7, "paper": 0.6, "paper_sd": 0.02}
    assert "PCA differs too: +0.100" in own_table([own, principal | {"difference": 0.1}])
    assert "not found" in own_table([own, principal | {"ours": 0.5, "difference": -0.1}])
    assert tally([own, tried])["SPPCA"] == {"within": 0, "better": 0, "worse": 1, "explained": 1}


def test_all_printed_figures_are_there():
    figures = published()
    assert figures["Table 2", "orl", "S2PPCA", 20, "error"] == (0.2755, 0.0286)
    assert figures["Table 3", "yeast", "S2PPCA", 20, "AUC"] == (0.5921, 0.0119)
    assert sum(key[0] == "Table 2" for key in figures) == 9 * 5 * 3 - 5 * 3 + 9 - 3 * 9 + 3 * 9


def test_the_papers_own_steps_reach_the_maximum_of_the_library(rng):
    Z = rng.standard_normal((200, 2))
    X = Z @ rng.standard_normal((2, 6)) + 0.5 * rng.standard_normal((200, 6))
    y = Z @ rng.standard_normal((2, 3)) + 0.5 * rng.standard_normal((200, 3))
    y /= y[:60].std(axis=0)
    shown = np.where(np.arange(200)[:, None] < 60, y, np.nan)
    settings = {"supervision": "likelihood", "target_mean": "labelled", "tol": 1e-12}
    best = SPPCA(2, **settings).fit(X, shown)
    centred = X - X.mean(axis=0)
    W, noise = paper_em(centred[:60], y[:60], centred[60:], 2, rng)
    assert noise == pytest.approx(best.noise_variance_, rel=1e-3)
    assert subspace_angles(W, best.components_.T).max() < 1e-3
