"""What entries come to: labels, groups, skips, and all of it undone."""

import numpy as np
import pytest

from gnomon.tools.label.journal import Entry
from gnomon.tools.label.record import ORIGINS, Record

GIVEN = ["b", None, None, None, "a", None]


def label(rows, name, origin="person"):
    return Entry("label", "2026-01-02", tuple(rows), name, origin)


@pytest.fixture
def record():
    return Record(["c"], GIVEN)


def names(record):
    return [None if code < 0 else record.classes[code] for code in record.labels]


def state_of(record):
    arrays = (record.labels, record.origins, record.times, record.chunks, record.skipped)
    return [list(array) for array in arrays] + [list(record.classes)]


def test_labels_of_the_table_are_there_from_the_start(record):
    assert record.classes == ["c", "a", "b"]
    assert names(record) == GIVEN
    assert [ORIGINS[k] for k in record.origins] == ["table", "", "", "", "table", ""]


def test_a_label_has_its_time_and_origin(record):
    record.add(label([1], "a", "suggestion"))
    assert names(record)[1] == "a"
    assert (ORIGINS[record.origins[1]], record.times[1]) == ("suggestion", "2026-01-02")


def test_a_name_that_is_new_is_a_class(record):
    record.add(label([2], "z"))
    assert record.classes[-1] == "z"
    assert names(record)[2] == "z"


def test_a_label_can_be_taken_away(record):
    record.add(label([0], None))
    assert names(record)[0] is None
    assert record.origins[0] == 0


def test_a_label_that_is_given_again_is_confirmed(record):
    record.add(label([0, 4], "b"))
    assert record.confirmed.tolist() == [True, False, False, False, False, False]


def test_groups_that_share_a_row_are_one(record):
    record.add(Entry("together", "", (1, 2)))
    record.add(Entry("together", "", (3, 5)))
    assert len(set(record.chunks[[1, 2, 3, 5]])) == 2
    record.add(Entry("together", "", (2, 3)))
    assert len(set(record.chunks[[1, 2, 3, 5]])) == 1
    assert record.chunks[0] == -1


def test_a_row_leaves_a_group_when_it_gets_another_class(record):
    record.add(Entry("together", "", (1, 2, 3)))
    record.add(label([1], "a"))
    assert record.classes_among([2]) == ["a"]
    record.add(label([2], "b"))
    assert (record.chunks >= 0).tolist() == [False, True, False, True, False, False]
    record.add(label([3], "a"))
    assert record.chunks[1] == record.chunks[3] >= 0


def random_entries(rng, n):
    for _ in range(n):
        rows = tuple(rng.choice(6, rng.integers(1, 4), replace=False).tolist())
        do = rng.choice(["label", "skip", "together"])
        name = str(rng.choice(["a", "b", "x", "y"])) if do == "label" else None
        yield Entry(str(do), f"t{rng.integers(99)}", rows, name, None)


@pytest.mark.parametrize("seed", range(5))
def test_undoing_everything_gives_back_every_state_in_turn(record, seed):
    states, undone = [state_of(record)], []
    for entry in random_entries(np.random.default_rng(seed), 12):
        record.add(entry)
        states.append(state_of(record))
    while record.last is not None:
        states.pop()
        record.add(Entry("undo", "", of=record.last))
        undone.append(state_of(record) == states[-1])
    assert undone == [True] * 12
    assert record.n_done == 24


def test_what_was_undone_cannot_be_undone_again(record):
    record.add(label([1], "a"))
    record.add(Entry("undo", "", of=0))
    with pytest.raises(ValueError, match="entry 0"):
        record.add(Entry("undo", "", of=0))


def test_figures_of_the_progress_change_nothing(record):
    before = state_of(record)
    record.add(Entry("progress", "", values=(1, 2)))
    assert (state_of(record), record.last, record.n_done) == (before, None, 0)
