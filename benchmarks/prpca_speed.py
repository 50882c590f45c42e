"""Speed and memory of PRPCA against scikit-learn, in the same run.

    python benchmarks/prpca_speed.py [cora] [paper] [filter] [learnt]

Cora (GNOMON_DATA) against PCA by Lanczos of the same matrix; a random graph of 25,000 to 100,000
nodes, mean degree 10, 500 sparse features, against TruncatedSVD of the same content. Times are
CPU seconds of the process, so that other work on the machine counts little.
"""

import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD

sys.path.insert(0, str(Path(__file__).parent))
from gnomon import PRPCA, Links
from papers.data import MissingDataError, load

from measure import describe

RESULTS = Path(__file__).parent / "results"
SIZES = 25_000, 100_000
WAYS = {
    "paper": dict(relation="paper"),
    "filter": dict(relation="filter"),
    "learnt": dict(relation="learnt"),
}


def synthetic(n, seed=0, n_topics=20, d=500, degree=10, words=19):
    """Topics: rows draw most words from their topic, links stay within it four times in five."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(n_topics, size=n)
    members = [np.flatnonzero(topic == t) for t in range(n_topics)]
    source = rng.integers(n, size=n * degree // 2)
    target = rng.integers(n, size=len(source))
    inside = rng.random(len(source)) < 0.8
    for t in range(n_topics):
        chosen = inside & (topic[source] == t)
        target[chosen] = rng.choice(members[t], chosen.sum())
    frequency = rng.dirichlet(np.full(d, 0.05), size=n_topics) * 0.6 + 0.4 / d
    rows = np.repeat(np.arange(n), words)
    columns = np.concatenate(
        [rng.choice(d, words * len(m), p=frequency[t]) for t, m in enumerate(members)]
    )
    order = np.concatenate([np.repeat(m, words) for m in members])
    X = sparse.csr_array((np.ones(len(rows)), (order, columns)), shape=(n, d))
    return X, Links.from_edges(np.column_stack([source, target])[source != target], n_nodes=n)


def best(run, repeats):
    times = []
    for _ in range(repeats):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times)


def measure_one(way, n):
    """One size and way in this process: CPU seconds of the fit and of scikit-learn, peak memory."""
    X, links = synthetic(n)
    svd = best(lambda: TruncatedSVD(20, random_state=0).fit(X), 3)
    model = PRPCA(20, random_state=0, **WAYS[way])
    seconds = best(lambda: model.fit(X, links=links), 2 if way == "learnt" else 3)
    again = best(lambda: TruncatedSVD(20, random_state=0).fit(X), 3)
    embed = best(lambda: model.transform(X, links=links), 1)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return dict(
        way=way,
        n=n,
        seconds=seconds,
        svd=min(svd, again),
        embed=embed,
        peak=peak,
        n_iter=model.n_iter_,
        used=bool(model.links_used_),
        nnz=X.nnz,
        n_links=links.n_links,
    )


def in_a_process(way, n):
    command = [sys.executable, __file__, "--one", way, str(n)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure_cora():
    data = load("cora")
    X, links = data["X"], Links(data["A"])
    peer = best(lambda: PCA(50, svd_solver="arpack", random_state=0).fit(X), 15)
    # With a tolerance of one's own no nodes are held out to find the rounds.
    ways = WAYS | {"learnt, tol=1e-7": dict(relation="learnt", tol=1e-7)}
    models = {way: PRPCA(50, random_state=0, **settings) for way, settings in ways.items()}
    return {
        way: (best(lambda m=model: m.fit(X, links=links), 1 if "learnt" in way else 15), peer)
        for way, model in models.items()
    }


def report(done):
    out = [
        "# PRPCA: speed and memory",
        "",
        f"`python benchmarks/prpca_speed.py`; {describe()}.",
        "",
    ]
    out += [
        "CPU seconds of the fit, of scikit-learn on the same content in the same process, and of",
        "`transform` with links; peak memory of the process; growth from the smallest size.",
        "",
    ]
    if "cora" in done:
        out += ['## Cora, 2708 x 1433, q = 50, against `PCA(svd_solver="arpack")`', ""]
        out += ["| relation | seconds | PCA | ratio |", "|---|---|---|---|"]
        for way, (ours, peer) in done["cora"].items():
            out += [f"| {way} | {ours:.3f} | {peer:.3f} | {ours / peer:.2f} |"]
        out += [""]
    out += ["## Topics with links, 500 sparse features, mean degree 10, q = 20", ""]
    out += ["| relation | nodes | fit | TruncatedSVD | ratio | embed | peak GiB | growth |"]
    out += ["|---|---|---|---|---|---|---|---|"]
    for way in (way for way in WAYS if way in done):
        first = done[way][0]["seconds"]
        out += [
            f"| {way} | {r['n']:,} | {r['seconds']:.2f} | {r['svd']:.2f} | "
            f"{r['seconds'] / r['svd']:.1f} | {r['embed']:.2f} | {r['peak']:.2f} | "
            f"{r['seconds'] / first:.1f} |"
            for r in done[way]
        ]
    return "\n".join(out) + "\n"


def measure(section):
    if section == "cora":
        return measure_cora()
    return [in_a_process(section, n) for n in SIZES]


def main():
    warnings.simplefilter("ignore")
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure_one(sys.argv[2], int(sys.argv[3]))))
        return
    store = RESULTS / "prpca_speed.json"
    RESULTS.mkdir(exist_ok=True)
    for section in sys.argv[1:] or ("cora", *WAYS):
        try:
            result = measure(section)
        except MissingDataError as reason:
            print(f"{section} skipped: {reason}")
            continue
        done = json.loads(store.read_text()) if store.exists() else {}
        done[section] = result
        store.write_text(json.dumps(done, indent=1) + "\n")
        (RESULTS / "prpca_speed.md").write_text(report(done))
        print(section, result, flush=True)


if __name__ == "__main__":
    main()
