"""PRPCA and its relatives as a scikit-learn estimator."""

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from gnomon.estimators._base import LatentPosterior, LinearGaussianModel
from gnomon.estimators._door import (
    by_rows,
    check_dense,
    check_integer,
    check_option,
    check_prior,
    check_real,
    check_size,
    in_memory_by_rows,
    read_data,
    repeatable,
)
from gnomon.estimators._fit import IterativeFit, warn_without_evidence
from gnomon.estimators.links import check_sample_index, place_rows, read_links
from gnomon.exceptions import NumericalError
from gnomon.linalg.data import has_gaps
from gnomon.models.gaussian import gaps
from gnomon.models.relational import beside, paper, posterior
from gnomon.models.relational.fit import FITS, Problem, Settings, fit
from gnomon.models.relational.model import State
from gnomon.stats import gaussian
from gnomon.typing import CallbackLike, GraphLike, OutputsLike, RowsLike, SeedLike

# Fitted attributes that only some relations have, none of which outlives a fit by another.
OF_SOME_RELATIONS = (
    *("content_components_", "content_noise_variance_", "prior_variances_", "told_"),
    *("neighbour_components_", "smoothed_components_", "neighbour_weight_", "smoothed_weight_"),
    *("axes_", "shared_variances_"),
    *("own_variances_", "smoothness_", "link_gain_", "permuted_link_gain_"),
)
# A precision may differ from its transpose by this share of its largest entry: by rounding.
SYMMETRIC = 1e-9


class PRPCA(IterativeFit, LinearGaussianModel):
    """Dimension reduction for rows that are linked, like papers by citations.

    Four ways to use the links, and none of them needs more than sparse products:

    * ``relation="paper"``: probabilistic relational PCA [1]_, at the cost of a truncated SVD. Its
      axes are those of neighbour sums.
    * ``relation="filter"``: PCA of content that is smoothed over the graph by a fixed low-pass
      filter. The cheapest good choice where links join rows of a kind, like citations.
    * ``relation="beside"``: PCA of content side by side with the mean content of neighbours and
      with smoothed content, each with loadings of its own. Where links join rows of different
      kinds, like hyperlinks.
    * ``relation="learnt"``: a generative model in which linked rows share a smooth part, with
      a strength that is learnt for each axis. It has a likelihood that may be compared with
      PPCA's, fills in missing content, embeds rows by their links alone, and leaves links
      aside that are noise.

    ``relation="auto"`` takes "filter", "beside" where smoothed content tells less of columns
    that were not seen than content does, and no links where content tells something, and
    neighbours no more of it than those of permuted links. Without links each is PPCA.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of components; with ``prior="ard"`` the most that there may be, and "auto" as
        many as can have evidence.
    relation : {"auto", "filter", "beside", "paper", "learnt"}, default="auto"
        How links enter, see above.
    alpha : float, default=1.0
        "paper": weight of a row itself beside its neighbours, alpha I + A.
    gamma : float, default=1e-6
        "paper": what is added to the precision gamma I + (alpha I + A)^2 so that it is regular.
    solver : {"svd", "em"}, default="svd"
        "paper": the closed form, or the expectation-maximisation of [1]_ from its own start,
        principal axes and a noise of 1e-6; the paper takes 5 steps (``max_iter``).
    prior : {None, "ard"}, default=None
        "paper": "ard" is Bayesian PRPCA. Every component has a prior of its own on its
        loadings, and those without evidence are left out.
    projection : {"content", "smoothed"}, default="content"
        "paper": what `transform` projects. "content" is the model's posterior mean, which
        does not depend on the links of a row. "smoothed" projects the neighbour sums
        (alpha I + A) X, where links are given; it is the better one for classification.
    power : int, default=2
        "filter", "beside" and "auto": how often content is averaged over the links.
    own_components : int, default=60
        "learnt": number of further axes, for variation that is a row's own; at most
        what half of the rows or features leaves beside ``n_components``.
    temper : float, default=1.0
        "learnt": factor on the noise that content is trusted by in `transform`. 1 is the
        posterior mean; a Gaussian model of words trusts single documents too much, and about 10
        is better where the embedding feeds a classifier.
    max_iter : int, default=100
        Most iterations of "em" and of "learnt".
    tol : float, default=None
        An iteration ends when the log likelihood changes by less than this per entry of X.
        None is 1e-8. For "learnt" None is 1e-5 for more than 5000 rows. With fewer, it takes as
        many rounds, and shrinks the shared variances so far, as serve rows held out in
        cross-validation best; a number runs on to the maximum of the likelihood, in less time.
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every iteration; it stops the
        fit by returning True.
    random_state : int, RandomState instance, Generator or None, default=None
        Starts, probes of the spectrum of the graph, its permutation and folds. None stands for 0.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Loadings W'. For "learnt" those of the shared part, or of the whole latent part where
        links are not used.
    mean_ : ndarray of shape (n_features,)
        For "paper" the relational mean, in which rows with many links weigh more.
    noise_variance_ : float
    content_components_ : ndarray of shape (n_components, n_features)
        All but "learnt", with links: loadings of a row as it is, neither mixed nor smoothed,
        along the same axes. `impute` counts with these and with the noise beside them.
    content_noise_variance_ : float
        All but "learnt", with links: noise variance of a row as it is.
    neighbour_components_ : ndarray of shape (n_components, n_features)
        "beside": loadings of the mean content of neighbours, times ``neighbour_weight_``.
    smoothed_components_ : ndarray of shape (n_components, n_features)
        "beside": loadings of smoothed content, times ``smoothed_weight_``.
    neighbour_weight_, smoothed_weight_ : float
        "beside": factors on the means of neighbours and on smoothed content, by which each
        counts a quarter as much as rows.
    relation_ : str
        The relation of the fit, where "auto" chose one; "none" where it does without links.
    told_ : dict of str to float
        "auto": shares of variance that are left of one half of the columns, told by the other
        half as it is ("content") and "smoothed"; and of all, told by "neighbours" and by those
        of "permuted" links; with standard errors of the two differences, "blur_error" and
        "links_error".
    n_components_ : int
        Number of components of the fit.
    prior_variances_ : ndarray of shape (n_components,)
        With ``prior="ard"``: variance of the prior of each component's loadings.
    links_used_ : bool
        Whether the embedding depends on links. "auto" and "learnt" do without them where a
        graph with the same links between permuted rows explains the content as well; the
        others always use them. It says nothing of classes: links may explain content and yet
        join rows of different classes; `SPPCA` with ``links`` and y asks for the latter.
    link_gain_, permuted_link_gain_ : float
        "learnt": log likelihood over that of PPCA with as many axes, in nats, before shared
        variances are shrunk; and the same with the permuted graph.
    axes_ : ndarray of shape (n_components + own_components, n_features)
        "learnt": orthonormal axes, those of the shared part first.
    shared_variances_, smoothness_ : ndarray of shape (n_components,)
        "learnt": variance of the shared part at its smoothest, and how fast it falls for
        parts that vary across links; 0 is no sharing.
    own_variances_ : ndarray of shape (n_components + own_components,)
        "learnt": variance of a row's own part on every axis.
    training_scores_ : ndarray
        Content of the rows of the fit on the axes; new rows are smoothed together with it.
    sample_index_ : ndarray of shape (n_samples,)
        The node of each row of the fit.
    objective_ : list of float
        The log likelihood at every iteration, with ``prior="ard"`` the lower bound of the
        logarithm of the evidence; for "paper" less a constant.
    n_iter_ : int
        Number of iterations; 1 for a closed form.
    converged_ : bool
        Whether the iteration settled.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    Links : A graph among rows that survives cross-validation.
    PPCA : The same model without links.

    Notes
    -----
    The paper's prior makes linked rows negatively correlated, so its likelihood must not be
    compared with PPCA's and its conditional means must not fill in content; see the page on
    PRPCA in the documentation. `impute` therefore fills in a row from its own content, except
    for "learnt", which uses the neighbours too.

    The loadings of "paper" are scaled such that the latent variables of a row without links
    have unit variance: they are those of the paper over sqrt(alpha^2 + gamma).

    References
    ----------
    .. [1] W.-J. Li, D.-Y. Yeung and Z. Zhang, "Probabilistic relational PCA", Advances in Neural
       Information Processing Systems 22, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PRPCA, Links
    >>> rng = np.random.default_rng(0)
    >>> side = np.repeat([-1.0, 1.0], 20)
    >>> X = side[:, None] + 2 * rng.standard_normal((40, 5))
    >>> links = Links.from_edges([(i, i + 1) for i in range(39) if i != 19])
    >>> Z = PRPCA(n_components=1, relation="filter").fit_transform(X, links=links)
    >>> Z.shape
    (40, 1)
    >>> bool(abs(Z[:20].mean() - Z[20:].mean()) > 1)
    True
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        relation: str = "auto",
        alpha: float = 1.0,
        gamma: float | None = 1e-6,
        solver: str = "svd",
        prior: str | None = None,
        projection: str = "content",
        power: int = 2,
        own_components: int = 60,
        temper: float = 1.0,
        max_iter: int = 100,
        tol: float | None = None,
        callback: CallbackLike = None,
        random_state: SeedLike = None,
    ) -> None:
        self.n_components = n_components
        self.relation = relation
        self.alpha = alpha
        self.gamma = gamma
        self.solver = solver
        self.prior = prior
        self.projection = projection
        self.power = power
        self.own_components = own_components
        self.temper = temper
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
        delta: GraphLike = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. NaN marks missing values in a dense X.
        y : None
            Ignored.
        links : Links, array-like or sparse matrix of shape (n_samples, n_samples), default=None
            Links among the rows; under cross-validation `Links` over all, and ``sample_index``.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row, where links has other nodes besides.
        delta : sparse matrix or array-like of shape (n_samples, n_samples), default=None
            For "paper", in the place of links: a precision of the rows of one's own, symmetric
            and positive definite. Latent variables and noise of every column have it.

        Returns
        -------
        self : PRPCA
        """
        settings = self._settings()
        X = read_data(self, X, fitting=True, min_samples=2)
        n = X.shape[0]
        A = None if links is None else read_links(links, n, sample_index).adjacency
        index = check_sample_index(np.arange(n) if sample_index is None else sample_index, n_rows=n)
        if self.n_components != "auto":
            check_size(self.n_components, X.shape)
        Delta = None if delta is None else self._read_delta(delta, n, links)
        if has_gaps(X) and (A is not None or Delta is not None) and not self._observes():
            warnings.warn(
                "X has missing values, which PPCA fills from the content of each row before links "
                "count; relation='learnt' has a likelihood of what is observed",
                stacklevel=2,
            )
        return self._keep(X.dtype, index, self._fit(Problem(X, A, Delta), settings))

    @property
    def _fits_gaps_in_blocks(self):
        return not self._observes()

    def _observes(self):
        """Whether the fit is by the likelihood, or evidence, of what is observed."""
        by_em = self.relation == "paper" and self.solver == "em"
        return by_em or self.relation == "learnt" or self.prior is not None

    def _fit(self, problem, settings):
        try:
            return fit(problem, settings, self._loop(problem))
        except NumericalError as error:
            if problem.Delta is None:
                raise
            raise ValueError(
                f"delta cannot be used: {error}; accepted are symmetric positive-definite "
                "matrices, add a multiple of the identity"
            ) from error

    def _read_delta(self, delta, n, links):
        """A precision of the rows as a sparse array."""
        if self.relation != "paper" or links is not None:
            given = "links are given too" if links is not None else f"relation == {self.relation!r}"
            raise ValueError(f"delta is the precision of relation='paper' without links; {given}")
        Delta = sparse.csr_array(delta, dtype=float)
        if Delta.shape != (n, n):
            raise ValueError(f"delta has shape {Delta.shape}; accepted is {(n, n)}")
        if not np.all(np.isfinite(Delta.data)):
            raise ValueError("delta has NaN or infinite entries; accepted are finite numbers")
        uneven = abs(Delta - Delta.T).max() if Delta.nnz else 0.0
        if uneven > SYMMETRIC * abs(Delta).max():
            raise ValueError(f"delta is not symmetric, by up to {uneven}; accepted is a precision")
        return sparse.csr_array((Delta + Delta.T) / 2)

    def fit_transform(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
        delta: GraphLike = None,
    ) -> np.ndarray:
        """Fit the model and embed its rows, with their links.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored.
        links, sample_index, delta
            As in `fit`.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        self.fit(X, y, links=links, sample_index=sample_index, delta=delta)
        return self.transform(X, links=links, sample_index=sample_index)

    @by_rows
    def transform(
        self, X: RowsLike, links: GraphLike = None, sample_index: ArrayLike | None = None
    ) -> np.ndarray:
        """Embed rows by their content, their links, or both.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to embed. NaN marks missing values; a row of NaN is embedded by its links alone.
        links : Links, array-like or sparse matrix, default=None
            Links of the rows: among themselves, among the rows of the fit and then these, or,
            with ``sample_index``, among all nodes. Without links content alone counts.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        X = self._read(X)
        nodes = self._nodes(X.shape[0], links, sample_index)
        return self._embed(X, nodes, self.temper).astype(X.dtype, copy=False)

    @by_rows
    def posterior(
        self, X: RowsLike, links: GraphLike = None, sample_index: ArrayLike | None = None
    ) -> LatentPosterior:
        """Posterior of the latent variables of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to embed. NaN marks missing values.
        links, sample_index
            As in `transform`. They matter for "learnt", whose posterior is that of the shared
            part; for a row with missing values its variance is that of a complete row. "paper"
            takes the noise of rows as they are, the mean over the links they have.

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components). ``temper`` does not enter.
        """
        X = self._read(X)
        nodes, q = self._nodes(X.shape[0], links, sample_index), len(self.components_)
        if not self._shares():
            mean, covariance = self._latent_posterior(X)
            return LatentPosterior(mean[:, :q], self._row_variance() * covariance[:, :q, :q])
        variances = posterior.shared_variances(self._relational(), nodes)
        variances /= np.sum(self.components_.astype(float) ** 2, axis=1)
        covariances = variances[:, :, None] * np.eye(q)
        return LatentPosterior(self._embed(X, nodes, noise_factor=1.0), covariances)

    def score(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
    ) -> float:
        """Average log density of the rows, together with the links among them.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : None
            Ignored.
        links : Links, array-like or sparse matrix of shape (n_samples, n_samples), default=None
            Links among these rows. For "paper" the density is not to be compared with
            that of other models; for "filter" it is that of smoothed content, for "beside"
            that of content together with the means of neighbours.
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
        return self._log_density(self._center(X), A) / X.shape[0]

    @in_memory_by_rows
    def impute(
        self,
        X: RowsLike,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
        *,
        return_std: bool = False,
    ) -> Any:
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
        nodes = self._nodes(X.shape[0], links, sample_index)
        check_dense(X)
        state, missing = self._relational(), np.isnan(X)
        filled, _ = posterior.fill_new(state, X.astype(float) - self.mean_, nodes)
        values = np.where(missing, (filled + self.mean_).astype(X.dtype), X)
        return (values, posterior.gap_deviations(state, missing, nodes)) if return_std else values

    def _settings(self):
        """Checked parameters, as the model takes them."""
        check_option("projection", self.projection, ("content", "smoothed"))
        check_real("temper", self.temper, low=0, open_low=True)
        return Settings(
            self._check_components(),
            check_option("relation", self.relation, tuple(FITS)),
            check_real("alpha", self.alpha, low=0, open_low=True),
            check_real("gamma", self.gamma, low=0),
            check_option("solver", self.solver, ("svd", "em")),
            check_integer("power", self.power, low=1),
            check_integer("own_components", self.own_components, low=0),
            check_integer("max_iter", self.max_iter, low=1),
            None if self.tol is None else check_real("tol", self.tol, low=0),
            repeatable(self.random_state),
            self._check_prior(),
        )

    def _check_components(self):
        if self.n_components == "auto" and self.prior is not None:
            return "auto"
        if self.n_components == "auto":
            raise ValueError(
                "n_components == 'auto'; accepted are integers, and with prior='ard' 'auto'"
            )
        return check_integer("n_components", self.n_components, low=1)

    def _check_prior(self):
        prior = check_prior(self.prior, self.n_components, self.solver)
        if prior is not None and self.relation != "paper":
            raise ValueError(f"relation == {self.relation!r}; prior='ard' accepts 'paper'")
        return prior

    def _keep(self, dtype, index, found):
        for name in OF_SOME_RELATIONS:
            self.__dict__.pop(name, None)
        self.mean_ = np.asarray(found.mean, dtype=dtype)
        self.components_ = np.ascontiguousarray(found.view.W.T.astype(dtype))
        self.noise_variance_ = float(found.view.sigma2)
        self.n_components_ = len(self.components_)
        self.links_used_ = found.links_used
        self.relation_ = found.relation if self.relation == "auto" else self.relation
        if found.told is not None:
            self.told_ = found.told._asdict()
        if found.parts is not None:
            self.neighbour_components_ = np.ascontiguousarray(found.parts.V.T.astype(dtype))
            self.smoothed_components_ = np.ascontiguousarray(found.parts.U.T.astype(dtype))
            self.neighbour_weight_, self.smoothed_weight_ = found.parts.factors
        if found.prior_variances is not None:
            self.prior_variances_ = found.prior_variances
            warn_without_evidence(self.prior_variances_)
        self.sample_index_ = index
        self.training_scores_ = found.coordinates.astype(dtype, copy=False)
        if found.content is not None:
            self.content_components_ = np.ascontiguousarray(found.content.W.T.astype(dtype))
            self.content_noise_variance_ = float(found.content.sigma2)
        if found.state is not None:
            self.axes_ = np.ascontiguousarray(found.state.U.T.astype(dtype))
            self.shared_variances_, self.own_variances_ = found.state.a, found.state.c
            self.smoothness_ = found.state.beta
            self.link_gain_, self.permuted_link_gain_ = found.gain, found.permuted_gain
        self._keep_run(found.run, max_iter=self.max_iter)
        return self

    def _shares(self):
        """Whether rows share a part over their links, in the sense of the learnt model."""
        return hasattr(self, "axes_") and self.links_used_

    def _relational(self):
        """The state of the learnt model, from what is kept of it."""
        U = np.asarray(self.axes_.T, dtype=float)
        variances = self.shared_variances_, self.own_variances_
        return State(U, *variances, self.smoothness_, float(self.noise_variance_))

    def _row_variance(self):
        """How much more a row varies than the model of the paper says of one without links.

        The model has (Delta^-1)_ii for it, which is beyond all measure where Delta is nearly
        singular, as with the paper's gamma; the noise of rows as they are tells its mean.
        """
        if self.relation != "paper" or not hasattr(self, "content_noise_variance_"):
            return 1.0
        return self.content_noise_variance_ / self.noise_variance_

    def _nodes(self, m, links, sample_index):
        """The m rows among the nodes of a graph, beside the rows of the fit; alone without one."""
        if links is None:
            return posterior.Nodes(sparse.csr_array((m, m)), self.training_scores_[:0])
        adjacency, kept = place_rows(links, sample_index, m, self.sample_index_)
        return posterior.Nodes(adjacency, self.training_scores_[kept])

    def _embed(self, X, nodes, noise_factor):
        """Latent variables of the rows by content, and by links where there are any."""
        if self._shares():
            rows = X.astype(float) - self.mean_ if has_gaps(X) else self._center(X)
            shared = posterior.embed(self._relational(), rows, nodes, noise_factor)
            return shared / np.linalg.norm(self.components_.astype(float), axis=1)
        if nodes.adjacency.nnz > 0 and hasattr(self, "neighbour_weight_"):
            return beside.embed(self._parts(), self._center(self._filled(X)), nodes)
        Z = self._latent_means(X)[:, : len(self.components_)]
        if nodes.adjacency.nnz == 0 or not self._smooths():
            return Z
        if self._way() == "filter":
            return paper.smooth(nodes.adjacency, nodes.stack(Z), self.power)[-len(Z) :]
        return paper.neighbour_sums(nodes.adjacency, nodes.stack(Z), self.alpha)[-len(Z) :]

    def _way(self):
        """The relation of the fit; model files of early versions do not have it apart."""
        return getattr(self, "relation_", self.relation)

    def _smooths(self):
        """Whether links that are given smooth what content alone says."""
        sums = self._way() == "paper" and self.projection == "smoothed"
        return sums or self._way() == "filter"

    def _parts(self):
        """Loadings of content, neighbours and smoothed content, from what is kept of them."""
        kept = self.components_, self.neighbour_components_, self.smoothed_components_
        W, V, U = (each.T.astype(float) for each in kept)
        factors = self.neighbour_weight_, self.smoothed_weight_
        return beside.Parts(W, V, U, self.noise_variance_, factors, self.power)

    def _filled(self, X):
        """Rows with their gaps filled from their own content."""
        if not has_gaps(X):
            return X
        return gaps.fill(self._content_state(), self._patterns(X))[0].astype(X.dtype)

    def _log_density(self, rows, A):
        """Log density of centred rows and the links among them."""
        if self._shares():
            return posterior.log_density(self._relational(), rows, A, repeatable(self.random_state))
        view = gaussian.View(*self._view())
        if hasattr(self, "neighbour_weight_"):
            return beside.log_density(self._parts(), rows, A)
        if self._way() in ("learnt", "beside", "none"):
            return float(gaussian.log_density(rows, *view).sum())
        if self._way() == "filter":
            return paper.filtered_log_density(view, rows, A, self.power)
        return paper.log_density(view, rows, A, self.alpha, self.gamma)  # type: ignore[arg-type]

    def _content_state(self):
        """What fills gaps: the model of rows as they are, where links mix or smooth them."""
        if not hasattr(self, "content_components_"):
            return self._state()
        W, mean = self.content_components_.T.astype(float), np.asarray(self.mean_, dtype=float)
        return gaps.State(W, mean, np.array([self.content_noise_variance_]))

    def _view(self):
        """Loadings of a row without links, own axes included, and its noise variance."""
        if not hasattr(self, "axes_"):
            return super()._view()
        variances = self.own_variances_.copy()
        variances[: len(self.shared_variances_)] += self.shared_variances_
        return self.axes_.T.astype(float) * np.sqrt(variances), self.noise_variance_
