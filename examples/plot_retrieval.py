"""
Which images are alike?
=======================

A good embedding puts images of the same thing side by side. Each row has a query and its
nearest neighbours by cosine, among images that were not used in the fit. A solid green frame
is a hit, a dotted orange one is a miss.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from gnomon import PPCA
from gnomon.displays import RetrievalDisplay

digits = load_digits()
train, test = slice(0, 1000), slice(1000, None)

model = PPCA(n_components=5).fit(digits.data[train])
RetrievalDisplay.from_estimator(
    model, digits.data[test], digits.target[test], images=digits.images[test], queries=6
)
plt.show()
