import numpy as np
import pytest

from gnomon.inference.search import line_search


def peak(t):
    return -((t - 3.0) ** 2), -2 * (t - 3.0)


@pytest.mark.parametrize("guess", [1e-4, 0.1, 3.0, 50.0])
def test_finds_the_top_from_any_guess(guess):
    t = line_search(peak, *peak(0.0), guess)
    assert abs(peak(t)[1]) <= 0.4 * 6
    assert peak(t)[0] > peak(0.0)[0]


def test_steps_back_from_where_the_function_ends():
    def along(t):
        return (np.log1p(-t) + 3 * t, 3 - 1 / (1 - t)) if t < 1 else (np.nan, np.nan)

    t = line_search(along, 0.0, 2.0, 5.0)
    assert 0 < t < 1 and along(t)[0] > 0


def test_no_length_where_nothing_rises():
    assert line_search(lambda t: (-t, -1.0), 0.0, 1.0, 1.0) == 0.0
    assert line_search(peak, 0.0, 0.0, 1.0) == 0.0
