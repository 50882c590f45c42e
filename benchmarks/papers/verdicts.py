"""Ours beside the paper's: within two of its standard deviations, better or worse, and why."""

OURS = ("SPPCA", "S2PPCA", "PRPCA", "BSDR", "BSDR gibbs", "BSDR variational", "BSDR columnwise")
# Measures of which less is better.
LESS = ("error", "steps")
VERDICTS = ("within", "better", "worse")
# What was changed to find the cause of a worse figure, the least change first.
VARIANTS = (
    "data scale",
    "with y",
    "noise fixed",
    "noise fixed, with y",
    "1000 EM steps",
    "noise 0.1",
)


def verdict(row):
    """Empty for the methods of others and where the paper has no figure."""
    if "paper" not in row or row["method"] not in OURS:
        return ""
    return judged(row, row)


def judged(row, paper):
    """The verdict on the mean of a row by the figure of another, or of its own."""
    difference = row["ours"] - paper["paper"]
    worse = difference if row["measure"] in LESS else -difference
    # A single split of the paper's has no deviation; ours stands in for it.
    allowed = 1.0 if row["measure"] == "columns kept" else 2 * (paper["paper_sd"] or row["sd"])
    if abs(worse) <= allowed:
        return "within"
    return "worse" if worse > 0 else "better"


def place(row, method):
    return row["table"], row["data"], method, row["size"], row["measure"]


def by_place(rows):
    return {place(row, row["method"]): row for row in rows}


def cause(row, index):
    """Why a row is worse, by what was measured: a variant, or as much for PCA; else empty.

    PCA has no setting: what it differs by in the same cell is due to inputs or protocol, and is
    taken off before the row is judged again.
    """
    for variant in VARIANTS:
        tried = index.get(place(row, f"{row['method']}, {variant}"))
        if tried and judged(tried, row) != "worse":
            return f"{variant}: {tried['ours']:.3f}"
    reference = index.get(place(row, "PCA"))
    if reference and "paper" in reference:
        gap = reference["difference"]
        if judged(row | {"ours": row["ours"] - gap}, row) != "worse":
            return f"PCA differs too: {gap:+.3f}"
    return ""


def tally(rows):
    """Of each method of a paper: figures, verdicts, and how many of the worse have a cause."""
    index, found = by_place(rows), {}
    for row in rows:
        if result := verdict(row):
            entry = found.setdefault(row["method"], dict.fromkeys((*VERDICTS, "explained"), 0))
            entry[result] += 1
            entry["explained"] += result == "worse" and bool(cause(row, index))
    return found
