"""Bayesian supervised dimensionality reduction for classes and labels."""

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin

from gnomon.estimators._bsdr import BayesianReduction, labelled_data
from gnomon.estimators._door import (
    by_rows,
    check_option,
    read_data,
)
from gnomon.estimators._heads import (
    Telling,
    growing_say,
    learn_telling,
    says_something,
    taught_rows,
    told,
)
from gnomon.estimators._predict import LabelledScore
from gnomon.estimators._targets import (
    as_array,
    read_classes,
    read_targets,
    require_classes,
    require_targets,
)
from gnomon.linalg.data import has_gaps
from gnomon.models.bsdr import predict
from gnomon.models.bsdr.fit import Problem, fit
from gnomon.models.bsdr.gibbs import merge_chains
from gnomon.models.bsdr.held_out import class_numbers, held_out, log_chances, of_classes
from gnomon.models.bsdr.outputs import ClassOutputs, SignOutputs
from gnomon.models.gaussian import filling
from gnomon.typing import CallbackLike, OutputsLike, RowsLike, SeedLike

# Latent noise where the number of components is to be found: with 1, five planted classes keep two
# of their four directions, with this nearly all (`benchmarks/defaults.py --only bsdr`).
FOUND_NOISE = 0.1


class BSDR(LabelledScore, ClassifierMixin, BayesianReduction):
    """Bayesian supervised dimensionality reduction: a projection and its probit classifier.

    Rows are projected to a few latent variables z, from which a linear probit model predicts
    the output; projection and classifier are learnt together, with a posterior for both [1]_.
    Outputs are classes (two by a probit, more by the multinomial probit) or several labels,
    0 or 1, of which some may be unknown (NaN).

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of latent variables. "auto" starts from the number of classes less one and lets
        the columnwise prior switch off what is not needed; see `kept_`.
    prior : {"auto", "entry", "column", "row"}, default="auto"
        Which entries of the projection share a precision: none, those of a component, or
        those of a feature. "auto" is "entry" up to 1000 features of dense X, "column" beyond
        and for ``n_components="auto"``.
    projection_prior : "auto" or pair of float, default="auto"
        Shape and scale of the gamma prior of these precisions. "auto" is (1, 1),
        but where it should prune (0.001, 1000) for ``prior="row"`` and (0.01, 100) for
        ``n_components="auto"``.
    weight_prior : pair of float, default=(1, 1)
        The same for the weights and biases of the classifier.
    latent_noise : float or "auto", default="auto"
        Standard deviation of z around the projection of x. "auto" is 1, the paper's, which
        predicts better than less in cross-validation inside training rows
        (benchmarks/bsdr_noise.py), but 0.1 for ``n_components="auto"``: with more the prior
        drops components that classes need (benchmarks/defaults.py).
    standardize : bool or "auto", default="auto"
        Whether features are divided by their standard deviations. They are always centred. "auto"
        is True but for principal components, columns of falling variance that are uncorrelated,
        which are divided by one number.
    proba : {"auto", "plug-in", "integral"}, default="auto"
        Probabilities of the model are those at E[z | x] ("plug-in"), or averaged over the
        posterior of z ("integral"). "auto" is the mean of the former and of a logistic
        regression on the coordinates, no surer than labels left out allow where they are few
        (`class_doubt_`); several labels, ``solver="paper"`` and Gibbs sampling have none.
        Gibbs sampling always averages over its draws.
    n_init : int or "auto", default="auto"
        Number of starts, the first by discriminant analysis, the others random; the one with
        the best bound after a short run is taken. "auto" is 5 where n_components is below the
        number of classes less one, and 1 otherwise.
    solver : {"accelerated", "paper"}, default="accelerated"
        How the bound is raised: by sweeps with a joint step for projection and z and a change
        of basis, three to an accelerated step; or by Algorithm 1 of [1]_ as it is printed, each
        factor in turn from one random start, for study. ``n_init`` is then not used, and a
        step of ``max_iter`` is one sweep; the paper takes 500 of them.
    inference : {"variational", "gibbs"}, default="variational"
        Mean-field approximation, or that followed by Gibbs sampling from it.
    n_chains, n_draws, n_warmup : int, default=4, 1000, 500
        Of Gibbs sampling: chains, draws kept of each, rounds dropped before.
    max_iter : int, default=100
        Most accelerated steps, each of three sweeps over the factors.
    tol : float, default=1e-4
        The fit ends when a step raises the bound by less than this per row.
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every step; it stops the fit by
        returning True. Gibbs sampling calls it after every round, with the states of all chains
        and the log joint density of the first; True ends it with the draws so far.
    random_state : int, RandomState instance, Generator or None, default=None
        Random starts, and the draws of Gibbs sampling.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Posterior mean of the projection: transform is ``(X - mean_) @ components_.T``. By
        falling relevance.
    loadings_sd_ : ndarray of shape (n_components, n_features)
        Posterior standard deviations of `components_`.
    mean_ : ndarray of shape (n_features,)
    latent_noise_ : float
        The latent noise that was given or chosen.
    n_components_ : int
        Number of components that `transform` returns.
    relevance_ : ndarray
        Spread of the projections of the training rows along each component that was tried,
        in units of the latent noise, falling.
    kept_ : ndarray of bool
        Which of them are more than noise (above 0.1); with ``n_components="auto"`` only these
        are returned.
    feature_relevance_ : ndarray of shape (n_features,)
        Length of each feature's loadings, in units of its standard deviation.
    weights_ : ndarray of shape (n_components, n_outputs)
        Weights of the classifier on z.
    bias_ : ndarray of shape (n_outputs,)
    weights_covariance_ : ndarray of shape (n_outputs, 1 + n_components, 1 + n_components)
        Posterior covariance of bias and weights of each output.
    classes_ : ndarray
        Class names; the numbers of the labels for several labels.
    class_head_ : ClassHead or None
        For ``proba="auto"``: the logistic regression on the coordinates.
    class_sharpness_ : float
        What its log odds and those of the model are multiplied by, at most 1.
    class_shares_, class_doubt_ : ndarray of shape (n_classes,), float
        Shares of the classes among the labelled rows, and how much of the probabilities these
        are: 0.99 where x says nothing of the classes.
    draws_ : dict of str to ndarray of shape (n_chains, n_draws, ...)
        For ``inference="gibbs"``: "projection", "weights" and "bias", turned so that they can
        be averaged, and "log_joint", "bias_contrasts" and "score_spread", which no turn changes.
    rhat_, ess_ : dict of str to ndarray
        Split R-hat and effective sample sizes of the last three.
    filling_ : Filling or None
        PPCA of the rows in standard units, by which missing values are filled; None where the
        rows of the fit were sparse or in blocks.
    objective_ : list of float
        The lower bound on log p(y | X) at every step.
    n_iter_, n_features_in_, converged_ : int, int, bool
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    BSDRRegressor : The same for numeric outputs.
    MultinomialProbit : The classifier without reduction.

    Notes
    -----
    Rows without a label (-1 or None; all labels NaN) are left out of the fit, with a warning.
    In this model z is generated from x, so such rows say nothing of the projection; in the
    mean-field approximation they would even shrink it.

    The model has no density of x. Missing values are filled at their means given the rest of
    the row, by PPCA of all rows in standard units, in `fit` and after it; their covariance goes
    on into `posterior` and `predict_proba`.

    References
    ----------
    .. [1] M. Gönen, "Bayesian supervised dimensionality reduction", IEEE Transactions on
       Cybernetics 43 (2013), 2179-2189.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gnomon import BSDR
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BSDR(n_components=1, random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (150, 1)
    >>> bool(model.score(X, y) > 0.95)
    True
    >>> mean, covariance = model.posterior(X[:2])
    >>> covariance.shape
    (2, 1, 1)
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        prior: str = "auto",
        projection_prior: str | tuple[float, float] = "auto",
        weight_prior: tuple[float, float] = (1.0, 1.0),
        latent_noise: float | str = "auto",
        standardize: bool | str = "auto",
        proba: str = "auto",
        n_init: int | str = "auto",
        solver: str = "accelerated",
        inference: str = "variational",
        n_chains: int = 4,
        n_draws: int = 1000,
        n_warmup: int = 500,
        max_iter: int = 100,
        tol: float = 0.0001,
        callback: CallbackLike = None,
        random_state: SeedLike = None,
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.projection_prior = projection_prior
        self.weight_prior = weight_prior
        self.latent_noise = latent_noise
        self.standardize = standardize
        self.proba = proba
        self.n_init = n_init
        self.solver = solver
        self.inference = inference
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: RowsLike, y: OutputsLike) -> Self:
        """Fit projection and classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values in a dense X.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Classes, -1 or None for rows without one (-1 and 1 alone are two classes); or labels 0
            and 1, NaN where unknown.

        Returns
        -------
        self : BSDR
        """
        check_option("proba", self.proba, ("auto", "plug-in", "integral"))
        X = read_data(self, X, fitting=True, min_samples=2)
        self.filling_ = filling.learn(X)
        X = self._filled(X)
        settings = self._settings(X.shape[1])
        require_targets(y, "BSDR")
        outputs, labelled, classes = _read_outputs(y, X.shape[0])
        problem = Problem(labelled_data(X, labelled, "BSDR"), outputs)
        found = fit(problem, settings, self._loop(problem))
        self._keep(found, X.dtype)
        self.classes_, self._are_classes = classes, isinstance(outputs, ClassOutputs)
        self._keep_head(problem, settings, found)
        self._keep_run(found.run, max_iter=self.max_iter)
        return self

    @by_rows
    def predict_proba(self, X: RowsLike) -> np.ndarray:
        """Probabilities of the classes, or of every label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
            Rows sum to one for classes.
        """
        X = self._read(X)
        if self.inference == "gibbs":
            return of_classes(self._average_probabilities(X))
        Z = np.asarray(self._project(X), dtype=float)
        P = of_classes(self._probabilities(X, Z))
        # Model files of early versions have no shares: they were plug-in.
        shares = getattr(self, "class_shares_", None)
        if self.proba != "auto" or shares is None:
            return P
        telling = Telling(self.class_head_, self.class_sharpness_, shares, self.class_doubt_)
        return told(telling, log_chances(P), Z)

    @by_rows
    def predict(self, X: RowsLike) -> Any:
        """Most probable class, or the labels that are more probable than not.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_labels)
        """
        P = self.predict_proba(X)
        if self._are_classes or self.weights_.shape[1] == 1:
            return self.classes_[np.argmax(P, axis=1)]
        return (P > 0.5).astype(int)

    def __sklearn_tags__(self):
        """Several labels are welcome."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _keep_head(self, problem, settings, found):
        """The head of the map, where probabilities are not the model's alone."""
        self.class_head_ = self.class_shares_ = None
        own = self.proba != "auto" or settings.solver == "paper" or settings.sampling is not None
        labels = None if own else class_numbers(problem.outputs)
        if labels is None:
            return
        rows, weights = taught_rows(labels), np.ones(len(labels))
        Z = problem.X.rows(rows).less_mean(self.mean_) @ self.components_.T
        says = says_something(problem.X, labels, weights, self.standardize)
        evidence = held_out(problem, settings, found), says
        # Of itself the null solution has nothing to say but that labels are few.
        say = 0.5 if found.kept.any() else growing_say(labels)
        telling = learn_telling(Z, rows, labels, weights, evidence, say)
        self.class_head_, self.class_sharpness_, self.class_shares_, self.class_doubt_ = telling

    def _probabilities(self, X, Z):
        B, C = np.vstack([self.bias_, self.weights_]), self.weights_covariance_
        if self.proba == "integral":
            return predict.integrated(Z, self._latent_covariances(X, Z), B, C, self._are_classes)
        P = predict.plug_in(Z, B, C, self._are_classes)
        if has_gaps(X):
            rows = np.isnan(X).any(axis=1)
            unseen = self._gap_covariances(X[rows])
            P[rows] = predict.integrated(Z[rows], unseen, B, C, self._are_classes)
        return P

    def _latent_noise(self):
        """As given, or the default for a number of components that is given or to be found."""
        if isinstance(self.latent_noise, str):
            check_option("latent_noise", self.latent_noise, ("auto",))
            return FOUND_NOISE if self.n_components == "auto" else 1.0
        return super()._latent_noise()

    def _average_probabilities(self, X):
        return predict.from_draws(
            self._drawn_projections(X),
            merge_chains(self.draws_["weights"]),
            merge_chains(self.draws_["bias"]),
            self._inputs.noise,
            self._are_classes,
        )


def _read_outputs(y, n):
    """Outputs of the labelled rows, which rows these are, and names of classes or labels."""
    shape = as_array(y).shape
    return _read_labels(y, n) if len(shape) == 2 and shape[1] > 1 else _read_classes(y, n)


def _read_classes(y, n):
    """Two classes are one sign, more are the largest of their scores."""
    classes = read_classes(y, n)
    require_classes(classes, "BSDR")
    labels = classes.labels[classes.labelled]
    if len(classes.names) == 2:
        outputs = SignOutputs(np.where(labels == 1, 1.0, -1.0)[:, None])
        return outputs, classes.labelled, classes.names
    return ClassOutputs(labels, len(classes.names)), classes.labelled, classes.names


def _read_labels(y, n):
    """A sign for every label, 0 where it is unknown."""
    targets = read_targets(y, n, "multilabel")
    labelled = targets.observed.any(axis=1)
    if not labelled.any():
        raise ValueError("y has no known label; BSDR needs rows with labels 0 or 1")
    present = targets.Y + targets.coding.center > 0.5
    signs = np.where(targets.observed, np.where(present, 1.0, -1.0), 0.0)[labelled]
    return SignOutputs(signs), labelled, np.arange(signs.shape[1])
