"""Draws from a Markov kernel ``(state, rng) -> state``, and whether they may be used.

The diagnostics, rank-normalised split R-hat and effective sample sizes [VGSCB21], take draws of
shape (chain, draw, ...) and return one number for every trailing entry.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

# Share of the draws in each of the two tails.
TAIL = 0.05

Kernel = Callable[[Any, np.random.Generator], Any]


class Schedule(NamedTuple):
    """How many draws to keep, how many rounds to drop before, how many draws are the fewest."""

    n_draws: int
    n_warmup: int = 0
    least: int = 1


def draw_chains(
    kernel: Kernel,
    state,
    rng: np.random.Generator,
    schedule: Schedule,
    *,
    keep: Callable[[Any], Any] | None = None,
    callback: Callable[[int, Any], bool | None] | None = None,
):
    """Values ``keep(state)`` of chains that move together, stacked (chain, draw, ...).

    Every array of the state, and of what is kept, has the chains as its first axis. All have as
    many draws when ``callback(n_iter, state)``, which sees every round, ends them with True;
    before the fewest draws are there it cannot.
    """
    kept: list = []
    for n_iter in range(1, schedule.n_warmup + schedule.n_draws + 1):
        state = kernel(state, rng)
        if n_iter > schedule.n_warmup:
            kept.append(state if keep is None else keep(state))
        if callback is not None and callback(n_iter, state) and len(kept) >= schedule.least:
            break
    return stack(kept)


def stack(values: Sequence):
    """Arrays, or named tuples of arrays, of equal shapes as one with a second axis."""
    first = values[0]
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(np.stack(field, axis=1) for field in zip(*values, strict=True)))
    return np.stack(values, axis=1)


def split_rhat(draws) -> np.ndarray:
    """R-hat of the halves of the chains, the larger of that of ranks and of folded ranks.

    Values above 1.01 say that chains have not found the same distribution.
    """
    return _entrywise(draws, _rhat_of)


def bulk_ess(draws) -> np.ndarray:
    """Effective sample size of rank-normalised draws."""
    return _entrywise(draws, lambda x: _ess(_normal_ranks(_split(x))))


def tail_ess(draws) -> np.ndarray:
    """The lesser effective sample size of the indicators of the two tails."""
    return _entrywise(draws, _tail_ess_of)


def _entrywise(draws, statistic: Callable):
    draws = np.asarray(draws, dtype=float)
    flat = draws.reshape(*draws.shape[:2], -1)
    values = [statistic(flat[:, :, k]) for k in range(flat.shape[2])]
    return np.array(values).reshape(draws.shape[2:])


def _rhat_of(x):
    folded = np.abs(x - np.median(x))
    return max(_rhat(_normal_ranks(_split(x))), _rhat(_normal_ranks(_split(folded))))


def _tail_ess_of(x):
    low, high = np.quantile(x, [TAIL, 1 - TAIL])
    return min(_ess(_split((x <= low).astype(float))), _ess(_split((x <= high).astype(float))))


def _split(x):
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, x.shape[1] - half :]])


def _normal_ranks(x):
    ranks = rankdata(x.ravel()).reshape(x.shape)
    return ndtri((ranks - 0.375) / (x.size + 0.25))


def _rhat(x):
    n = x.shape[1]
    within = x.var(axis=1, ddof=1).mean()
    between = x.mean(axis=1).var(ddof=1)
    if within == 0:
        return 1.0 if between == 0 else np.inf
    return np.sqrt((n - 1) / n + between / within)


def _ess(x):
    """Geyer's initial monotone sequence on the pooled autocorrelations."""
    m, n = x.shape
    covariance = _autocovariance(x)
    within = covariance[:, 0].mean() * n / (n - 1)
    total = within * (n - 1) / n + (x.mean(axis=1).var(ddof=1) if m > 1 else 0.0)
    if total == 0:
        return float(m * n)
    correlation = 1.0 - (within - covariance.mean(axis=0) * n / (n - 1)) / total
    correlation[0] = 1.0
    pairs = correlation[: n - n % 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    pairs = pairs[: negative[0] if negative.size else len(pairs)]
    time = -1.0 + 2.0 * np.minimum.accumulate(pairs).sum()
    return float(m * n / max(time, 1.0 / np.log10(m * n)))


def _autocovariance(x):
    n = x.shape[1]
    size = 1 << (2 * n - 1).bit_length()
    spectrum = np.fft.rfft(x - x.mean(axis=1, keepdims=True), size, axis=1)
    return np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :n] / n
