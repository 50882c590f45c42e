"""
Three numbers from a spectrum, each with its interval
=====================================================

The task of chemometrics: fat, water and protein of a sample from the light that it lets pass,
where the laboratory has measured few of the samples. `SPPCA` is fitted to all spectra and to
the numbers that are known, and says of every other sample what they are and how sure that is.

*Level: first steps.*
"""

import matplotlib.pyplot as plt
import numpy as np

from gnomon import SPPCA

# %%
# Spectra that mix five substances, each with its own band, on a sloping base line. The
# laboratory measures three of them with an error of its own, in 40 of 300 samples; of ten of
# these the water is missing.

rng = np.random.default_rng(0)
n, known = 300, 40
names = ("fat", "water", "protein")
wavelength = np.linspace(850, 1050, 100)
bands = np.exp(-(((wavelength - np.array([[890], [940], [990], [915], [1020]])) / 12) ** 2))
amounts = rng.gamma(4, [5, 12, 4, 3, 3], (n, 5))
base = rng.normal(0, 8, (n, 1)) + rng.normal(0, 8, (n, 1)) * (wavelength - 950) / 100
X = amounts @ bands + base + 0.5 * rng.standard_normal((n, 100))
truth = amounts[:, :3] + np.array([0.3, 4.0, 2.0]) * rng.standard_normal((n, 3))

y = np.where(np.arange(n)[:, None] < known, truth, np.nan)
y[:10, 1] = np.nan

# %%
# One map serves all three. Standard deviations are in the units of y; each number has its own.

model = SPPCA(n_components=3).fit(X, y)
mean, std = model.predict(X[known:], return_std=True)
new = truth[known:]
error = np.sqrt(np.mean((mean - new) ** 2, axis=0))
inside = np.mean(np.abs(mean - new) < 1.96 * std, axis=0)
for name, rmse, sd, share in zip(names, error, std.mean(axis=0), inside, strict=True):
    print(f"{name:8} root mean squared error {rmse:5.2f}, sd {sd:5.2f}, 95 % held {share:.1%}")

# %%
# Predicted against measured, with 95 % intervals: a point whose line misses the diagonal is
# one of the twentieth that an interval may miss.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
for k, (ax, name) in enumerate(zip(axes, names, strict=True)):
    rows = slice(0, 80)
    ax.errorbar(new[rows, k], mean[rows, k], yerr=1.96 * std[rows, k], fmt="o", ms=3, lw=0.8)
    ax.axline((new[0, k], new[0, k]), slope=1, color="0.6", lw=1)
    ax.set(title=name, xlabel="measured", ylabel="predicted")

# %%
# The same from a file: ``gnomon fit spectra.csv --target fat --target water --target protein
# --out map`` writes ``predictions.csv`` with ``predicted fat``, ``sd fat`` and so on.
#
# Where light is lost in the middle of a spectrum, the other wavelengths stand in for it, and
# the interval says what that costs.

gappy = X[known : known + 1].copy()
gappy[0, 15:70] = np.nan
_, whole = model.predict(X[known : known + 1], return_std=True)
_, wider = model.predict(gappy, return_std=True)
print("sd with all wavelengths:", whole.round(2)[0], "with half of them:", wider.round(2)[0])

# %%
# **What it shows.** Forty measured samples and 260 spectra give three numbers, each with an
# interval of its own.
