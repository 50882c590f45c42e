"""Sentences of docs/reproduction that need numbers: each from the rows of a results file."""

from statistics import mean

from benchmarks.papers.verdicts import VARIANTS, by_place, counts, judged, place, reason, verdict

NOT_MEASURED = "not measured"
SIZES = (5, 10, 20)
MEASURES = ("F1 macro", "F1 micro", "AUC")


def yytkw06(rows):
    index = by_place(rows)
    return {
        "whitened": _size(gaps(rows, "Table 2", "S2PPCA", "PCA whitened"), ".4f"),
        "variants": variants(rows, index),
        "text": _signed([r["difference"] for r in printed(rows, ("tdt2", "ng20"), "PCA")]),
        "text_labelled": _signed(less_printed(rows, index, ("tdt2", "ng20"))),
        "rcv1": _signed([r["difference"] for r in printed(rows, ("rcv1",), "PCA")]),
        "rcv1_labelled": _signed(less_printed(rows, index, ("rcv1",))),
        "share": good_by_set(rows, index, "s = 0.15"),
        "beyond": worse_by_set(rows, index, "out of reach"),
        "open": worse_by_set(rows, index, "not found"),
        "bounds": bounds(index, "yeast"),
        "full": _size([r["difference"] for r in printed(rows, ("yeast",), "FULL")]),
        "classifiers": classifiers(rows, index),
        "auto": automatic(rows, index),
        "lda": below(rows, "LDA"),
        "pca": below(rows, "PCA"),
        "checks": checks(rows),
        "marked": kept_values(rows),
        "toy": toy(rows),
    }


def lyz09(rows):
    above = gaps(rows, "Figure 4", "PRPCA", "PCA")
    return {
        "above": f"{sum(gap > 0 for gap in above)} of {len(above)}",
        "gain": _signed(above),
        "smoothed": _signed(gaps(rows, "Figure 5", "PRPCA smoothed", "PRPCA")),
        "filter": _signed(gaps(rows, "Figure 5", "PRPCA filter", "PRPCA")),
        "cora": averages(rows, "Figure 5", "cora"),
        "webkb": averages(rows, "Figure 5", "webkb"),
        "steps": steps(rows),
        "alpha": _range(rows, "alpha"),
        "gamma": _range(rows, "gamma"),
        "zero": _from_zero(rows),
        "books": averages(rows, "Table 3", ""),
    }


def g13(rows):
    timed = {place(r, r["method"])[:-1]: r.get("seconds", 0) for r in rows}
    return {
        "repeat": f"{sum(s for cell, s in timed.items() if cell[0] == 'Figure 2') / 3600:.1f}",
        "planes": "\n".join(_plane(rows, name) for name in ("vowel_vj", "mfeat", "usps")),
        **_convergence(rows),
        **_retrieval(rows),
    }


def _convergence(rows):
    """Steps of both solvers of Figure 7, and the bounds that they reach."""
    part = [r for r in rows if r["table"] == "Figure 7"]

    def of(method, measure):
        return [r["ours"] for r in part if (r["method"], r["measure"]) == (method, measure)]

    bounds = [_text(of(f"BSDR {way}", "bound"), ".0f") for way in ("as printed", "accelerated")]
    return {
        "printed": _text(of("BSDR as printed", "steps"), ".0f"),
        "steps": _text(of("BSDR accelerated", "steps"), ".0f"),
        "bounds": " and ".join(bounds),
    }


def _retrieval(rows):
    """Average precision of BSDR, of its best rival and of all features."""
    part = [r for r in rows if (r["table"], r["measure"]) == ("Table IV", "average precision")]
    found = {m: [r["ours"] for r in part if r["method"] == m] for m in {r["method"] for r in part}}
    ours, features = found.pop("BSDR", []), found.pop("MNP", [])
    best = max(found, key=lambda method: mean(found[method]), default=None)
    rival = NOT_MEASURED if best is None else f"{best} {mean(found[best]):.3f}"
    return {"ours": _text(ours, ".3f"), "rival": rival, "features": _text(features, ".3f")}


def _range(rows, parameter):
    """Largest less smallest accuracy over the values of a parameter, mean over the sets."""
    part = [row for row in rows if row["table"] == parameter]
    by_set = [[r["ours"] for r in part if r["data"] == name] for name in {r["data"] for r in part}]
    return _text([max(values) - min(values) for values in by_set], ".3f")


def _from_zero(rows):
    """Accuracy with gamma = 0 less that with 1e-6."""
    part = {(r["data"], r["size"]): r["ours"] for r in rows if r["table"] == "gamma"}
    pairs = [(part[name, 0.0], part.get((name, 1e-6))) for name, size in part if size == 0.0]
    return _signed([at - near for at, near in pairs if near is not None])


def gaps(rows, table, first, second):
    """Differences of two methods over the cells of a table that have both."""
    part = by_place(row for row in rows if row["table"] == table)
    pairs = [(row, part.get(place(row, second))) for row in part.values() if row["method"] == first]
    return [row["ours"] - other["ours"] for row, other in pairs if other]


def printed(rows, names, method):
    return [r for r in rows if r["data"] in names and r["method"] == method and "paper" in r]


def less_printed(rows, index, names):
    """PCA of the labelled rows less the figures that the paper has for PCA."""
    pairs = [(r, index.get(place(r, "PCA, labelled rows"))) for r in printed(rows, names, "PCA")]
    return [found["ours"] - row["paper"] for row, found in pairs if found]


def averages(rows, table, start):
    """The mean of each method of a table over data sets whose names start so, best first."""
    part = [row for row in rows if row["table"] == table and row["data"].startswith(start)]
    found = {m: [r["ours"] for r in part if r["method"] == m] for m in {r["method"] for r in part}}
    order = sorted(found, key=lambda method: -mean(found[method]))
    return ", ".join(f"{method} {mean(found[method]):.3f}" for method in order)


def variants(rows, index):
    """Of each change to the two models: how many figures are then not worse, and how near."""
    heads = "".join(f" | {m}: not worse | distance" for m in ("SPPCA", "S2PPCA"))
    lines = [f"| change{heads} |", "|---" * 5 + "|"]
    for variant in ("none", *VARIANTS[:-1]):
        cells = [_near(rows, index, model, variant) for model in ("SPPCA", "S2PPCA")]
        lines.append(f"| {variant} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _near(rows, index, model, variant):
    """Count of figures not worse than the paper's, and mean distance in its deviations."""
    pairs = tried_pairs(rows, index, model, variant)
    good = sum(judged(tried, row) != "worse" for row, tried in pairs)
    far = [abs(tried["ours"] - row["paper"]) / row["paper_sd"] for row, tried in pairs]
    return f"{good} of {len(pairs)} | {mean(far):.1f}" if pairs else " | "


def tried_pairs(rows, index, model, variant):
    """Printed rows of a model with those of a change to it."""
    name = model if variant == "none" else f"{model}, {variant}"
    own = [r for r in rows if r["method"] == model and "paper" in r and counts(r)]
    pairs = [(row, index.get(place(row, name))) for row in own]
    return [(row, tried) for row, tried in pairs if tried]


def good_by_set(rows, index, variant):
    """How many figures of S2PPCA a change leaves not worse, by data set."""
    found = {}
    for row, tried in tried_pairs(rows, index, "S2PPCA", variant):
        found.setdefault(row["data"], []).append(judged(tried, row) != "worse")
    return ", ".join(f"{name} {sum(good)} of {len(good)}" for name, good in found.items())


def worse_by_set(rows, index, why):
    """The worse figures with this reason, by data set and method."""
    found = {}
    for row in sorted(filter(counts, rows), key=lambda row: row["size"]):
        if verdict(row) == "worse" and reason(row, index)[0] == why:
            figure = f"{row['measure']} at {row['size']}"
            found.setdefault((row["data"], row["method"]), []).append(figure)
    parts = [f"{m} on {d} ({', '.join(figures)})" for (d, m), figures in sorted(found.items())]
    return "; ".join(parts) if parts else "none"


def bounds(index, name):
    """The figures of S2PPCA on a set beside those of fits that are told all labels."""
    told = [f"all labels{noise}{y}" for noise in ("", ", noise fixed") for y in ("", ", with y")]
    heads = "".join(f" | {measure}, {q}" for q in SIZES for measure in MEASURES)
    lines = [f"| fit{heads} |", "|---" * (1 + len(SIZES) * len(MEASURES)) + "|"]
    for title, method, column in (
        ("the paper's", "S2PPCA", "paper"),
        ("ours", "S2PPCA", "ours"),
        *((fit, f"S2PPCA, {fit}", "ours") for fit in told),
    ):
        keys = [("Table 3", name, method, q, measure) for q in SIZES for measure in MEASURES]
        cells = [f"{index[key][column]:.3f}" if key in index else "" for key in keys]
        lines.append(f"| {title} | {' | '.join(cells)} |")
    return "\n".join(lines)


def classifiers(rows, index):
    """How many figures on Yeast are within by each change to the SVM: of others, of S2PPCA."""
    part = [r for r in rows if (r["table"], r["data"]) == ("Check", "yeast")]
    changes = dict.fromkeys(row["method"].split(", ", 1)[1] for row in part)
    lines = ["| change of the SVM | FULL, PCA and PLS: within | S2PPCA: within |", "|---|---|---|"]
    for change in ("none", *changes):
        counts = [_within(index, names, change) for names in (("FULL", "PCA", "PLS"), ("S2PPCA",))]
        lines.append(f"| {change} | {' | '.join(counts)} |")
    return "\n".join(lines)


def _within(index, methods, change):
    found = []
    for row in index.values():
        if row["data"] == "yeast" and row["method"] in methods and "paper" in row:
            check = "Check", *place(row, f"{row['method']}, {change}")[1:]
            tried = row if change == "none" else index.get(check)
            found += [judged(tried, row) == "within"] if tried else []
    return f"{sum(found)} of {len(found)}"


def automatic(rows, index):
    """How often the library's default is at least as good as the paper's S2PPCA."""
    pairs = [(r, index.get(place(r, "SPPCA auto"))) for r in rows if r["method"] == "S2PPCA"]
    pairs = [(r, auto) for r, auto in pairs if auto and "paper" in r and counts(r)]
    good = sum(judged(auto, r) != "worse" for r, auto in pairs)
    better = sum(judged(auto, r) == "better" for r, auto in pairs)
    return f"{good} of {len(pairs)} figures ({better} better beyond two standard errors)"


def below(rows, rival):
    """How often the library's default has the lower error."""
    found = gaps(rows, "Table 2", "SPPCA auto", rival)
    return f"{sum(gap < 0 for gap in found)} of {len(found)}"


def checks(rows):
    part = [row for row in rows if row["table"] == "Check" and row["measure"] == "error"]
    lines = ["| images | axes | 5 | 10 | 20 |", "|---|---|---|---|---|"]
    for data, method in dict.fromkeys((row["data"], row["method"]) for row in part):
        own = {r["size"]: r["ours"] for r in part if (r["data"], r["method"]) == (data, method)}
        cells = " | ".join(f"{own[q]:.3f}" for q in SIZES)
        lines.append(f"| {data} | {method} | {cells} |")
    return "\n".join(lines) if part else NOT_MEASURED


def kept_values(rows):
    """Sets of Table 2 with the values of splits, and the least number of them."""
    found = {}
    for row in rows:
        if row["table"] == "Table 2" and row["method"] in ("PCA", "LDA", "PLS", "SPPCA", "S2PPCA"):
            found.setdefault(row["data"], []).append(len(row.get("values", ())))
    kept = {name: min(counts) for name, counts in found.items() if min(counts) > 1}
    return ", ".join(f"{name} {least}" for name, least in kept.items()) or NOT_MEASURED


def toy(rows):
    part = [row for row in rows if row["table"] == "Figure 2"]
    return ", ".join(f"{r['method']} with {r['data']} {r['ours']:.0f}°" for r in part)


def steps(rows):
    """Accuracy against EM steps, by data set."""
    part = sorted((r for r in rows if r["table"] == "Figure 2"), key=lambda r: r["size"])
    lines = []
    for data in sorted({row["data"] for row in part}):
        own = ", ".join(f"{r['size']}: {r['ours']:.3f}" for r in part if r["data"] == data)
        lines.append(f"{data} {own}")
    return "; ".join(lines) if lines else NOT_MEASURED


def _plane(rows, name):
    """BSDR and its best rival in two dimensions."""
    part = [r for r in rows if (r["table"], r["data"], r["size"]) == ("Figure 2", name, 2)]
    part = {r["method"]: r["ours"] for r in part if r["measure"] == "MNP accuracy"}
    own, other = part.pop("BSDR", None), part.pop("BSDR, noise 0.1", None)
    if not (part and own and other):
        return f"* {name}: {NOT_MEASURED}."
    best = max(part, key=part.get)
    rival = f"the best rival {best} {part[best]:.3f} ({own - part[best]:+.3f})"
    return f"* {name}: BSDR {own:.3f} (with noise 0.1 {other:.3f}), {rival}."


def _text(values, style):
    return format(mean(values), style) if values else NOT_MEASURED


def _size(values, style=".3f"):
    return _text([abs(value) for value in values], style)


def _signed(values):
    return _text(values, "+.3f")
