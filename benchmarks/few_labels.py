"""What cross-validation says of partly labelled rows: naively, and by the rules of the library.

python benchmarks/few_labels.py
"""

import json
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier

from gnomon import SPPCA, LabelledOnly, SemiSupervisedSplit, labelled_scorer

SEED, UNLABELLED = 0, 0.8
RESULT = Path(__file__).parent / "results" / "few_labels.json"


def main():
    X, truth = load_digits(return_X_y=True)
    y = np.where(np.random.default_rng(SEED).random(len(truth)) < UNLABELLED, -1, truth)
    neighbour = KNeighborsClassifier(1)
    models = {
        "self-training": (SelfTrainingClassifier(neighbour), SelfTrainingClassifier(neighbour)),
        "SPPCA and 1-NN": (
            make_pipeline(StandardScaler(), SPPCA(10, random_state=0), neighbour),
            make_pipeline(StandardScaler(), SPPCA(10, random_state=0), LabelledOnly(neighbour)),
        ),
    }
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (plain, careful) in models.items():
            ours = {"cv": SemiSupervisedSplit(5), "scoring": labelled_scorer("accuracy")}
            hidden = y == -1
            rows[name] = {
                "naive": cross_val_score(plain, X, y, cv=5).mean(),
                "ours": cross_val_score(careful, X, y, **ours).mean(),
                "truth": np.mean(careful.fit(X, y).predict(X[hidden]) == truth[hidden]),
            }
    result = {name: {k: round(float(v), 3) for k, v in row.items()} for name, row in rows.items()}
    record = {"data": "digits", "unlabelled": UNLABELLED, "seed": SEED, "accuracy": result}
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
