"""How often intervals hold the truth: of latent variables, imputed values, predicted numbers.

    python benchmarks/calibration_posteriors.py --repeats 20

Rows come from the model that is fitted, so that the truth is known, but for the cases that say
otherwise. A latent variable is known up to a linear map of all of them: the best such map to the
true ones is taken, and of every row the posterior in one random direction. Shares are of 50, 80
and 95 % intervals; a case is exact where all three are within three binomial errors.
"""

import argparse
import json
import warnings
from functools import partial

import numpy as np
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale

from gnomon import PPCA, PRPCA, SPPCA, BSDRRegressor, KernelSPPCA, Links
from gnomon.inference.loop import iterate
from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import fit as bsdr
from gnomon.models.bsdr import gibbs, predict

import measure
import sbc_bsdr

LEVELS = (0.5, 0.8, 0.95)
WIDTHS = tuple(float(norm.ppf(0.5 + level / 2)) for level in LEVELS)
d, q, NOISE = 8, 2, 0.7
MANY, FEW = 1500, 30
GAPS = 0.2
# Where chance does not decide what is missing: values above this share of their column, and the
# probability that they are.
HIGH, HIGH_GAPS = 0.7, 0.5
HELD_OUT = 300
LIKELIHOOD = {"supervision": "likelihood"}
FEW_DRAWS = {"inference": "gibbs", "n_chains": 2, "n_draws": 200, "n_warmup": 100}


def linear_rows(n, rng):
    """Latent variables, rows and two numbers of the linear Gaussian model."""
    Z = rng.standard_normal((n, q))
    X = Z @ rng.standard_normal((q, d)) + NOISE * rng.standard_normal((n, d))
    return Z, X, Z @ rng.standard_normal((q, 2)) + NOISE * rng.standard_normal((n, 2))


def linked_rows(n, rng):
    """Rows of groups that share most of their latent part, and links within groups."""
    group = np.arange(n) % (n // 10)
    Z = 0.8 * rng.standard_normal((n // 10, q))[group] + 0.6 * rng.standard_normal((n, q))
    X = Z @ rng.standard_normal((q, d)) + NOISE * rng.standard_normal((n, d))
    inside = (group[:, None] == group) & (rng.random((n, n)) < 0.3)
    return X, Links(np.triu(inside, 1).astype(float))


def relational_rows(n, rng, alpha=1.0):
    """Rows of the model of [LYZ09]: Z and noise have the row covariance Delta^-1."""
    pairs = [(i, (i + 1) % n) for i in range(n) if i % 3]
    links = Links.from_edges(pairs, n_nodes=n)
    A = links.adjacency.toarray()
    R = np.linalg.inv(alpha * np.eye(n) + A)
    Z, E = R @ rng.standard_normal((n, q)), R @ rng.standard_normal((n, d))
    return Z, Z @ rng.standard_normal((q, d)) + NOISE * E, links


def latent_distances(posterior, Z, rng):
    """Errors over deviations of z in a random direction of each row, after the best linear map."""
    mean, covariance = posterior
    lifted = np.column_stack([np.ones(len(Z)), mean])
    turn = np.linalg.lstsq(lifted, Z, rcond=None)[0]
    directions = rng.standard_normal(Z.shape)
    error = np.sum(directions * (lifted @ turn - Z), axis=1)
    along = directions @ turn[1:].T
    return error / np.sqrt(np.einsum("ni,nij,nj->n", along, covariance, along))


def latents_of_ppca(n, rng, gaps=0.0):
    Z, X, _ = linear_rows(n, rng)
    holes = np.where(rng.random(X.shape) < gaps, np.nan, X)
    return latent_distances(PPCA(q).fit(holes).posterior(holes), Z, rng)


def latents_of_sppca(n, rng, given_y=False, make=SPPCA):
    Z, X, Y = linear_rows(n, rng)
    model = make(q, **LIKELIHOOD).fit(X, Y)
    return latent_distances(model.posterior(X, Y if given_y else None), Z, rng)


def latents_of_prpca(n, rng):
    Z, X, links = relational_rows(n, rng)
    model = PRPCA(q, relation="paper", alpha=1.0, gamma=0.0).fit(X, links=links)
    return latent_distances(model.posterior(X, links), Z, rng)


def imputed(model, X, rng, missing=None, **about):
    """Errors over deviations of filled values of a fit to the rows with gaps."""
    gaps = rng.random(X.shape) < GAPS if missing is None else missing
    holes = np.where(gaps, np.nan, X)
    filled, std = model.fit(holes, **about).impute(holes, return_std=True, **about)
    return ((filled - X) / np.where(gaps, std, 1.0))[gaps]


def imputed_by_chance(model, n, rng):
    return imputed(model, linear_rows(n, rng)[1], rng)


def imputed_high(model, n, rng):
    """High values are missing, which no model here knows."""
    X = linear_rows(n, rng)[1]
    high = np.quantile(X, HIGH, axis=0) < X
    return imputed(model, X, rng, high & (rng.random(X.shape) < HIGH_GAPS))


def imputed_linked(relation, n, rng):
    X, links = linked_rows(n, rng)
    return imputed(PRPCA(q, relation=relation, random_state=0), X, rng, links=links)


def predicted(make, rows, labelled, rng):
    """Errors over deviations of predicted numbers of rows held out."""
    X, y = rows(rng)
    order = rng.permutation(len(y))
    seen, held = order[:-HELD_OUT], order[-HELD_OUT:]
    known = np.full(len(seen), np.nan)
    known[:labelled] = y[seen[:labelled]]
    mean, std = make().fit(X[seen], known).predict(X[held], return_std=True)
    return (mean - y[held]) / std


def planted_numbers(rng):
    _, X, Y = linear_rows(800, rng)
    return X, Y[:, 0]


def diabetes(rng):
    X, y = load_diabetes(return_X_y=True)
    return scale(X), y + rng.standard_normal(len(y))


def bayesian_fit(rng, sampling=None):
    """BSDR with one component and three numbers on ten rows of its own prior, and the truth."""
    X, outputs, truth = sbc_bsdr.simulate("numbers", "entry", rng, q=1)
    options = sbc_bsdr.settings("entry", rng, sampling, q=1)._replace(max_iter=200)
    found = bsdr.fit(bsdr.Problem(Matrix(X), outputs), options, iterate)
    sign = np.sign(np.sum(found.loadings * truth.P)) or 1.0
    return X, found, truth._replace(P=sign * truth.P, V=sign * truth.V, Z=sign * truth.Z)


def bayesian_loadings(sampling, rng):
    _, found, truth = bayesian_fit(rng, sampling)
    return ((found.loadings - truth.P) / found.loadings_sd).ravel()


def bayesian_latents(sampling, rng):
    """Latent variables of the rows of the fit given x."""
    X, found, truth = bayesian_fit(rng, sampling)
    variance = sbc_bsdr.LATENT_NOISE**2 + X**2 @ found.loadings_sd**2
    return ((X @ found.loadings - truth.Z) / np.sqrt(variance)).ravel()


def bayesian_predictions(sampling, rng):
    """Numbers of a new row for each output."""
    _, found, truth = bayesian_fit(rng, sampling)
    x, noise = rng.standard_normal((1, len(truth.P))), sbc_bsdr.LATENT_NOISE**2
    z = x @ truth.P + np.sqrt(noise) * rng.standard_normal((1, 1))
    y = z @ truth.V + truth.b + rng.standard_normal(3) / np.sqrt(truth.eps)
    mean = x @ found.loadings
    latent = (noise + x**2 @ found.loadings_sd**2)[:, :, None]
    variance = predict.number_variances(mean, latent, found.B, found.C, found.noise_variance)
    return ((mean @ found.B[1:] + found.B[0] - y) / np.sqrt(variance)).ravel()


MODELS_WITH_NUMBERS = {
    "SPPCA": SPPCA,
    "SPPCA by likelihood": partial(SPPCA, **LIKELIHOOD),
    "KernelSPPCA": KernelSPPCA,
    "BSDRRegressor": BSDRRegressor,
    "BSDRRegressor by Gibbs sampling": partial(BSDRRegressor, random_state=0, **FEW_DRAWS),
}


def latent_cases():
    """Group, name, function of a generator."""
    for size in (MANY, FEW):
        yield f"PPCA, {size} rows", partial(latents_of_ppca, size)
        yield f"PPCA, {size} rows, 30 % missing", partial(latents_of_ppca, size, gaps=0.3)
        yield f"SPPCA by likelihood given x, {size} rows", partial(latents_of_sppca, size)
        given_y = partial(latents_of_sppca, size, given_y=True)
        yield f"SPPCA by likelihood given x and y, {size} rows", given_y
    linear = partial(KernelSPPCA, kernel="linear")
    kernel = partial(latents_of_sppca, 300, make=linear)
    yield "KernelSPPCA by likelihood, linear kernel, 300 rows", kernel
    yield "PRPCA (paper), 300 rows", partial(latents_of_prpca, 300)


def imputation_cases():
    likelihood = SPPCA(q, **LIKELIHOOD)
    for size in (300, FEW):
        for name, model in (("PPCA", PPCA(q)), ("SPPCA by likelihood", likelihood)):
            yield f"{name}, {size} rows", partial(imputed_by_chance, model, size)
    for relation in ("paper", "filter", "learnt"):
        yield f"PRPCA ({relation}), 300 linked rows", partial(imputed_linked, relation, 300)
    yield "PPCA, high values missing", partial(imputed_high, PPCA(q), 300)


def prediction_cases():
    for name, make in MODELS_WITH_NUMBERS.items():
        for what, rows, sizes in (
            ("planted", planted_numbers, (30, 300)),
            ("diabetes", diabetes, (30, 100)),
        ):
            for labelled in sizes:
                run = partial(predicted, partial(make, q), rows, labelled)
                yield f"{name}, {what}, {labelled} labelled", run


def bayesian_cases():
    """Many small sets, since each has one truth."""
    for what, case in (
        ("loadings", bayesian_loadings),
        ("latent variables", bayesian_latents),
        ("predicted numbers", bayesian_predictions),
    ):
        yield f"variational: {what}", partial(many, partial(case, None), 20)
    drawn = partial(bayesian_loadings, gibbs.Sampling(4, 50, 50))
    yield "Gibbs: loadings", partial(many, drawn, 5)


def many(case, size, rng):
    """The same case so many times."""
    return np.concatenate([case(rng) for _ in range(size)])


GROUPS = {
    "latent variables": latent_cases,
    "imputed values": imputation_cases,
    "predicted numbers": prediction_cases,
    "BSDR on data of its own prior": bayesian_cases,
}


def shares(distances):
    """Of values inside the interval of each level."""
    return [float(np.mean(np.abs(distances) < width)) for width in WIDTHS]


def is_exact(found, size):
    """Whether all shares are within three binomial errors of what they should be."""
    errors = [3 * np.sqrt(level * (1 - level) / size) for level in LEVELS]
    return all(abs(s - p) < e for s, p, e in zip(found, LEVELS, errors, strict=True))


def run(case, repeats):
    """Shares over repeats, each with a seed of its own."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        distances = [case(np.random.default_rng(seed)) for seed in range(repeats)]
    distances = np.concatenate(distances)
    found = shares(distances)
    return {"values": len(distances), "shares": found, "exact": is_exact(found, len(distances))}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--groups", nargs="*", default=list(GROUPS), choices=list(GROUPS))
    options = parser.parse_args()
    path = measure.RESULTS / "calibration_posteriors.json"
    record = json.loads(path.read_text()) if path.exists() else {}
    for group in options.groups:
        cases = {name: run(case, options.repeats) for name, case in GROUPS[group]()}
        for name, found in cases.items():
            print(f"{name:60}", [round(s, 3) for s in found["shares"]], found["exact"], flush=True)
        record[group] = {"repeats": options.repeats, "cases": cases}
        record["machine"] = measure.machine()
        path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
