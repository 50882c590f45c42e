"""What is tested and what it showed: docs/trust.md, from the results of the runs.

    python docs/trust.py            write the page and its figure
    python docs/trust.py --count    count the tests first, into benchmarks/results/suite.json

Every table names the script and the day of its run; what has not been run is said to be so. A
test asks that the page is that of the results.
"""

import argparse
import ast
import json
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "trust.md"
FIGURE = ROOT / "docs" / "_static" / "reliability.svg"
TESTS = ROOT / "tests"
LAYERS = ("linalg", "stats", "inference", "models", "estimators", "displays", "tools")
ENOUGH_RUNS = 20
NOT_RUN = "Not run yet: `{}` has no result here."
PLANTED = TESTS / "benchmarks" / "test_calibration_posteriors.py"
GEWEKE = TESTS / "models" / "bsdr" / "test_gibbs.py"

HEAD = """# What we test and what it showed

This page is written by `docs/trust.py` from results in `benchmarks/results`; each table names its script and its day. A share or a rank
that is off is shown like one that is right, and the last table lists what is known to fail.
"""

LIMITS = (
    (
        "values that are missing because of what they are",
        "intervals of filled values are those of values missing by chance: see the last line of "
        "the table of filled values",
    ),
    (
        "fits to a few dozen rows",
        "posteriors take the fitted parameters as known, so that intervals are somewhat narrow: "
        "see the lines of 30 rows",
    ),
    (
        "variational BSDR",
        'loadings are far less sure than `loadings_sd_` says; take `inference="gibbs"` where '
        "they matter. Predictions and latent variables of rows suffer far less",
    ),
    (
        '`PRPCA(relation="filter")`',
        "has no generative model: its `posterior` is that of smoothed content, and is not in the "
        "tables. Filled values are by a model of rows as they are, and are",
    ),
    (
        '`PRPCA(relation="paper")`',
        "the posterior is as wide for every row as it is on average; by the model it depends on "
        "the links of the row, beyond all measure where alpha I + A is nearly singular",
    ),
    (
        "BSDR, BSDRRegressor and MultinomialProbit on wide sparse rows",
        "hold as many numbers as a dense table has: 3.2 GB for 2,000 rows of 200,000 columns. "
        "PPCA, SPPCA, KernelSPPCA and DCAGM leave sparse rows sparse",
    ),
    (
        "probabilities of classes",
        "with few labels they err by some hundredths, and more on wide sets: see the figure",
    ),
    (
        "rows in single precision",
        "products are in the precision of the rows: where an axis is a thousand times as long as the noise, the noise that is learnt and "
        "log densities begin to be rounding. Pass such rows as float64",
    ),
    (
        "weights above one of few labels, in SPPCA and KernelSPPCA",
        "one occurrence of a row is left out at a time, and what it counts beyond that vouches for it: probabilities are then too sure, "
        "and links that help may be left aside. Divide weights that are no repetitions by the largest",
    ),
    (
        "outliers among rows with gaps",
        "the limits of Q are those of complete rows: usual rows of which half is missing pass them several times as often",
    ),
    (
        "a model that is wrong",
        "intervals hold if the model does: linear, one noise for all columns. On real data see "
        "the lines of diabetes",
    ),
)

REFERENCES = (
    ("pcaMethods {pca_methods} (R)", "PPCA, complete rows", "subspace and scores, to 1e-10"),
    (
        "pcaMethods {pca_methods} (R)",
        "PPCA with gaps",
        "filled values within a fifth of their own error; it holds the mean fixed",
    ),
    ("ppca-py {ppca_py}", "PPCA, complete rows", "covariance to 1e-4, noise to 1e-6"),
    (
        "ppca-py {ppca_py}",
        "PPCA with gaps",
        "its likelihood as it says; ours is higher, since the mean is learnt too",
    ),
    ("scikit-learn PCA", "PPCA", "covariance and precision, up to n / (n - 1)"),
    ("scikit-learn FactorAnalysis", "PPCA", "densities and scores at equal parameters"),
    ("scikit-learn GaussianMixture", "PPCA with d - 1 components", "densities of one Gaussian"),
    ("scikit-learn BayesianRidge", "BSDRRegressor, many rows", "means to .02, deviations to 3 %"),
    (
        "scikit-learn LinearDiscriminantAnalysis",
        "DCAGM, equal covariances",
        "the same classes for 99 % of rows; its start is LDA's subspace",
    ),
)


def read(name):
    """A result, or None."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def short(value, digits=3):
    """A share without its leading zero."""
    text = f"{value:.{digits}f}"
    return text[1:] if text.startswith("0.") else text


def table(header, rows):
    """Lines of a table."""
    lines = [" | ".join(header), "|".join(["---"] * len(header))]
    lines += [" | ".join(map(str, row)) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def ran(script, machine):
    """By what and when, with which versions."""
    packages = ", ".join(f"{name} {machine[name]}" for name in ("numpy", "scipy", "scikit-learn"))
    return f"`{script}`, {machine['date']}, Python {machine['python']}, {packages}."


def ranks():
    """Simulation-based calibration."""
    found = read("sbc_bsdr")
    title = "## Is the sampler of BSDR right?\n\n"
    if found is None:
        return title + NOT_RUN.format("benchmarks/sbc_bsdr.py")
    rows = [
        (
            case["outputs"],
            case["prior"],
            case["simulations"],
            f"{sum(v['passes'] for v in case['quantities'].values())} of {len(case['quantities'])}",
            short(min(v["band"] for v in case["quantities"].values())),
            short(min(v["chi-square"] for v in case["quantities"].values())),
            short(case["quantities"]["log likelihood"]["band"]),
        )
        for case in found["cases"]
    ]
    header = "outputs|prior|simulations|quantities that pass|least p of the band|least p of"
    header = [*f"{header} chi-square|p of the log likelihood".split("|")]
    return (
        f"{title}Parameters are drawn from the prior, outputs from the parameters, and the sampler sees the outputs. Where it draws "
        f"from the posterior, the true value has any rank among {found['draws']} draws equally often. Seven quantities, the log "
        "likelihood among them: a sampler that ignores the outputs fails by it alone. The band of the distribution function of the "
        "ranks is passed above .05 over seven, chi-square above .001 over seven.\n\n"
        f"{table(header, rows)}\n\n{ran('benchmarks/sbc_bsdr.py', found['machine'])} Geweke's test of the same sampler is among the "
        "slow tests, for all kinds of outputs and priors."
    )


def shares():
    """Tables of coverage."""
    found = read("calibration_posteriors")
    title = "## Do intervals hold what they promise?\n\n"
    if found is None:
        return title + NOT_RUN.format("benchmarks/calibration_posteriors.py")
    parts = [
        title
        + "Shares of true values inside intervals of 50, 80 and 95 %. Rows come from the model that is fitted, but for diabetes "
        "and for high values missing. *Within chance*: all three within three binomial errors; errors that rows of one fit share are "
        "not in these."
    ]
    for group, of_group in found.items():
        if group == "machine":
            continue
        rows = [
            (name, case["values"], *map(short, case["shares"]), "yes" if case["exact"] else "no")
            for name, case in of_group["cases"].items()
        ]
        header = (group, "values", "50 %", "80 %", "95 %", "within chance")
        parts.append(table(header, rows))
    parts.append(ran("benchmarks/calibration_posteriors.py", found["machine"]))
    return "\n\n".join(parts)


def reliability():
    """Probabilities of classes."""
    found = read("calibration_curves")
    title = "## Are probabilities of classes right?\n\n"
    if found is None:
        return title + NOT_RUN.format("benchmarks/calibration.py --curves")
    rows = []
    for name, of_set in found["sets"].items():
        errors = [short(calibration_error(of_set[model])) for model in models_of(of_set)]
        rows.append((name, of_set["labels"], *errors))
    models = models_of(next(iter(found["sets"].values())))
    text = (
        f"{title}Rows that the fit has not seen, a few labels a class. Each line is a set; on the dashed line the predicted class "
        "is right as often as its probability says.\n\n"
        "```{image} _static/reliability.svg\n:alt: Reliability curves on ten sets\n:width: 95%\n```\n\n"
    )
    header = ("set", "labels a class", *(f"{model}: calibration error" for model in models))
    return f"{text}{table(header, rows)}\n\n{ran('benchmarks/calibration.py', found['machine'])}"


def models_of(of_set):
    """Names of the models of a set."""
    return [name for name in of_set if name != "labels"]


def calibration_error(counts):
    """Mean distance between right ones and probabilities over bins, by rows."""
    total, right, sure = counts
    return sum(abs(r - s) for r, s in zip(right, sure, strict=True)) / sum(total)


def planted():
    """Faults that tests plant, with the first line of what each does."""
    rows = []
    for path, check in ((PLANTED, "coverage or ranks"), (GEWEKE, "Geweke's test")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            told = (ast.get_docstring(node) if isinstance(node, ast.FunctionDef) else "") or ""
            arguments = [a.arg for a in node.args.args] if told else []
            if arguments == ["monkeypatch"] or "Planted fault" in told:
                rows.append((told.split("Planted fault", 1)[-1].lstrip(":, "), check))
    rows.append(("A sampler that ignores the outputs.", "ranks of the log likelihood"))
    return (
        "## Would these checks notice a mistake?\n\nEach of these faults is planted by a test, which passes where the check fails.\n\n"
        + table(("fault", "noticed by"), rows)
    )


def references():
    """Values of other programs."""
    stored = json.loads((TESTS / "references" / "values.json").read_text(encoding="utf-8"))
    versions = {
        "pca_methods": stored["pcaMethods"]["versions"][0],
        "ppca_py": stored["ppca-py"]["version"],
    }
    rows = [[cell.format(**versions) for cell in row] for row in REFERENCES]
    applied, left = of_scikit_learn()
    return (
        "## Do others find the same?\n\nValues of R and ppca-py are stored with the script that made them "
        "(`tests/references`); those of scikit-learn are computed beside ours.\n\n"
        f"{table(('program', 'model here', 'what agrees'), rows)}\n\n"
        f"Of the tests that scikit-learn has for PCA, {applied} run against PPCA in the units of PCA, {left} do not apply, each with its "
        "reason in `tests/estimators/test_ppca_as_pca.py`."
    )


def of_scikit_learn():
    """How many tests of PCA apply, and how many do not."""
    tree = ast.parse((TESTS / "estimators" / "test_ppca_as_pca.py").read_text(encoding="utf-8"))
    found = {
        node.targets[0].id: len(getattr(node.value, "keys", getattr(node.value, "elts", ())))
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return found["APPLY"] + found["SLOW"], found["LEFT_OUT"]


def mutants():
    """Lines broken one at a time."""
    title = "## Would the suite notice a broken line?\n\n"
    return title + written("mutants", "benchmarks/mutants.py")


def coverage():
    """Branches that tests take."""
    title = "## How much of the code do tests run?\n\n"
    return title + written("coverage", "benchmarks/covering.py --report")


def repeats():
    """The suite again and again, with other seeds and in another order."""
    title, found = "## Do tests fail by chance?\n\n", read("repeats")
    if found is None:
        return title + NOT_RUN.format("benchmarks/repeats.py")
    told = (
        "Every run has seeds of its own, and the tests in an order of its own. Tests were mended "
        "between runs. One holds again when it was repeated twenty times after its last failure, "
        "on later code. Tests *of one sample* state a figure that other samples need not have: "
        "they keep the seeds of generators, and all else is as for the others. Their reasons are "
        "below."
    )
    parts, listed = found["parts"], failures(found["parts"])
    whole = [part for part in parts if not part["what"].endswith("what ever failed")]
    rows = [of_folder(what, whole, listed) for what in sorted({part["what"] for part in whole})]
    missing = [name for name in LAYERS if name not in {row[0] for row in rows}]
    rows += [(name, "", 0, "", "", "", "") for name in missing]
    names = ("tests", "other seeds", "runs", "tests in a run", "of one sample", "ever failed")
    names = (*names, "of them open")
    lines = [f"- `{name}`: {words}" for name, words, is_open in listed if is_open]
    text = "\n\nOpen:\n\n" + "\n".join(lines) if lines else ""
    text += "\n\n" + of_one_sample()
    ran_by = ran("benchmarks/repeats.py", found["machine"])
    return f"{title}{told}\n\n{table(names, rows)}{text}\n\n{ran_by}"


def of_folder(what, parts, listed):
    """A line of the table: the runs of some tests over all states of the code."""
    own = [part for part in parts if part["what"] == what]
    failed = {name for part in own for name in part["failed"]}
    is_open = [name for name, _, is_open in listed if is_open and name in failed]
    runs = sum(part["runs"] for part in own)
    kept = sum(name.startswith(f"tests/{what}/") for name in kept_seeds())
    return what, own[-1]["seeds"], runs, own[-1]["tests"], kept, len(failed), len(is_open)


def kept_seeds():
    """The reason of every test that kept the seeds of generators in a run."""
    parts = read("repeats")["parts"]
    return {name: why for part in parts for name, why in part.get("one_sample", {}).items()}


def of_one_sample():
    """The tests that keep their seeds, all parameters of one together, and why they do."""
    reasons = {}
    for name, reason in kept_seeds().items():
        reasons.setdefault((name.split("[")[0], reason), []).append(name)
    rows = [(f"`{name}`", len(own), reason) for (name, reason), own in sorted(reasons.items())]
    return "Of one sample:\n\n" + table(("test", "times", "why"), rows)


def failures(parts):
    """Every test that ever failed: how often, how often it was run since, and whether it is open."""
    gone = {name for part in parts for name in part.get("gone", ())}
    names = sorted({name for part in parts for name in part["failed"]} - gone)
    return [(name, *history(name, parts)) for name in names]


def history(name, parts):
    """What became of a test, in words, and whether fewer than twenty runs passed since."""
    own = [part for part in parts if holds(part, name)]
    last = max(k for k, part in enumerate(own) if name in part["failed"])
    times = sum(part["failed"].get(name, 0) for part in own)
    runs, since = sum(part["runs"] for part in own), sum(part["runs"] for part in own[last + 1 :])
    return f"failed in {times} of {runs} runs, {since} of them since", since < ENOUGH_RUNS


def holds(part, name):
    """Whether runs had a test, with all seeds changed."""
    has = name in part["names"] if "names" in part else name.startswith(f"tests/{part['what']}")
    return has and part["seeds"] == "all"


def faults():
    """Kills, full disks, lost workers."""
    title = "## Does a fit survive what may happen to it?\n\n"
    return title + written("faults", "benchmarks/faults.py")


def written(name, script):
    """A result that is a table already."""
    found = read(name)
    if found is None:
        return NOT_RUN.format(script)
    return f"{table(found['header'], found['rows'])}\n\n{ran(script, found['machine'])}"


def versions():
    """Oldest and newest packages."""
    title, found = "## With which versions?\n\n", read("versions")
    if found is None:
        return title + NOT_RUN.format("make test-versions")
    names = sorted({name for one in found.values() for name in one["versions"]})
    rows = [
        ("Python", *(one["python"] for one in found.values())),
        *(
            (name, *(one["versions"].get(name) or "none" for one in found.values()))
            for name in names
        ),
        ("tests passed", *(one["tests"].get("passed", 0) for one in found.values())),
        ("tests failed", *(one["tests"].get("failed", 0) for one in found.values())),
        ("tests skipped", *(one["tests"].get("skipped", 0) for one in found.values())),
        ("day", *(one["date"] for one in found.values())),
    ]
    told = (
        "The push suite in environments that `make test-versions` builds; *floor* has the oldest "
    )
    return f"{title}{told}version of every package that is allowed.\n\n{table(('package', *found), rows)}"


def suite():
    """How many tests there are."""
    title, found = "## How much is tested?\n\n", read("suite")
    if found is None:
        return title + NOT_RUN.format("docs/trust.py --count")
    rows = [(layer, *counts) for layer, counts in found["layers"].items()]
    text = f"{title}{table(('layer', 'test functions', 'of them slow'), rows)}\n\nCounted on {found['date']}"
    return text + "; most functions run with several parameters."


def limits():
    """What is known to fail."""
    return "## Known limits\n\n" + table(("where", "what to know"), LIMITS)


def page():
    """The whole page."""
    parts = (ranks, shares, reliability, planted, references, mutants, coverage, repeats)
    parts = (*parts, faults, versions, suite)
    return "\n\n".join([HEAD.rstrip(), *(part() for part in (*parts, limits))]) + "\n"


def count():
    """Test functions of every layer, and how many of them are slow."""
    layers = {}
    for layer in (*LAYERS, "benchmarks", "."):
        files = (TESTS / layer).glob("test_*.py") if layer == "." else (TESTS / layer).rglob("*.py")
        layers["the whole" if layer == "." else layer] = _counted(files)
    record = {"date": datetime.now(UTC).date().isoformat(), "layers": layers}
    (RESULTS / "suite.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _counted(files):
    total = slow = 0
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                total += 1
                slow += any("mark.slow" in ast.unparse(one) for one in node.decorator_list)
    return total, slow


def draw():
    """Reliability curves, a panel a model."""
    found = read("calibration_curves")
    if found is None:
        return
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "gnomon"
    import matplotlib.pyplot as plt

    models = models_of(next(iter(found["sets"].values())))
    figure, axes = plt.subplots(1, len(models), figsize=(9, 4.2), sharey=True)
    for axis, model in zip(axes, models, strict=True):
        axis.plot([0, 1], [0, 1], "--", color="0.5", linewidth=1)
        for name, of_set in found["sets"].items():
            total, right, sure = of_set[model]
            points = [(s / t, r / t) for t, r, s in zip(total, right, sure, strict=True) if t >= 10]
            axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name)
        axis.set(title=model, xlabel="probability of the predicted class", xlim=(0, 1), ylim=(0, 1))
    axes[0].set_ylabel("share that is right")
    axes[-1].legend(fontsize=7, loc="upper left", ncols=2, frameon=False)
    figure.tight_layout()
    figure.savefig(FIGURE, metadata={"Date": None})


def main():
    """Write the page and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", action="store_true")
    if parser.parse_args().count:
        count()
    draw()
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
