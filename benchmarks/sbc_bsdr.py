"""Simulation-based calibration of BSDR by Gibbs sampling.

    python benchmarks/sbc_bsdr.py --simulations 1000

Parameters are drawn from the prior and outputs from the parameters; the sampler is given the
outputs. If it draws from the posterior, the rank of the true value of any quantity among the
draws is uniform. Every draw is the last of a chain of its own, so that draws are independent but
for the start they share. Besides parameters that no rotation of z changes, one quantity is the
log likelihood of the outputs: without it a sampler that returns the prior would pass.

Ranks pass where their distribution function stays inside the band that holds 95 % of uniform
ones at all points and for all quantities together, and the chi-square of 20 bins is not beyond
0.001 over the number of quantities [TBSVG18], [SBV22].
"""

import argparse
import json
import time
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr
from scipy.stats import binom, chi2

from gnomon.inference.loop import iterate
from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import fit as bsdr
from gnomon.models.bsdr import gibbs, probit
from gnomon.models.bsdr.factors import Gamma, of_entries
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs, SignOutputs

import measure

n, d, q, c = 10, 3, 2, 3
# At (1, 1) moments do not exist, and at scale one a slip between scale and rate is invisible.
PRIOR = Gamma(3.0, 0.5)
# That of the noise of numbers, which has no setting.
NOISE_PRIOR = Gamma(1.0, 1.0)
LATENT_NOISE = 0.8
N_DRAWS = 99
# Rounds of each chain before the draw that is kept.
N_ROUNDS = 80
N_BINS = 20
LEVEL = 0.05
LEAST_P = 0.001
UNIFORM_SAMPLES = 10_000
# Outputs and priors.
CASES = (
    ("classes", "entry"),
    ("labels", "entry"),
    ("numbers", "entry"),
    ("classes", "column"),
    ("classes", "row"),
)


class Truth(NamedTuple):
    """Parameters that made the outputs."""

    P: np.ndarray
    V: np.ndarray
    b: np.ndarray
    eps: np.ndarray
    Z: np.ndarray | None = None


def simulate(name, kind, rng, q=q):
    """Rows, outputs and the parameters behind them."""
    X = rng.standard_normal((n, d))
    X -= X.mean(axis=0)
    shape = {"entry": (d, q), "column": q, "row": d}[kind]
    phi = rng.gamma(PRIOR.shape, PRIOR.scale, shape)
    P = rng.standard_normal((d, q)) / np.sqrt(of_entries(phi, kind, (d, q)))
    V = rng.standard_normal((q, c)) / np.sqrt(rng.gamma(PRIOR.shape, PRIOR.scale, (q, c)))
    b = rng.standard_normal(c) / np.sqrt(rng.gamma(PRIOR.shape, PRIOR.scale, c))
    eps = rng.gamma(NOISE_PRIOR.shape, NOISE_PRIOR.scale, c) if name == "numbers" else np.ones(c)
    Z = X @ P + LATENT_NOISE * rng.standard_normal((n, q))
    T = Z @ V + b + rng.standard_normal((n, c)) / np.sqrt(eps)
    outputs = {
        "classes": ClassOutputs(T.argmax(axis=1), c),
        "labels": SignOutputs(np.sign(T)),
        "numbers": NumberOutputs(T),
    }[name]
    return X, outputs, Truth(P, V, b, eps, Z)


def settings(kind, rng, sampling, q=q):
    """Of a fit with the prior that made the data."""
    return bsdr.Settings(
        n_components=q,
        prior=kind,
        projection_prior=PRIOR,
        weight_prior=PRIOR,
        latent_noise=LATENT_NOISE,
        standardize=False,
        n_init=1,
        max_iter=20,
        tol=1e-4,
        rng=rng,
        sampling=sampling,
    )


def draw_posterior(X, outputs, kind, rng) -> Truth:
    """Draws (N_DRAWS, ...), each the last of a chain."""
    sampling = gibbs.Sampling(N_DRAWS, gibbs.LEAST_DRAWS, N_ROUNDS - gibbs.LEAST_DRAWS)
    found = bsdr.fit(bsdr.Problem(Matrix(X), outputs), settings(kind, rng, sampling), iterate)
    last = {name: value[:, -1] for name, value in found.draws.values.items()}
    eps = 1.0 / last["noise_variance"] if "noise_variance" in last else np.ones((N_DRAWS, c))
    return Truth(np.swapaxes(last["projection"], 1, 2), last["weights"], last["bias"], eps)


def quantities(draws: Truth, X, outputs) -> dict[str, np.ndarray]:
    """Values by name for every draw, none of which a rotation of z changes."""
    P, V, b, eps = draws[:4]
    if isinstance(outputs, ClassOutputs):
        V, b = V - V.mean(axis=2, keepdims=True), b - b.mean(axis=1, keepdims=True)
    K = P @ V
    values = np.linalg.svd(K, compute_uv=False)[:, :q]
    return {
        "coefficient 1": K[:, 0, 0],
        "coefficient 2": K[:, 1, 1],
        "bias 1": b[:, 0],
        "bias 2": b[:, 1],
        "log size of the coefficients": np.log(values[:, 0]),
        "log determinant": np.log(values).sum(axis=1),
        "log likelihood": log_likelihood(X @ K + b[:, None], eps, outputs),
    }


def log_likelihood(M, eps, outputs):
    """Log density (m,) of the outputs around the scores M (m, n, c), without the noise of z."""
    if isinstance(outputs, ClassOutputs):
        labels = np.tile(outputs.labels, len(M))
        return probit.class_scores(M.reshape(-1, c), labels)[1].reshape(len(M), -1).sum(axis=1)
    if isinstance(outputs, SignOutputs):
        return log_ndtr(outputs.signs * M).sum(axis=(1, 2))
    gaps = (outputs.Y - M) ** 2 * eps[:, None]
    return 0.5 * (n * np.log(eps).sum(axis=1) - gaps.sum(axis=(1, 2)))


def rank_truth(name, kind, seed, posterior=draw_posterior) -> dict[str, int]:
    """How many draws of each quantity are below the truth, of one simulation."""
    rng = np.random.default_rng(seed)
    X, outputs, truth = simulate(name, kind, rng)
    drawn = quantities(posterior(X, outputs, kind, rng), X, outputs)
    true = quantities(Truth(*(value[None] for value in truth[:4])), X, outputs)
    return {key: int(np.sum(drawn[key] < true[key])) for key in drawn}


def ecdf_p_values(ranks):
    """Least two-sided binomial probability of the counts up to each point, of samples (m, N)."""
    counts = np.stack([np.bincount(row, minlength=N_DRAWS + 1) for row in ranks])
    below, total = np.cumsum(counts, axis=1)[:, :-1], ranks.shape[1]
    shares = np.arange(1, N_DRAWS + 1) / (N_DRAWS + 1)
    table = binom.cdf(np.arange(total + 1)[:, None], total, shares)
    points = np.arange(N_DRAWS)
    lower = table[below, points]
    upper = 1.0 - np.where(below > 0, table[below - 1, points], 0.0)
    return 2.0 * np.minimum(lower, upper).min(axis=1)


def binned(ranks):
    """Counts in equal bins."""
    return np.bincount(ranks * N_BINS // (N_DRAWS + 1), minlength=N_BINS)


def chi_square_p_value(ranks):
    """Of the counts in equal bins."""
    counts = binned(ranks)
    expected = len(ranks) / N_BINS
    return float(chi2.sf(np.sum((counts - expected) ** 2) / expected, N_BINS - 1))


def verdict(ranks: dict[str, np.ndarray]) -> dict[str, dict]:
    """Both tests of each quantity; the band is for all of them together."""
    size = len(next(iter(ranks.values())))
    uniform = np.random.default_rng(0).integers(0, N_DRAWS + 1, (UNIFORM_SAMPLES, size))
    uniform = ecdf_p_values(uniform)
    found = {}
    for name, values in ranks.items():
        least = ecdf_p_values(values[None])[0]
        share = float(np.mean(uniform <= least))
        square = chi_square_p_value(values)
        inside = share > LEVEL / len(ranks) and square > LEAST_P / len(ranks)
        found[name] = {"band": share, "chi-square": square, "passes": bool(inside)}
    return found


def ranks_of(name, kind, seeds, posterior=draw_posterior) -> dict[str, np.ndarray]:
    """Ranks of every quantity over simulations."""
    each = [rank_truth(name, kind, seed, posterior) for seed in seeds]
    return {key: np.array([one[key] for one in each]) for key in each[0]}


def run_case(name, kind, size) -> dict:
    """Ranks of so many simulations, tested and in bins."""
    start = time.process_time()
    ranks = ranks_of(name, kind, range(size))
    return {
        "outputs": name,
        "prior": kind,
        "simulations": size,
        "seconds": round(time.process_time() - start),
        "quantities": verdict(ranks),
        "counts": {key: binned(values).tolist() for key, values in ranks.items()},
    }


def main():
    """Cases; what is done is written after each, beside those that are not run again."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulations", type=int, default=1000)
    names = {f"{name}/{kind}": (name, kind) for name, kind in CASES}
    parser.add_argument("--cases", nargs="*", default=list(names), choices=list(names))
    options = parser.parse_args()
    path = measure.RESULTS / "sbc_bsdr.json"
    cases = json.loads(path.read_text())["cases"] if path.exists() else []
    found = {(case["outputs"], case["prior"]): case for case in cases}
    for key in map(names.get, options.cases):
        found[key] = run_case(*key, options.simulations)
        print(json.dumps(found[key]["quantities"]), flush=True)
        record = {"draws": N_DRAWS, "rounds": N_ROUNDS, "machine": measure.machine()}
        record["cases"] = [found[key] for key in CASES if key in found]
        path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
