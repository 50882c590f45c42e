"""PRPCA and its relatives as a scikit-learn estimator."""

import numpy as np

from gnomon.estimators import _linked
from gnomon.estimators._door import (
    check_integer,
    check_option,
    check_real,
    read_data,
    repeatable,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._linked_learnt import learnt
from gnomon.estimators._linked_rows import LinkedRows
from gnomon.estimators.links import check_sample_index, read_links
from gnomon.linalg.solve import fix_signs

FITS = {"paper": _linked.paper, "filter": _linked.filter, "learnt": learnt}
# Attributes that only some fits have; a new fit forgets those of the last.
OPTIONAL = (
    "axes_",
    "shared_variances_",
    "own_variances_",
    "smoothness_",
    "link_gain_",
    "permuted_link_gain_",
    "link_components_",
    "link_mean_",
    "link_noise_variance_",
)


class PRPCA(IterativeFit, LinkedRows):
    """Dimension reduction for rows that are linked, like papers by citations.

    Three ways to use the links, and none of them needs more than sparse products:

    * ``relation="paper"``: probabilistic relational PCA [1]_, exact, at the cost of a
      truncated SVD. Its axes are those of neighbour sums.
    * ``relation="filter"``: PCA of content that is smoothed over the graph by a fixed low-pass
      filter. The cheapest good choice where the embedding feeds a classifier.
    * ``relation="learnt"``: a generative model in which linked rows share a smooth part, with
      a strength that is learnt for each axis. It has a likelihood that may be compared with
      PPCA's, fills in missing content, embeds rows by their links alone, and leaves links
      aside that are noise.

    Without links each of them is PPCA.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.
    relation : {"paper", "filter", "learnt"}, default="paper"
        How links enter, see above.
    alpha : float, default=1.0
        "paper": weight of a row itself beside its neighbours, alpha I + A.
    gamma : float, default=1e-6
        "paper": what is added to the precision among rows, gamma I + (alpha I + A)^2, so that it
        is not singular.
    solver : {"svd", "em"}, default="svd"
        "paper": the closed form, or expectation-maximisation.
    projection : {"content", "smoothed"}, default="content"
        "paper": what `transform` projects. "content" is the model's posterior mean, which
        does not depend on the links of a row. "smoothed" projects the neighbour sums
        (alpha I + A) X, where links are given; it is the better one for classification.
    power : int, default=2
        "filter": how often content is averaged over the links.
    own_components : int, default=60
        "learnt": number of further axes, for variation that is a row's own; at most
        what half of the rows or features leaves beside ``n_components``.
    temper : float, default=1.0
        "learnt": factor on the noise that content is trusted by in `transform`. 1 is the
        posterior mean; a Gaussian model of words trusts single documents too much, and about 10
        is better where the embedding feeds a classifier.
    link_components : int, default=0
        Number of principal axes of the adjacency itself, appended to the embedding. They see
        who is linked to whom and no content; worthwhile where the links carry classes of
        their own, as in co-link graphs of web pages.
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
        Starts of the solvers, probes of the spectrum of the graph, its permutation and folds.
        None stands for 0, so that two fits agree.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Loadings W'. For "learnt" those of the shared part, or of the whole latent part where
        links are not used.
    mean_ : ndarray of shape (n_features,)
        For "paper" the relational mean, in which rows with many links weigh more.
    noise_variance_ : float
    links_used_ : bool
        Whether the embedding depends on links. "learnt" does without them where a graph with
        the same links between permuted rows explains the content as well.
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
    link_components_ : ndarray of shape (link_components, n_samples)
        Loadings of the adjacency, where ``link_components`` is not 0.
    training_scores_ : ndarray
        Content of the rows of the fit on the axes; new rows are smoothed together with it.
    sample_index_ : ndarray of shape (n_samples,)
        The node of each row of the fit.
    objective_ : list of float
        The log likelihood at every iteration; for "paper" less a constant.
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
        n_components=2,
        *,
        relation="paper",
        alpha=1.0,
        gamma=1e-6,
        solver="svd",
        projection="content",
        power=2,
        own_components=60,
        temper=1.0,
        link_components=0,
        max_iter=100,
        tol=None,
        callback=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.relation = relation
        self.alpha = alpha
        self.gamma = gamma
        self.solver = solver
        self.projection = projection
        self.power = power
        self.own_components = own_components
        self.temper = temper
        self.link_components = link_components
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(self, X, y=None, *, links=None, sample_index=None):
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. NaN marks missing values in a dense X.
        y : None
            Ignored.
        links : Links, array-like or sparse matrix of shape (n_samples, n_samples), default=None
            Links among the rows. Under cross-validation pass `Links` over all rows,
            and ``sample_index``.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row, where links has other nodes besides.

        Returns
        -------
        self : PRPCA
        """
        self._check_parameters()
        X = read_data(self, X, fitting=True, min_samples=2)
        n = X.shape[0]
        A = None if links is None else read_links(links, n, sample_index).adjacency
        index = np.arange(n) if sample_index is None else check_sample_index(sample_index)
        high_is = f", the least of {n} rows and {X.shape[1]} features"
        q = check_integer(
            "n_components", self.n_components, low=1, high=min(X.shape), high_is=high_is
        )
        rng = repeatable(self.random_state)
        if A is None:
            fitted = _linked.without_links(self, X, q, rng)
        else:
            fitted = FITS[self.relation](self, X, A, q, rng)
        axes = None
        if self.link_components:
            axes = self._fit_link_axes(A, n, rng)
        return self._keep(X, fitted, index, axes)

    def fit_transform(self, X, y=None, *, links=None, sample_index=None):
        """Fit the model and embed its rows, with their links.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : None
            Ignored.
        links, sample_index
            As in `fit`.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components + link_components)
        """
        self.fit(X, y, links=links, sample_index=sample_index)
        return self.transform(X, links=links, sample_index=sample_index)

    def _check_parameters(self):
        check_option("relation", self.relation, tuple(FITS))
        check_option("solver", self.solver, ("svd", "em"))
        check_option("projection", self.projection, ("content", "smoothed"))
        check_real("alpha", self.alpha, low=0, open_low=True)
        check_real("gamma", self.gamma, low=0)
        check_integer("power", self.power, low=1)
        check_integer("own_components", self.own_components, low=0)
        check_real("temper", self.temper, low=0, open_low=True)
        check_integer("link_components", self.link_components, low=0)
        check_integer("max_iter", self.max_iter, low=1)
        if self.tol is not None:
            check_real("tol", self.tol, low=0)

    def _fit_link_axes(self, A, n, rng):
        if A is None:
            raise ValueError(
                f"link_components == {self.link_components!r} needs links; accepted is 0 without"
            )
        check_integer(
            "link_components", self.link_components, low=0, high=n, high_is=", the number of rows"
        )
        return _linked.link_axes(A, self.link_components, rng)

    def _keep(self, X, fitted, index, axes):
        for name in OPTIONAL:
            if hasattr(self, name):
                delattr(self, name)
        self.mean_ = np.asarray(fitted.mean, dtype=X.dtype)
        self.components_ = np.ascontiguousarray(fix_signs(fitted.view.W).T.astype(X.dtype))
        self.noise_variance_ = float(fitted.view.sigma2)
        self.links_used_ = fitted.links_used
        self.sample_index_ = index
        if fitted.state is not None:
            self._keep_relational(fitted, X.dtype)
        if axes is not None:
            self.link_components_ = axes.view.W.T
            self.link_mean_ = axes.mean
            self.link_noise_variance_ = float(axes.view.sigma2)
        self.training_scores_ = self._training_scores(X)
        self._keep_run(fitted.run, max_iter=self.max_iter)
        return self

    def _keep_relational(self, fitted, dtype):
        state = fitted.state
        self.axes_ = np.ascontiguousarray(fix_signs(state.U).T.astype(dtype))
        self.shared_variances_, self.own_variances_ = state.a, state.c
        self.smoothness_ = state.beta
        self.link_gain_ = fitted.gain
        self.permuted_link_gain_ = fitted.permuted_gain

    @property
    def _n_features_out(self):
        return len(self.components_) + self.link_components
