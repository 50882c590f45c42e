"""
Which images are alike?
=======================

A good embedding puts images of the same thing side by side. Each row has a query and its
nearest neighbours by cosine, among images that were not used in the fit. A solid green frame
is a hit, a dotted orange one is a miss.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from gnomon import BSDR, PPCA
from gnomon.displays import RetrievalDisplay

digits = load_digits()
train, test = slice(0, 500), slice(1000, None)
new = digits.data[test], digits.target[test]

# %%
# Five components that have not seen a label.

model = PPCA(n_components=5).fit(digits.data[train])
RetrievalDisplay.from_estimator(model, *new, images=digits.images[test], queries=6)
plt.show()

# %%
# Five components of :class:`~gnomon.BSDR`, which has seen those of the first five hundred images.

model = BSDR(n_components=5, random_state=0).fit(digits.data[train], digits.target[train])
RetrievalDisplay.from_estimator(model, *new, images=digits.images[test], queries=6)
plt.show()

# %%
# **What it shows.** A map that has learnt from labels brings more images of the same digit to the
# top than one that has not.
