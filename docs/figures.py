"""Figures that the pages and the README quote, read from benchmarks/results.

`python docs/figures.py` writes the tables of the README and what it says of losses and of noise;
`conf.py` gives the rest to the pages as substitutions. So no quoted figure can be older than the
result it comes from. A test asks that no other figure stands in the README.
"""

import json
import re
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
QUOTED = ("sppca", "kernel", "logistic")


def read(name):
    """A results file."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))


def rows(name):
    """The rows of a table by their first cell."""
    return {row[0]: row[1:] for row in read(name)["rows"]}


def short(value, digits=3):
    """A share without its leading zero."""
    return f"{float(value):.{digits}f}".removeprefix("0")


def of_sppca():
    """Speed of SPPCA and cost of its automatic choice."""
    speed, cost = read("sppca_speed"), rows("supervision_cost")
    text, dense = speed["ng20"], speed["dense"]
    costs = {name: f"{float(row[5]):.2g}" for name, row in cost.items()}
    return {
        "text_ratio": f"{text['ratio to TruncatedSVD']:.2f}",
        "text_rounds": str(text["rounds"]),
        "text_gap": f"{text['relative gap of the likelihood']:.1e}",
        "em_times": f"{text['times faster than EM']:.0f}",
        "em_nats": f"{text['likelihood above that of EM, nats']:.1f}",
        "dense_ratio": f"{dense['ratio to PCA']:.2f}",
        "auto_text": f"{float(cost['ng20 TF-IDF'][5]):.2f}",
        "auto_rows": f"{float(cost['dense 200,000 x 200'][5]):.2f}",
        "auto_orl": costs["orl"],
        "auto_usps": costs["usps"],
        "auto_digits": costs["digits"],
        "auto_digits_seconds": f"{float(cost['digits'][4]):.2f}",
        "digits_fit": f"{1000 * float(cost['digits'][3]):.0f}",
        "usps_fit": f"{1000 * float(cost['usps'][3]):.0f}",
    }


def of_prpca():
    """Speed of PRPCA."""
    speed = read("prpca_speed")
    last = {way: speed[way][-1] for way in ("paper", "filter", "learnt")}
    ratios = {f"{way}_ratio": f"{s['seconds'] / s['svd']:.1f}" for way, s in last.items()}
    small, large = speed["learnt"][0], speed["learnt"][-1]
    ours, theirs = speed["cora"]["paper"]
    planned, plain = (speed["cora"][way][0] for way in ("learnt", "learnt, tol=1e-7"))
    return ratios | {
        "learnt_peak": f"{large['peak']:.1f}",
        "learnt_growth": f"{large['seconds'] / small['seconds']:.1f}",
        "cora_ratio": f"{ours / theirs:.2f}",
        "cora_learnt": f"{planned:.0f}",
        "cora_plain": f"{plain:.0f}",
    }


def of_calibration():
    """Accuracy, log loss and calibration error on unseen rows, means over the tasks."""
    found = rows("calibration_main")
    quoted = {"calibration_tasks": str(len(found) - 1)}
    for name, cell in zip(QUOTED, found["mean"], strict=True):
        for kind, value in zip(("accuracy", "loss", "error"), cell.split(" / "), strict=True):
            quoted[f"{name}_{kind}"] = short(value)
    worst, excess = max(_losses_of_kernel(found).items(), key=lambda item: item[1])
    return quoted | {"worst_kernel_task": worst, "worst_kernel_loss": signed(excess)}


def _losses_of_kernel(found):
    """How far KernelSPPCA's log loss is above that of the peer, by task."""
    kernel, peer = QUOTED.index("kernel"), QUOTED.index("logistic")
    losses = {
        task: [float(cell.split(" / ")[1]) for cell in cells] for task, cells in found.items()
    }
    return {task: own[kernel] - own[peer] for task, own in losses.items()}


def of_intervals():
    """Least and largest share of values that 90 % intervals hold, over the sets."""
    found, quoted = rows("intervals"), {}
    for n in (10, 30, 100):
        cells = [row for name, row in found.items() if name.endswith(f", {n}")]
        for place, model in ((0, "intervals"), (2, "likelihood")):
            shares = [float(row[place]) for row in cells]
            quoted[f"{model}_{n}"] = f"{short(min(shares), 2)} to {short(max(shares), 2)}"
    return quoted


# The columns of benchmarks/results/sppca_probit_2 and _10.
PROBIT = ("probit", "codes", "alone", "default")


def of_probit():
    """Accuracy, log loss and calibration error by likelihood of classes, and coverage of z."""
    shares = [float(share) for row in rows("sppca_probit_coverage").values() for share in row]
    quoted = {"probit_coverage": f"{short(min(shares))} to {short(max(shares))}"}
    for q in (2, 10):
        found = rows("sppca_probit_" + str(q))
        for labels in (2, 5, 20):
            for name, cell in zip(PROBIT, found[f"mean, {labels}"], strict=True):
                figures = [short(value) for value in cell.split(" / ")[:3]]
                quoted[f"{name}_{q}_{labels}"] = " / ".join(figures)
        tasks = {name: row for name, row in found.items() if not name.startswith("mean")}
        losses = [[float(cell.split(" / ")[1]) for cell in row] for row in tasks.values()]
        for place, name in ((1, "wins"), (2, "alone")):
            wins = sum(row[0] < row[place] for row in losses)
            quoted[f"probit_{name}_{q}"] = f"{wins} of {len(losses)} tasks"
    seconds = [float(cell.split(" / ")[4]) for cell in found["mean"]]
    names = list(dict.fromkeys(name.split(",")[0] for name in tasks))
    quoted["probit_sets"] = ", ".join(names[:-1]) + f" and {names[-1]}"
    return quoted | {"probit_seconds": f"{seconds[0] / seconds[1]:.0f}"}


def of_compare():
    """What `compare` recommends and prints, against rows that were never shown."""
    found = read("compare_honest")["summary"]
    names = {
        "recommended": "truth of the recommended",
        "always_kernel": "truth of KernelSPPCA",
        "best_score": "truth of the best score",
        "hindsight": "truth of the best in hindsight",
        "coverage": "coverage of the 95 % interval",
        "below": "truth below the interval",
    }
    biases = {"printed_bias": "optimism of what is printed", "score_bias": "optimism of the score"}
    return (
        {"comparisons": str(found["comparisons"])}
        | {f"compare_{key}": short(found[name]) for key, name in names.items()}
        | {f"compare_{key}": f"{found[name]:+.3f}" for key, name in biases.items()}
    )


def of_labelling():
    """Labels needed as a share of what random rows need, and what a session says of itself."""
    needed, said = rows("labelling"), rows("labelling_progress")
    asked = {
        "ours": "representative",
        "logistic": "logistic regression, margin",
        "typiclust": "scikit-activeml TypiClust",
        "falcun": "scikit-activeml Falcun",
    }
    return (
        {f"needed_{name}": short(needed[who][-3], 2) for name, who in asked.items()}
        | {"needed_draws": str(needed["representative"][0])}
        | {"needed_worst": short(needed["representative"][-1], 2)}
        | {
            f"progress_{n}": short(said[80][i])
            for n, i in (("truth", 1), ("cv", 2), ("expected", 3))
        }
        | {
            "progress_flat": short(_weighted(said, 7)),
            "progress_most": short(max(float(row[8]) for row in said.values() if row[8])),
        }
    )


def of_label_page():
    """Rows that a label moves, what chunks are worth, and how fast the labelling page is."""
    moves = {"kept": [], "chosen anew": []}
    for _, start, *shares, _ in read("labelling_moves")["rows"]:
        moves[start] += map(float, shares)
    refits = {}
    for size, _, least, *_ in read("labelling_refits")["rows"]:
        refits.setdefault(size, []).append(int(least))
    small, large = refits.values()
    dragged, _, moving, *_ = rows("label_page")["100,000"]
    chunks = rows("sppca_chunks")
    return {
        "moved_kept": f"{100 * sum(moves['kept']) / len(moves['kept']):.0f}",
        "moved_anew": f"{100 * sum(moves['chosen anew']) / len(moves['chosen anew']):.0f}",
        "refit_small": f"{min(small)} to {max(small)}",
        "refit_large": f"{min(large)} to {max(large)}",
        "frame_dragged": f"{float(dragged):.0f}",
        "frame_moving": f"{float(moving):.0f}",
        "chunks_tasks": str(len(chunks) - 1),
        "chunks_sppca": short(chunks["mean"][1]),
        "chunks_dcagm": short(chunks["mean"][4]),
    }


def _weighted(said, place):
    """Mean of a column over the sessions that were said to be flat."""
    flat = [(int(row[5]), float(row[place])) for row in said.values() if row[place]]
    return sum(n * value for n, value in flat) / sum(n for n, _ in flat)


def of_sizes():
    """What two, ten and a chosen number of components are worth."""
    cells = [cell.removesuffix(" s").split(" / ") for cell in rows("defaults_sizes")["mean"]]
    quoted = {"auto_times": f"{float(cells[2][2]) / float(cells[0][2]):.0f}"}
    for name, (predicted, near, _) in zip(("two", "ten", "auto"), cells, strict=True):
        quoted |= {f"predict_{name}": short(predicted), f"near_{name}": short(near)}
    return quoted


def of_pictures():
    """Errors of the nearest labelled row in the plane, means over the tasks, and by kinds."""
    found = read("pictures")
    mean = dict(zip(found["header"][1:], map(short, rows("pictures")["mean"]), strict=True))
    names = {"sppca": "SPPCA in 2", "layout": "layout", "umap": "UMAP", "pca": "PCA in 2"}
    tasks = rows("pictures")["tasks ahead of UMAP"][0].split()[-1]
    quoted = {f"picture_{key}": mean[name] for key, name in names.items()}
    more = {"kinds_table": kinds_table(), "kinds_losses": kinds_losses()}
    return quoted | {"picture_tasks": tasks} | more


# What the table of kinds shows of benchmarks/results/kinds.json: a heading, and the columns whose
# figures stand under it.
KINDS_SHOWN = {
    "map of 5: SPPCA / PCA / LDA / PLS": ("SPPCA", "PCA", "LDA", "PLS"),
    "picture: layout / UMAP / UMAP with labels": ("layout", "UMAP", "UMAP with labels"),
    "predicted: SPPCA / logistic regression": ("SPPCA predicts", "logistic regression"),
}
KINDS_WORST = {
    "SPPCA less PCA, worst": "the map of SPPCA against PCA's",
    "layout less UMAP, worst": "the layout against UMAP's picture",
    "SPPCA less logistic, worst": "SPPCA's predictions against logistic regression's",
}


def kinds_table():
    """Median errors by kinds of data, and the worst tasks."""
    found = read("kinds")
    heads = ["kind of data (tasks)", *KINDS_SHOWN, "worst task: map / picture / predicted"]
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for row in found["rows"]:
        cell = dict(zip(found["header"], row, strict=True))
        groups = [
            " / ".join(short(cell[f"{name}, median"]) for name in names)
            for names in KINDS_SHOWN.values()
        ]
        worst = " / ".join(signed(cell[name]) for name in KINDS_WORST)
        lines.append(f"| {cell['kind']} ({cell['tasks']}) | {' | '.join(groups)} | {worst} |")
    return "\n".join(lines)


def signed(value):
    """A difference of shares with its sign, without the leading zero."""
    return f"{float(value):+.3f}".replace("0.", ".", 1)


def kinds_losses():
    """Where a peer is ahead in the median, and the worst tasks of all."""
    found = read("kinds")
    pairs = (("SPPCA", "PCA"), ("SPPCA", "LDA"), ("SPPCA", "PLS"), ("layout", "UMAP"))
    behind: dict[str, list[str]] = {}
    for row in found["rows"][:-1]:
        cell = dict(zip(found["header"], row, strict=True))
        for ours, peer in (*pairs, ("SPPCA predicts", "logistic regression")):
            gap = float(cell[f"{ours}, median"]) - float(cell[f"{peer}, median"])
            if gap > 0:
                pair = f"{peer} is ahead of {_named(ours)}"
                behind.setdefault(pair, []).append(f"on {cell['kind']} by {short(gap)}")
    cell = dict(zip(found["header"], found["rows"][-1], strict=True))
    worst = [f"{words} {signed(cell[name])}" for name, words in KINDS_WORST.items()]
    said = [f"{pair} {' and '.join(where)}" for pair, where in behind.items()]
    medians = f"In the median {', '.join(said)}." if behind else "In no kind in the median."
    return f"{medians} In the worst single task the errors differ by: {', '.join(worst)}."


def _named(method):
    return "the layout" if method == "layout" else method


def result_table(name):
    """A table of the results as a page shows it."""
    found = read(name)
    lines = [found["header"], ["---"] * len(found["header"]), *found["rows"]]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def substitutions():
    """What the pages may quote, by name."""
    fits = of_sppca() | of_prpca() | of_sizes() | of_labelling() | of_label_page() | of_probit()
    fits |= {"onnx_table": result_table("onnx_equality")}
    return fits | of_calibration() | of_compare() | of_intervals() | of_pictures()


def ranks_of_dcagm():
    """Average rank of each method by nearest neighbour over the sets, ours by the defaults."""
    found = read("dcagm_accuracy")
    ranks = []
    for name, splits in found["protocol"].items():
        default = found["defaults"][name]
        values = {m: mean(split[m][0] for split in splits) for m in splits[0] if "DCA" not in m}
        values |= {m: mean(split[m][0] for split in default) for m in default[0]}
        ranks.append({m: _rank(value, values.values()) for m, value in values.items()})
    return {m: f"{mean(own[m] for own in ranks):.1f}" for m in ranks[0]}


def _rank(value, others):
    """1 is the highest; equal ones share their places."""
    above, same = (sum(test(other) for other in others) for test in (value.__lt__, value.__eq__))
    return above + (same + 1) / 2


def claims():
    """What the README says: the task, ours, a peer's in the same run, the name of the result."""
    linked = [_labels_and_links(), _linked()]
    labels = [_few_labels(), _labels_needed()]
    return [*labels, *_unsupervised(), *_with_labels(), _probabilities(), *linked]


def _few_labels():
    names = ("PCA", "whitened", "LDA", "PLS", "likelihood", "auto")
    mean = dict(zip(names, map(short, rows("supervision_main")["mean"][:6]), strict=True))
    return (
        "error of the nearest labelled row, 2 to 5 labels a class, ten sets (mean of 29 cells)",
        f"SPPCA {mean['auto']}",
        f"PCA {mean['PCA']}, LDA with shrinkage {mean['LDA']}, PLS {mean['PLS']}",
        "supervision_main",
    )


def _labels_needed():
    found = of_labelling()
    return (
        "labels to 95 % of the accuracy with all of them, ten sets, of those that random rows need",
        f"`gnomon.suggest` with SPPCA {found['needed_ours']}",
        f"logistic regression by margin {found['needed_logistic']}, "
        f"scikit-activeml {min(found['needed_typiclust'], found['needed_falcun'])}",
        "labelling",
    )


def _probabilities():
    found = of_calibration()
    both = {name: f"{found[f'{name}_accuracy']} / {found[f'{name}_loss']}" for name in QUOTED}
    return (
        f"classes of unseen rows, 2 to 20 labels a class, {found['calibration_tasks']} tasks: "
        "accuracy / log loss",
        f"SPPCA {both['sppca']}, KernelSPPCA {both['kernel']}",
        f"logistic regression on 20 principal components {both['logistic']}",
        "calibration_main",
    )


def _labels_and_links():
    _, sgc, _, content, both, _ = map(short, rows("links")["cora, citations, 20"])
    return (
        "classes of linked papers (Cora), 20 labels a class",
        f"SPPCA with links {both}, without {content}",
        f"logistic regression on content smoothed over the links (SGC) {sgc}",
        "links",
    )


def _unsupervised():
    peers = {what: float(row[1]) for what, row in rows("ppca_peers").items()}
    lost = "the same: energy lost against the best subspace, "
    time = peers["sparse text, q = 20: time over TruncatedSVD(n_iter=5)"]
    error = peers["digits, 20 % removed, q = 15: RMSE of imputed values"]
    yield (
        "digits with 20 % of the pixels removed, error of imputed values",
        f"PPCA {error:.2f} in {peers['the same: time over ppca-py']:.2g} of the time",
        f"ppca-py {peers['the same: RMSE of ppca-py']:.2f}",
        "ppca_peers",
    )
    yield (
        "sparse text 18,820 x 29,122, 20 components",
        f"PPCA in {time:.2f} of the time, {peers[lost + 'ours']:.0e} of the energy lost",
        f"TruncatedSVD(n_iter=5), {peers[lost + 'TruncatedSVD']:.0e} lost",
        "ppca_peers",
    )


def _with_labels():
    rank, rivals = ranks_of_dcagm(), ("LDA+RCA", "NCA", "LDA", "PCA")
    yield (
        "the same with 5 labels a class, by likelihood",
        f"SPPCA in {of_sppca()['text_ratio']} of the time",
        "TruncatedSVD(n_iter=5)",
        "sppca_speed",
    )
    yield (
        "accuracy with 20 % labelled, two dimensions, six sets: average rank",
        f"SDCA-GM {rank['SDCA-GM']}, DCA-GM {rank['DCA-GM']}",
        ", ".join(f"{name} {rank[name]}" for name in sorted(rivals, key=rank.get)),
        "dcagm_accuracy",
    )


def _linked():
    cells = read("prpca_accuracy")["citations"]["cora"]["cells"]
    pca, paper, _, filtered = (short(mean) for mean, _ in cells[:4])
    return (
        "linked text (Cora), 50 dimensions, linear SVM",
        f"PRPCA {paper}, its filter {filtered}",
        f"PCA {pca}",
        "prpca_accuracy",
    )


def table():
    """The table of the README."""
    lines = [f"| {' | '.join(cells)} | `{result}` |" for *cells, result in claims()]
    heads = "| measured here | gnomon | peer, in the same run | in `benchmarks/results` |"
    return "\n".join((heads, "|---|---|---|---|", *lines))


LOSSES = """Where it does not win is there as well: `"auto"` takes {seconds} s on digits, where a
fit at a given strength takes {fit} ms (`supervision_cost`); of the relations of PRPCA the graph
filter classifies better than the learnt model on {filter} (`prpca_accuracy`). {sgc} (`links`)."""


def losses_elsewhere():
    """What gnomon does not win besides: time of "auto", relations, links."""
    found = of_sppca()
    times = {"seconds": found["auto_digits_seconds"], "fit": found["digits_fit"]}
    return LOSSES.format(**times, filter=_filter_wins(), sgc=_sgc_wins())


def _filter_wins():
    found = read("prpca_accuracy")
    place = {name: found["columns"].index(name) for name in ("filter", "learnt")}
    cells = [own["cells"] for part in ("citations", "web") for own in found[part].values()]
    ahead = sum(own[place["filter"]][0] > own[place["learnt"]][0] for own in cells)
    return f"{ahead} of {len(cells)} sets"


def _sgc_wins():
    """Where logistic regression on smoothed content is ahead."""
    parts = []
    for graph in ("citations", "co-links", "hyperlinks"):
        cells = [row for name, row in rows("links").items() if graph in name]
        gaps = [float(row[1]) - float(row[4]) for row in cells]
        ahead = [gap for gap in gaps if gap > 0]
        most = f", by up to {short(max(ahead))}" if ahead else ""
        parts.append(f"on {len(ahead)} of {len(gaps)} tasks with {graph}{most}")
    return f"With 5 or 20 labels a class SGC is ahead of SPPCA with links {', '.join(parts)}"


NOISE = """Its axes are linear where UMAP is not: on data whose classes lie on curved sheets, as
the texts and digits above, a neighbour map of the rows will separate more; `layout="neighbours"`
draws all of its dimensions in one plane. What gnomon gives instead is a map that is the same for
new rows and that has error bars. Labels that mean nothing should not look as if they did. How
much better than chance the nearest other labelled row finds the class on pure noise, in the mean
of {cases} cases (`supervision_noise_models`): {words}. The automatic strength of SPPCA sees
through such labels more often than not; discriminative maps do not, here as elsewhere. So judge a
map by rows whose labels were left out, as `gnomon.compare` does beside a shuffled-label control."""
NOISE_MAPS = (
    "SPPCA",
    "KernelSPPCA",
    "BSDR",
    "DCAGM",
    "LDA with shrinkage",
    "NCA",
    "UMAP with labels",
)


def noise_words():
    """What maps make of labels that mean nothing: the excess over chance among labelled rows."""
    found = rows("supervision_noise_models")
    chance = [float(cell.split(" / ")[1]) for cell in found["chance"]]
    words = [f"{name} {_excess(found[name], chance)}" for name in NOISE_MAPS]
    return NOISE.format(cases=len(chance), words=", ".join(words))


def _excess(cells, chance):
    gaps = [float(cell.split(" / ")[1]) - c for cell, c in zip(cells, chance, strict=True)]
    return signed(sum(gaps) / len(gaps))


def main():
    """Write the tables into the README, and where gnomon loses before them."""
    readme = ROOT / "README.md"
    text = readme.read_text(encoding="utf-8")
    for start, new in readme_parts():
        old = re.search(rf"^{re.escape(start)}.*?(?=\n\n)", text, re.M | re.S)
        text = text[: old.start()] + new + text[old.end() :]
    readme.write_text(text, encoding="utf-8")


def readme_parts():
    """Parts of the README that are written here: how each begins, and its text."""
    first = "**Where it loses"
    return (
        (first, f"{first}, by kinds of data.** {kinds_losses()}"),
        ("| kind of data", kinds_table()),
        ("| measured here", table()),
        ("Where it does not win", losses_elsewhere()),
        ("Its axes are linear", noise_words()),
    )


if __name__ == "__main__":
    main()
