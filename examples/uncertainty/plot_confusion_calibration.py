"""
Are the predictions right, and honest?
======================================

Models that predict classes work with scikit-learn's own displays: which classes are taken for
each other, and whether a probability of 80 % comes true in 80 of 100 cases.

*Level: with practice.*
"""

import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import BSDR, SPPCA

# %%
# Digits from a map of nine dimensions, on images that were held out.

X, y = load_digits(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, random_state=0, stratify=y)
model = SPPCA(n_components=9, random_state=0).fit(train, y_train)
ConfusionMatrixDisplay.from_predictions(y_test, model.predict(test), cmap="Blues", colorbar=False)
plt.show()

# %%
# Tumours: probabilities of BSDR, beside those of a classifier that is known to be too sure.

X, y = load_breast_cancer(return_X_y=True)
train, test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
classifiers = {
    "BSDR": make_pipeline(StandardScaler(), BSDR(n_components=1, random_state=0)),
    "naive Bayes": GaussianNB(),
}
_, ax = plt.subplots(layout="constrained")
for (name, classifier), colour in zip(classifiers.items(), ("#0072B2", "#D55E00"), strict=True):
    classifier.fit(train, y_train)
    CalibrationDisplay.from_estimator(
        classifier, test, y_test, n_bins=5, strategy="quantile", name=name, color=colour, ax=ax
    )
plt.show()

# %%
# **What it shows.** Probabilities of gnomon's models can be judged, and drawn, with scikit-
# learn's own tools.
