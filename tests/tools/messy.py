"""Six tables as people have them, each written into a folder beside the truth about it.

Every generator takes a folder and a seed and returns the path of the table and a dict: ``target``
(a name or a list of them) and ``kind``, ``y`` (the whole truth) and ``labelled`` (a mask), ``id``
with the ``ids``, ``values`` (columns of numbers as they should be read, NaN in the gaps),
``dates`` (as datetime64), ``options`` (what `gnomon.read_table` must be told), and what else is
special.
"""

from pathlib import Path

import numpy as np


def clinic(folder, *, n=300, seed=0):
    """Patients: gaps by several words, limits of detection, the code 99, dates dd/mm/yyyy."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    ids = np.array([f"P{i + 1:04d}" for i in rng.permutation(n)], dtype=object)
    days = np.datetime64("2021-01-01") + rng.integers(700, size=n)
    # A few patients are enough to decide which number is the day.
    days[:3] = np.array(["2021-03-25", "2021-11-30", "2022-01-17"], dtype="M8[D]")
    age = np.clip(rng.normal(52, 12, n).round(), 20, 83)
    sodium = (138 + 3 * kind + rng.normal(0, 2, n)).round(1)
    potassium = (4.2 - 0.4 * kind + rng.normal(0, 0.3, n)).round(2)
    crp = np.exp(rng.normal(0.4 + kind, 1.0)).round(2)
    bmi = (24 + kind + rng.normal(0, 3, n)).round(1)
    ward = np.array(["A", "B", "none"], dtype=object)[(kind + rng.integers(2, size=n)) % 3]
    smoker = np.where(rng.random(n) < 0.3 + 0.2 * (kind == 1), "yes", "no")
    names = np.array(["healthy", "mild", "severe"], dtype=object)
    labelled = rng.random(n) < 0.4
    cells = {
        "patient": ids,
        "visit": [f"{d.day:02d}/{d.month:02d}/{d.year}" for d in days.tolist()],
        "age": [f"{a:.0f}" for a in age],
        "sodium": [f"{v:.1f}" for v in sodium],
        "potassium": [f"{v:.2f}" for v in potassium],
        "crp": [f"{v:.2f}" if v >= 0.5 else "<0.5" for v in crp],
        "bmi": [f"{v:.1f}" for v in bmi],
        "ward": ward,
        "smoker": smoker,
        "diagnosis": np.where(labelled, names[kind], ""),
    }
    values = {"age": age.copy(), "sodium": sodium, "potassium": potassium, "bmi": bmi}
    values["crp"] = np.where(crp >= 0.5, crp, 0.25)
    words = {
        "sodium": [".", "-", "?", "n.d.", ""],
        "potassium": ["NA", "n/a", "missing", "nd", "#N/A"],
        "crp": ["n.d.", "."],
        "bmi": [""],
    }
    for name, kinds in words.items():
        gaps = np.sort(rng.choice(n, size=4 * len(kinds) + 2, replace=False))
        for i, row in enumerate(gaps):
            cells[name][row] = kinds[i % len(kinds)]
        values[name] = values[name].copy()
        values[name][gaps] = np.nan
    coded = np.sort(rng.choice(n, size=12, replace=False))
    for row in coded:
        cells["age"][row] = "99"
    values["age"][coded] = np.nan
    truth = {
        "target": "diagnosis",
        "kind": "classes",
        "y": names[kind],
        "labelled": labelled,
        "id": "patient",
        "ids": ids,
        "values": values,
        "dates": {"visit": days},
        "categories": {"ward": ward, "smoker": smoker.astype(object)},
        "censored": {"crp": sum(cell == "<0.5" for cell in cells["crp"])},
        "codes": {"age": {99: len(coded)}},
        "options": {"na": ("age=99",)},
    }
    return _written(folder, "clinic.csv", cells), truth


def genes(folder, *, n_genes=2000, n_samples=60, seed=0):
    """Expression with genes as rows, samples as columns, and a row with the tissue of each."""
    rng = np.random.default_rng(seed)
    kind = np.arange(n_samples) % 3
    loading = np.zeros((n_genes, 3))
    loading[:60] = rng.normal(0, 1.5, loading[:60].shape)
    values = rng.normal(8, 2, (n_genes, 1)) + loading[:, kind]
    values = (values + rng.normal(0, 0.7, values.shape)).round(3)
    gene_names = [f"GENE{i + 1}" for i in range(n_genes)]
    ids = np.array([f"S{i + 1:03d}" for i in range(n_samples)], dtype=object)
    tissue = np.array(["liver", "lung", "skin"], dtype=object)[kind]
    labelled = rng.random(n_samples) < 0.7
    gaps = rng.random(values.shape) < 0.002
    rows = np.where(gaps, "NA", values.astype(str))
    cells = {"gene": ["tissue", *gene_names]}
    for j, name in enumerate(ids):
        cells[name] = [tissue[j] if labelled[j] else "", *rows[:, j]]
    values[gaps] = np.nan
    truth = {
        "target": "tissue",
        "kind": "classes",
        "y": tissue,
        "labelled": labelled,
        "id": "sample",
        "ids": ids,
        "values": dict(zip(gene_names, values, strict=True)),
        "dates": {},
        "options": {"transpose": True},
    }
    return _written(folder, "genes.tsv", cells, "\t"), truth


def wine(folder, *, n=180, seed=0):
    """A German laboratory: semicolons, decimal commas, latin-1, dates dd.mm.yyyy, n.d."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    names = np.array(["Spätburgunder", "Grauburgunder", "Müller-Thurgau"], dtype=object)
    days = np.datetime64("2022-09-01") + rng.integers(60, size=n)
    values = {
        "Säure": (6.0 + 0.8 * kind + rng.normal(0, 0.6, n)).round(1),
        "Restsüße": np.exp(rng.normal(1 + 0.5 * kind, 0.5)).round(2),
        "Alkohol": (11.5 + 0.6 * (kind == 0) + rng.normal(0, 0.4, n)).round(2),
        "Dichte": (0.99 + 0.002 * kind + rng.normal(0, 0.001, n)).round(4),
        "Extrakt": (21.5 + 2 * kind + rng.normal(0, 2, n)).round(1),
    }
    cells = {"Flasche": [f"W-{i + 1:03d}" for i in range(n)]}
    cells["Abfüllung"] = [f"{d.day:02d}.{d.month:02d}.{d.year}" for d in days.tolist()]
    cells |= {name: [f"{v}".replace(".", ",") for v in column] for name, column in values.items()}
    for name in ("Säure", "Extrakt"):
        gaps = rng.choice(n, size=9, replace=False)
        for row in gaps:
            cells[name][row] = "n.d."
        values[name][gaps] = np.nan
    labelled = rng.random(n) < 0.5
    cells["Rebsorte"] = np.where(labelled, names[kind], "")
    truth = {
        "target": "Rebsorte",
        "kind": "classes",
        "y": names[kind],
        "labelled": labelled,
        "id": "Flasche",
        "ids": np.array(cells["Flasche"], dtype=object),
        "values": values,
        "dates": {"Abfüllung": days},
        "options": {"encoding": "latin-1"},
        "decimal": ",",
    }
    return _written(folder, "wein.csv", cells, ";", "latin-1"), truth


def survey(folder, *, n=400, seed=0):
    """Answers 1 to 5 with the codes 9 and 99, yes and no, a free text, numbered respondents."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(3, size=n)
    names = np.array(["city", "town", "village"], dtype=object)
    values, cells, codes = {}, {"respondent": [str(1000 + i) for i in range(n)]}, {}
    slopes = rng.normal(0, 0.8, 12)
    for j in range(12):
        name = f"q{j + 1}"
        answer = np.clip((3 + slopes[j] * (kind - 1) + rng.normal(0, 1, n)).round(), 1, 5)
        answer[:5] = [1, 2, 3, 4, 5]
        cells[name] = [f"{a:.0f}" for a in answer]
        values[name], codes[name] = answer, {}
        for code in (9, 99):
            rows = 5 + rng.choice(n - 5, size=4 + j % 3, replace=False)
            for row in rows:
                cells[name][row] = str(code)
            answer[rows] = np.nan
        for code in (9, 99):
            codes[name][code] = cells[name].count(str(code))
    for j in range(6):
        p = 0.2 + 0.1 * j + 0.2 * (kind == j % 3)
        cells[f"owns{j + 1}"] = np.where(rng.random(n) < p, "yes", "no")
    words = np.array("the bus is late too often and I walk to work by the river".split())
    cells["remark"] = [
        " ".join(rng.choice(words, size=rng.integers(3, 9))) + f" {i}" if rng.random() < 0.6 else ""
        for i in range(n)
    ]
    labelled = rng.random(n) < 0.6
    cells["home"] = np.where(labelled, names[kind], "")
    truth = {
        "target": "home",
        "kind": "classes",
        "y": names[kind],
        "labelled": labelled,
        "id": "respondent",
        "ids": np.array(cells["respondent"], dtype=object),
        "values": values,
        "dates": {},
        "codes": codes,
        "multilabel": [f"owns{j + 1}" for j in range(6)],
        "left_out": ["remark"],
        "options": {
            "id": "respondent",
            "na": tuple(f"{name}={code}" for name in codes for code in (9, 99)),
        },
    }
    return _written(folder, "survey.csv", cells), truth


def spectra(folder, *, n=120, n_wavelengths=200, seed=0):
    """Spectra on an ordered axis, and three numbers to predict, each with gaps of its own."""
    rng = np.random.default_rng(seed)
    axis = np.linspace(900, 1700, n_wavelengths).round().astype(int)
    amounts = rng.gamma(4, 1, (n, 3))
    centres, widths = np.array([1050, 1250, 1500]), np.array([40, 60, 90])
    bands = np.exp(-(((axis - centres[:, None]) / widths[:, None]) ** 2) / 2)
    drift = rng.normal(0, 0.3, (n, 1)) * np.linspace(-1, 1, n_wavelengths)
    X = 0.1 * amounts @ bands + 0.2 * drift + rng.normal(0, 0.01, (n, n_wavelengths)) + 1
    X = X.round(4)
    Y = (amounts * [10, 1, 0.1] + rng.normal(0, 0.1, (n, 3)) * [10, 1, 0.1]).round(3)
    known = rng.random((n, 3)) < 0.7
    targets = ["fat", "water", "protein"]
    cells = {"scan": [f"scan {i + 1}" for i in range(n)]}
    cells |= {str(w): [f"{v}" for v in X[:, j]] for j, w in enumerate(axis)}
    for j, name in enumerate(targets):
        cells[name] = [f"{v}" if k else "" for v, k in zip(Y[:, j], known[:, j], strict=True)]
    truth = {
        "target": targets,
        "kind": "numeric",
        "y": Y,
        "labelled": known,
        "id": "scan",
        "ids": np.array(cells["scan"], dtype=object),
        "values": {str(w): X[:, j] for j, w in enumerate(axis)},
        "dates": {},
        "axis": axis,
        "options": {},
    }
    return _written(folder, "spectra.csv", cells), truth


def sensors(folder, *, n=3000, n_columns=30, seed=0):
    """A machine: a row a minute, many numbers, a state that is hardly ever written down."""
    rng = np.random.default_rng(seed)
    kind = (np.arange(n) // 50) % 4
    levels = rng.normal(0, 1, (4, n_columns)) * (np.arange(n_columns) < 12)
    X = (levels[kind] + rng.normal(0, 1, (n, n_columns))).round(3)
    gaps = rng.random(X.shape) < 0.01
    times = np.datetime64("2024-02-28T22:00:00") + 60 * np.arange(n)
    names = np.array(["idle", "run", "warm", "stop"], dtype=object)
    labelled = rng.random(n) < 0.02
    labelled[np.arange(4) * 50 + 5] = True
    X[gaps] = np.nan
    cells = {"time": times} | {f"s{j + 1:02d}": X[:, j] for j in range(n_columns)}
    cells["state"] = np.where(labelled, names[kind], None)
    truth = {
        "target": "state",
        "kind": "classes",
        "y": names[kind],
        "labelled": labelled,
        "id": None,
        "ids": np.arange(1, n + 1),
        "values": {f"s{j + 1:02d}": X[:, j] for j in range(n_columns)},
        "dates": {"time": times},
        "options": {},
    }
    return _written_fast(folder, "sensors.csv", cells), truth


TABLES = {
    "clinic": clinic,
    "genes": genes,
    "wine": wine,
    "survey": survey,
    "spectra": spectra,
    "sensors": sensors,
}


def _written(folder, name, cells, separator=",", encoding="utf-8"):
    path = Path(folder) / name
    rows = zip(*(map(str, column) for column in cells.values()), strict=True)
    lines = [separator.join(cells), *map(separator.join, rows)]
    path.write_text("\n".join(lines) + "\n", encoding=encoding)
    return path


def _written_fast(folder, name, cells):
    import pyarrow as pa
    from pyarrow import csv

    path = Path(folder) / name
    table = pa.table({key: pa.array(column, from_pandas=True) for key, column in cells.items()})
    csv.write_csv(table, path, csv.WriteOptions(quoting_style="none"))
    return path
