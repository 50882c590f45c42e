"""Rows among the nodes of a graph: what PRPCA embeds, fills in and scores, by links and content.

Expects the attributes that `PRPCA` keeps; the mathematics is below this layer.
"""

import numpy as np
from scipy import sparse

from gnomon.estimators import _linked
from gnomon.estimators._base import LatentPosterior, LinearGaussianModel
from gnomon.estimators._door import check_dense, repeatable
from gnomon.estimators._nodes import place
from gnomon.estimators.links import read_links
from gnomon.linalg import graph
from gnomon.linalg.data import Centered, Matrix, has_gaps
from gnomon.linalg.lanczos import density
from gnomon.linalg.mixed import Mixed
from gnomon.models import prpca, relational, relational_posterior
from gnomon.models.gaussian import gaps
from gnomon.models.gaussian.em import e_step
from gnomon.stats import gaussian
from gnomon.stats.gaussian import View


class LinkedRows(LinearGaussianModel):
    """A linear Gaussian model whose rows may be linked."""

    def transform(self, X, links=None, sample_index=None):
        """Embed rows by their content, their links, or both.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to embed. NaN marks missing values; a row of NaN is embedded by its links
            alone.
        links : Links, array-like or sparse matrix, default=None
            Links of the rows: among themselves (n_samples nodes), among the rows of the
            fit and then these, or, with ``sample_index``, among all nodes. Without links every
            row is embedded by its content alone.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components + link_components)
        """
        X = self._read(X)
        nodes = self._place(X, links, sample_index)
        Z = self._embed(X, nodes).astype(X.dtype, copy=False)
        if not self.link_components:
            return Z
        return np.concatenate([Z, self._embed_links(nodes, len(Z)).astype(X.dtype)], axis=1)

    def posterior(self, X, links=None, sample_index=None):
        """Posterior of the latent variables of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to embed. NaN marks missing values.
        links, sample_index
            As in `transform`. They matter for "learnt", whose posterior is that of the shared
            part; for a row with missing values its variance is that of a complete row.

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components). ``temper`` does not enter.
        """
        X = self._read(X)
        nodes = self._place(X, links, sample_index)
        if not self._shares():
            q = len(self.components_)
            mean, covariance = self._latent_posterior(X)
            return LatentPosterior(mean[:, :q], covariance[:, :q, :q])
        mean = self._embed(X, nodes, temper=1.0)
        state, S = self._relational(), self._smoother(nodes, len(mean))
        rows = np.arange(S.shape[0])[-len(mean) :]
        variances = relational_posterior.shared_variances(state, S, rows)
        variances /= np.sum(self.components_.astype(float) ** 2, axis=1)
        return LatentPosterior(mean, variances[:, :, None] * np.eye(variances.shape[1]))

    def score(self, X, y=None, links=None, sample_index=None):
        """Average log density of the rows, together with the links among them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None
            Ignored.
        links : Links, array-like or sparse matrix of shape (n_samples, n_samples), default=None
            Links among these rows. For "paper" the density is not to be compared with
            that of other models; for "filter" it is that of smoothed content.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row, where links has other nodes besides.

        Returns
        -------
        score : float
        """
        if links is None:
            return super().score(X)
        X = self._read(X)
        if has_gaps(X):
            raise ValueError("X contains NaN; with links score accepts complete rows")
        A = read_links(links, X.shape[0], sample_index).adjacency
        return self._joint_log_density(self._center(X), A) / X.shape[0]

    def impute(self, X, links=None, sample_index=None, *, return_std=False):
        """Rows with their missing values replaced by their means given what is observed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with NaN for missing values.
        links, sample_index
            As in `transform`. "learnt" then fills in from the neighbours too.
        return_std : bool, default=False
            Whether to return the standard deviations of the filled values too. With links they
            are those where all other rows are complete.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        std : ndarray of shape (n_samples, n_features)
            Zero where the value was observed. Only if ``return_std``.
        """
        if links is None or not self._shares():
            return super().impute(X, return_std=return_std)
        X = self._read(X)
        nodes = self._place(X, links, sample_index)
        check_dense(X)
        values = np.where(np.isnan(X), (self._fill(X, nodes)[0] + self.mean_).astype(X.dtype), X)
        return (values, self._gap_deviations(X, nodes)) if return_std else values

    def _training_scores(self, X):
        """What `transform` needs of the rows of the fit: their content on the axes."""
        if not self._shares():
            return self._embed(X, None).astype(X.dtype)
        return self._scores(X, None).astype(X.dtype)

    def _shares(self):
        """Whether the fit has a shared part in the sense of the relational model."""
        return hasattr(self, "axes_") and self.links_used_

    def _place(self, X, links, sample_index):
        if links is None:
            return None
        return place(links, sample_index, X.shape[0], self.sample_index_)

    def _embed(self, X, nodes, temper=None):
        """Latent variables of the rows by content, and by links where there are any."""
        if self._shares():
            return self._embed_shared(X, nodes, self.temper if temper is None else temper)
        Z = self._latent_means(X)[:, : len(self.components_)]
        smoothed = self.relation == "filter" or self.projection == "smoothed"
        if nodes is None or not smoothed or self.relation == "learnt":
            return Z
        stacked = nodes.stack(self.training_scores_, Z)
        if self.relation == "filter":
            return prpca.smooth(graph.normalized(nodes.adjacency), stacked, self.power)[-len(Z) :]
        mixed = self.alpha * stacked + nodes.adjacency @ stacked
        return mixed[-len(Z) :] / self.alpha

    def _embed_shared(self, X, nodes, temper):
        scores = self._scores(X, nodes)
        m = X.shape[0]
        S = self._smoother(nodes, m)
        stacked = scores if nodes is None else nodes.stack(self.training_scores_, scores)
        shared = relational_posterior.shared_part(self._relational(), S, stacked, temper=temper)
        return shared[-m:] / np.linalg.norm(self.components_.astype(float), axis=1)

    def _smoother(self, nodes, m):
        return (
            sparse.eye_array(m, format="csr")
            if nodes is None
            else graph.normalized(nodes.adjacency)
        )

    def _scores(self, X, nodes):
        """Centred rows on all axes (m, q + r), with gaps filled from the row and its links."""
        if has_gaps(X):
            return self._fill(X, nodes)[1]
        return np.asarray(self._center(X) @ self.axes_.T, dtype=float)

    def _fill(self, X, nodes):
        """Centred rows with their gaps filled, and their scores."""
        centered = X.astype(float) - self.mean_
        m, state = X.shape[0], self._relational()
        scores = np.where(np.isnan(centered), 0.0, centered) @ state.U
        if nodes is not None:
            scores = nodes.stack(self.training_scores_.astype(float), scores)
        S = self._smoother(nodes, m)
        gaps = np.flatnonzero(np.isnan(centered).any(axis=1))
        places = len(scores) - m + gaps
        filled = centered.copy()
        filled[gaps], scores = relational_posterior.fill(state, S, scores, places, centered[gaps])
        return filled, scores[-m:]

    def _gap_deviations(self, X, nodes):
        """Standard deviations of the missing entries, zero where observed."""
        S, gaps = self._smoother(nodes, X.shape[0]), np.isnan(X)
        rows = np.flatnonzero(gaps.any(axis=1))
        out = np.zeros(X.shape)
        if len(rows):
            places = S.shape[0] - X.shape[0] + rows
            state = self._relational()
            out[rows] = relational_posterior.gap_deviations(state, S, places, ~gaps[rows])
        return out

    def _embed_links(self, nodes, m):
        """Latent variables of the rows of the adjacency, by PPCA on those of the fit."""
        rows = sparse.csr_array((m, len(self.sample_index_)))
        if nodes is not None:
            rows = nodes.links_to_fitted(m)
        view = self.link_components_.T, self.link_noise_variance_
        weights = gaussian.latent_posterior(*view).weights
        return Centered(Matrix(rows), self.link_mean_) @ weights

    def _joint_log_density(self, centered, A):
        if self._shares():
            rng, S, q = repeatable(self.random_state), graph.normalized(A), len(self.components_)
            spectrum = density(S, graph.component_basis(A), rng)
            steps = relational_posterior.STEPS
            data = relational.link(centered, S, spectrum, steps=steps)
            state = self._relational()
            return relational.log_likelihood(state, relational.measure(state.U, q, data))
        if self.relation == "learnt":
            return float(gaussian.log_density(centered, *self._view()).sum())
        W, sigma2 = self._view()
        if self.relation == "filter":
            return e_step((View(W, sigma2),), (prpca.filtered(A, centered, self.power),))[2]
        scale = self.alpha**2 + self.gamma
        mixed = Mixed(prpca.mixing(A, self.alpha, self.gamma), centered)
        log_density = e_step((View(W * np.sqrt(scale), sigma2 * scale),), (mixed,))[2]
        constant = prpca.log_determinant(A, self.alpha, self.gamma)
        return log_density + 0.5 * centered.shape[1] * constant

    def _relational(self):
        variances = self.shared_variances_, self.own_variances_, self.smoothness_
        return _linked.state_of(self.axes_, *variances, self.noise_variance_)

    def _view(self):
        """Loadings of a row without links, own axes included, and its noise variance."""
        if not hasattr(self, "axes_"):
            return super()._view()
        variances = self.own_variances_.copy()
        variances[: len(self.shared_variances_)] += self.shared_variances_
        return self.axes_.T.astype(float) * np.sqrt(variances), self.noise_variance_

    def _state(self):
        W, sigma2 = self._view()
        return gaps.State(W, np.asarray(self.mean_, dtype=float), np.array([sigma2]))
