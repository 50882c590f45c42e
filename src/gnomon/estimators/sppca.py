"""Supervised and semi-supervised probabilistic PCA."""

from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from gnomon.estimators._base import LatentPosterior, LinearGaussianModel
from gnomon.estimators._door import (
    by_rows,
    check_integer,
    check_noise,
    check_option,
    check_real,
    check_size,
    check_strength,
    generator,
    in_memory_by_rows,
    read_data,
    read_weights,
    repeatable,
    take_rows,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._heads import share_of_shares
from gnomon.estimators._predict import PredictsOutputs
from gnomon.estimators._targets import (
    KINDS,
    columns_of,
    contrasts,
    decode_covariance,
    decode_predictions,
    decode_scores,
    no_coding,
    restore,
    settled,
)
from gnomon.estimators.links import TakesLinks
from gnomon.estimators.selection import ChoosesSize
from gnomon.linalg.data import as_data, has_gaps
from gnomon.linalg.standardize import varies
from gnomon.models.sppca import parts, predict, scores
from gnomon.models.sppca.fit import Prediction, Settings, SppcaFit, fit, fit_moments
from gnomon.models.sppca.statistics import State
from gnomon.models.strength import fit as strength
from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.links import with_unseen_columns
from gnomon.stats import gaussian
from gnomon.typing import CallbackLike, GraphLike, OutputsLike, RowsLike, SeedLike

SOLVERS = ("auto", "moments", "dual", "subspace", "em")
SCALES = ("auto", "latent", "energy")
LIKELIHOODS = ("gaussian", "probit")
# What moments need of parameters.
WITH_MOMENTS = {"supervision": "likelihood", "likelihood": "gaussian"}
# What a probit likelihood needs of other parameters.
WITH_PROBIT = {"supervision": "likelihood", "noise": "learn", "target_mean": "likelihood"}


def _keeps_moments(model):
    """Whether moments of the rows are all that the fit needs."""
    said = {name: getattr(model, name) for name in ("supervision", "likelihood", "solver")}
    if said not in ({**WITH_MOMENTS, "solver": solver} for solver in ("auto", "moments")):
        raise AttributeError(
            f"{', '.join(f'{name} == {value!r}' for name, value in said.items())}; partial_fit "
            "keeps moments, not rows: accepted are supervision='likelihood', "
            "likelihood='gaussian', and the solvers 'auto' and 'moments'"
        )
    if model.n_components == "auto":
        raise AttributeError(
            "n_components == 'auto'; partial_fit keeps moments, not rows: accepted are integers"
        )
    return True


def _with_classes(labelled, before, after, d):
    """Moments of labelled rows with an indicator for classes that came later."""
    if labelled is None or after.kind != "classes":
        return labelled
    places = np.searchsorted(after.classes, before.classes)
    return parts.with_columns(labelled, d, places, len(after.classes))


def _coded(coding, labelled, d):
    """The coding with the units of y, and how its columns become codes."""
    if labelled is None:
        return no_coding(), parts.Code(np.zeros(0), np.zeros((0, 0)))
    mean, sd = parts.spread_of_outputs(labelled, d)
    coding = settled(coding, mean, sd)
    if coding.kind == "classes":
        return coding, parts.Code(np.zeros(len(mean)), contrasts(len(mean)))
    # What does not vary but for rounding is zero in these units.
    return coding, parts.Code(coding.center, np.diag(varies(sd, mean) / coding.scale))


class TargetDistribution(NamedTuple):
    """Gaussian prediction of the outputs, one row per sample.

    Attributes
    ----------
    mean : ndarray of shape (n_samples, n_outputs)
    covariance : ndarray of shape (n_samples, n_outputs, n_outputs)
    """

    mean: np.ndarray
    covariance: np.ndarray


class SPPCA(ChoosesSize, TakesLinks, PredictsOutputs, IterativeFit, LinearGaussianModel):
    """Supervised probabilistic PCA, semi-supervised where y has unlabelled rows.

    Inputs and outputs share latent variables: x = mean + W z + noise, y = W_y z + noise. With
    all rows labelled this is SPPCA [1]_, with some it is S2PPCA, with none it is PPCA. How much
    the outputs turn the components is the strength of supervision.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of latent dimensions. "auto" takes the smallest of 2, 3, 5, 8 and 13 on whose map
        the nearest labelled row (for numbers a regression) predicts held-out rows within .02 of
        the best.
    supervision : "auto", "likelihood" or float in [0, 1], default="auto"
        A number is the share of the energy that the outputs hold, once they have been
        completed on all rows by a tuned ridge regression: 0 is PCA, 1 keeps only what
        predicts y. "auto" chooses it by trials on the labelled rows, and lets unlabelled rows
        take part with the class on which all candidates agree; where the labels are not
        predictable from x it is 0. "likelihood" is the maximum-likelihood S2PPCA of [1]_; with
        few labels its subspace is nearly PCA's.
    target : {"auto", "classes", "numeric", "multilabel"}, default="auto"
        What y holds. "auto": strings, integers, booleans and categories are classes, floats
        are numbers unless they are few whole numbers that repeat, a matrix of 0, 1 and NaN is
        multilabel and any other is numeric.
    solver : {"auto", "moments", "dual", "subspace", "em"}, default="auto"
        How "likelihood" finds its maximum: from second moments in one pass, in the span of the
        rows, by a growing subspace with few products, or by the EM of [1]_ as printed, for study
        (standard normal loadings, noise variances 1e-5, mean of the labelled y; rows that lack
        an output count as unlabelled), whose start asks for X of variances near one. "auto"
        takes the cheapest for the shape of X.
    noise : {"learn", "per_output"}, float or pair of floats, default="learn"
        For "likelihood": one noise level for x and one for y are learnt, or one for every
        output. A float ties the noise of y to that of x at this ratio, a pair fixes both.
        Numeric outputs have unit variance here, classes are orthonormal contrasts in the order
        of their names.
    target_mean : {"likelihood", "labelled"}, default="likelihood"
        For "likelihood": the mean of y is learnt, or kept at that of the labelled rows.
    prior : float, default=0.0
        For "likelihood": precision of a Gaussian prior on the loadings, in units of the mean
        variance of x and of y. Zero is maximum likelihood. Scores of a probit likelihood, which
        could grow without end, have a precision of 0.3 besides.
    likelihood : {"gaussian", "probit"}, default="gaussian"
        For "likelihood" and classes, or 0/1 indicators: Gaussian codes as in [1]_, or scores of
        which the largest is the class (for indicators the positive ones are set), the future
        work of [1]_. Then `predict_proba` is that of the model alone.
    scale : {"auto", "latent", "energy"}, default="auto"
        Scale of the coordinates. "latent" is the posterior mean of z, nearly whitened;
        "energy" stretches each axis to the length it explains, in units of x, and with
        ``supervision=0`` is PCA's. "auto" is "latent" for "likelihood", else "energy".
    max_iter : int, default=500
        Most iterations of "likelihood" and of any fit to rows with gaps, or rounds of
        "subspace". Without gaps a number needs none.
    tol : float, default=1e-7
        An iteration ends when the log likelihood changes by less than this per entry of X.
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every iteration; it stops the
        fit by returning True.
    random_state : int, RandomState instance, Generator or None, default=None
        Draws of "auto", "subspace" and "em". None stands for 0, so that two fits agree.
    warm_start : bool, default=False
        Whether "auto" keeps the strength of the fit before unless another is clearly better, so
        that labels that are added one by one do not turn the map with each of them.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The loadings W'.
    mean_ : ndarray of shape (n_features,)
    noise_variance_ : float
    projection_ : ndarray of shape (n_features, n_components)
        ``transform(X)`` is ``(X - mean_) @ projection_``.
    latent_scale_ : ndarray of shape (n_components,)
        Coordinates, of `transform` or of `posterior`, times this are the latent variables z.
    latent_covariance_ : ndarray of shape (n_components, n_components)
        Posterior covariance of z, not of the coordinates, given complete x.
    coef_ : ndarray of shape (n_features, n_outputs)
        Regression of the coded outputs on x: ``target_mean_ + (X - mean_) @ coef_``.
    target_mean_ : ndarray of shape (n_outputs,)
    target_covariance_ : ndarray of shape (n_outputs, n_outputs)
        Covariance of the coded outputs given x; that of classes is wide enough for the labelled
        rows not to be much surer than rows left out.
    target_widening_ : ndarray of shape (n_outputs,)
        For "likelihood" and numbers: how much larger than this covariance says the variances
        of the predictions are, as labelled rows show; `predict` counts with it.
    target_components_ : ndarray of shape (n_components, n_outputs)
        Loadings W_y' of the coded outputs, of the completed ones unless "likelihood".
    target_noise_variance_ : ndarray of shape (n_outputs,)
    target_coding_ : Coding
        How y became columns; ``classes`` for classes.
    classes_ : ndarray of shape (n_classes,)
        Only where y holds classes.
    class_head_ : ClassHead or None
        Logistic regression on a map of 20 components, or on that of "likelihood", which has
        half a say in the probabilities of classes: ``(X - mean_) @ coef + intercept``. Where
        links are used it sees all that is smoothed over them, and ``say`` grows with the labels
        a class. None where y holds no classes, or where labels left out could not be found.
    class_shares_ : ndarray of shape (n_classes,)
        Shares of the classes among the labelled rows, a prior of the probabilities.
    class_doubt_ : float
        How much of the probabilities is `class_shares_`, whatever the row: that of half a row
        among the labelled ones; nearly all where rows left out are not found better than by these
        shares, so that the map says nothing of the classes.
    supervision_ : float or "likelihood"
        The strength used.
    supervision_directions_ : int
        The principal directions that the outputs were completed from; for "likelihood" not there.
    supervision_curve_ : dict of str to ndarray
        For "auto", where there was something to try: the strengths and pools of principal
        components tried, their losses and the criterion.
    links_used_ : bool
        Where the fit had links: whether they serve the outputs. Then ``components_``, ``mean_``,
        ``projection_`` and ``coef_`` are those of blocks of content, as `linked_rows_` makes
        them, and rows have no density and no inverse of their own; gaps are filled before.
    linked_rows_ : LinkedRows
        Where links are used: axes of content, steps over the links, coordinates of the rows.
    sample_index_ : ndarray of shape (n_samples,)
        Where links are used: the node of each row of the fit.
    n_components_ : int
        The number of components.
    size_scores_, size_reason_ : dict of int to float, str
        For "auto": the scores of the sizes tried, and why this one was taken.
    input_share_, target_share_ : ndarray of shape (n_components,)
        Share of the energy of x, and of the outputs, that each component explains.
    likelihood_ : str
        "gaussian" or "probit". With "probit" the outputs that `coef_` and `target_components_`
        speak of are contrasts of the scores, or scores of the indicators.
    log_likelihood_ : float
        For "likelihood": log likelihood of the data (less the penalty of the prior).
    objective_ : list of float
        The log likelihood (less its penalty) at every iteration. For a number or "auto" that
        of x and the completed outputs where X has gaps; the share of the energy that the
        components hold where it has none.
    n_iter_ : int
        Iterations; with gaps and a number or "auto", those after PPCA has filled them.
    moments_, labelled_moments_ : Moments
        After `partial_fit`: number, weight, mean and scatter of x over all rows so far, and of x
        and y over the labelled ones, None where none are.
    n_passes_ : int
        Passes over X, those for its mean left out.
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    PPCA : Without outputs.
    KernelSPPCA : With nonlinear components.

    References
    ----------
    .. [1] S. Yu, K. Yu, V. Tresp, H.-P. Kriegel and M. Wu, "Supervised probabilistic principal
       component analysis", KDD 2006, 464-473.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gnomon import SPPCA
    >>> X, y = load_iris(return_X_y=True)
    >>> y[5:45] = y[55:95] = y[105:145] = -1
    >>> model = SPPCA(n_components=2).fit(X, y)
    >>> model.transform(X).shape
    (150, 2)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        supervision: float | str = "auto",
        target: str = "auto",
        solver: str = "auto",
        noise: str | float | tuple[float, float] = "learn",
        target_mean: str = "likelihood",
        prior: float = 0.0,
        likelihood: str = "gaussian",
        scale: str = "auto",
        max_iter: int = 500,
        tol: float = 1e-7,
        callback: CallbackLike = None,
        random_state: SeedLike = None,
        warm_start: Any = False,
    ) -> None:
        self.n_components = n_components
        self.supervision = supervision
        self.target = target
        self.solver = solver
        self.noise = noise
        self.target_mean = target_mean
        self.prior = prior
        self.likelihood = likelihood
        self.scale = scale
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state
        self.warm_start = warm_start

    def fit(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        sample_weight: ArrayLike | None = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
        chunks: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. NaN marks missing values in a dense X.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs. -1 or None marks rows without class, NaN missing numbers or indicators; -1
            and 1 alone are two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of two is a row that occurs twice.
        links : Links, array-like or sparse matrix, or "neighbours", default=None
            Links among the rows. Content smoothed over them, or axes of the graph beside
            content, take the place of X where they find the outputs of labelled rows clearly
            better. "neighbours" takes the graph of the nearest rows: content of each row
            beside the mean of the 5 or 10 rows like it, over one to four steps.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row, where links has other nodes besides.
        chunks : array-like of int of shape (n_samples,), default=None
            Groups of rows that share a class, -1 for rows in none (`chunks_from_pairs` makes
            them of pairs). A label of one member is that of all; members of a chunk without
            label vote together where unlabelled rows take part.

        Returns
        -------
        self : SPPCA
        """
        if self.n_components == "auto":
            known = {"links": links, "sample_index": sample_index, "chunks": chunks}
            return self._fit_chosen(X, y, sample_weight=sample_weight, **known)
        settings, before = self._settings(), self._chosen_before()
        X = read_data(self, X, fitting=True, min_samples=2, look=links is not None)
        check_size(settings.n_components, X.shape)
        problem, coding = self._read_problem(X, y, sample_weight, chunks, settings)
        self.likelihood_ = settings.likelihood
        if settings.likelihood == "probit":
            problem = self._with_signs(problem, coding)
        space = None
        if links is not None:
            with_head = coding.kind == "classes" and self.supervision != "likelihood"
            place = links, sample_index
            problem, space = self._joined(problem, X.shape[0], *place, settings, with_head)
        if self.supervision == "likelihood":
            found = fit(problem, settings, self._loop(problem))
            self._keep(X.dtype, coding, found, "likelihood", found.n_passes)
            self.log_likelihood_ = found.log_likelihood
            self._keep_predictions(problem, found)
            self._warn_at_floor(*found.at_floor)
            run: Any = found.run
        else:
            chosen = self._strength_settings(settings, before)
            linked = links is not None and self.links_used_
            strong = (
                self._fit_linked(problem, chosen)
                if linked
                else self._fit_strength(problem, chosen, space)
            )
            self._keep(X.dtype, coding, strong.fitted, strong.strength, strong.passes)
            self.supervision_directions_ = strong.n_directions
            self._keep_head(problem, strong.fitted)
            if strong.curve is not None:
                self.supervision_curve_ = strong.curve._asdict()
            run = strong.run
        self._keep_run(run, max_iter=self.max_iter)
        return self

    @available_if(_keeps_moments)
    def partial_fit(
        self, X: RowsLike, y: OutputsLike = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model to these rows and all that `partial_fit` was given before, exactly.

        Rows are not kept, only moments: of x over all rows, and of x and y over the labelled
        ones. After the last part the model is that of `fit` with all rows at once, whatever the
        parts; a class may come late. What needs rows is left out: the head of `predict_proba`,
        so that probabilities are those of the model alone, and `target_widening_`. After `fit`
        it begins anew.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            More rows, without missing values. With those before at least as many as components.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs as in `fit`; a row has all of them or none. What kind they are is said by
            the first part that has any.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of two is a row that occurs twice.

        Returns
        -------
        self : SPPCA

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from gnomon import SPPCA
        >>> X, y = load_iris(return_X_y=True)
        >>> model = SPPCA(2, supervision="likelihood")
        >>> for rows in np.array_split(np.arange(150), 5):
        ...     model = model.partial_fit(X[rows], y[rows])
        >>> whole = SPPCA(2, supervision="likelihood").fit(X, y)
        >>> bool(np.allclose(model.get_covariance(), whole.get_covariance()))
        True
        """
        settings, before = self._settings(), getattr(self, "moments_", None)
        X = as_data(read_data(self, X, fitting=before is None, allow_nan=False))
        weights = read_weights(sample_weight, X.shape[0])
        coding = no_coding() if before is None else self.target_coding_
        columns, known, new = columns_of(y, X.shape[0], self.target, coding)
        seen = parts.see(X, columns[known], known, weights)
        if before is not None:
            earlier = _with_classes(self.labelled_moments_, coding, new, X.shape[1])
            seen = parts.join(parts.Seen(before, earlier), seen)
        check_size(settings.n_components, (seen.every.n_rows, X.shape[1]))
        coding, code = _coded(new, seen.labelled, X.shape[1])
        found = fit_moments(seen, code, settings, self._loop(seen))
        self._keep(X.dtype, coding, found, "likelihood", found.n_passes)
        return self._keep_moments(seen, settings, found)

    def _keep_moments(self, seen, settings, found):
        """What a fit of moments leaves besides; a head would need rows."""
        self.moments_, self.labelled_moments_ = seen
        self.likelihood_, self.class_head_ = settings.likelihood, None
        self.log_likelihood_ = found.log_likelihood
        if self.target_coding_.kind == "classes":
            shares = seen.labelled.mean[len(self.mean_) :]
            self.class_shares_, self.class_doubt_ = shares, share_of_shares(seen.labelled.weight)
        self._warn_at_floor(*found.at_floor)
        self._keep_run(found.run, max_iter=self.max_iter)
        return self

    def fit_transform(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
        **fit_params: Any,
    ) -> np.ndarray:
        """Fit the model and project its rows, with their links.

        Parameters
        ----------
        X, y, links, sample_index
            As in `fit`.
        **fit_params : dict
            ``sample_weight`` and ``chunks``.

        Returns
        -------
        T : ndarray of shape (n_samples, n_components)
        """
        graph = {"links": links, "sample_index": sample_index}
        return self.fit(X, y, **graph, **fit_params).transform(X, **graph)

    @by_rows
    def transform(
        self, X: RowsLike, *, links: GraphLike = None, sample_index: ArrayLike | None = None
    ) -> np.ndarray:
        """Coordinates of every row, from its inputs alone, and its links where these are used.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to project. NaN marks missing values.
        links : Links, array-like or sparse matrix, default=None
            Links of the rows, as in `PRPCA.transform`: among themselves, among the rows of
            the fit and then these, or with ``sample_index`` among all nodes.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        T : ndarray of shape (n_samples, n_components)
        """
        X = self._read(X, links, sample_index)
        return predict.coordinates(self._fitted(), X)

    @by_rows
    def posterior(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
    ) -> LatentPosterior:
        """Posterior of the coordinates of every row, given x or given x and y.

        Its mean given x is what `transform` gives. Coordinates times ``latent_scale_`` are the
        latent variables z of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to project. NaN marks missing values, which widen the posterior.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs of the rows where they are known, coded as in `fit`.
        links : Links, array-like or sparse matrix, default=None
            Links of the rows, as in `PRPCA.transform`: among themselves, among the rows of
            the fit and then these, or with ``sample_index`` among all nodes.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components).
        """
        X = self._read(X, links, sample_index)
        by_likelihood, own = self.supervision_ == "likelihood", self._scores()
        posterior = predict.posterior if by_likelihood else predict.completed_posterior
        if own is not None:
            posterior = partial(scores.posterior, scores=own)
        return LatentPosterior(*posterior(self._fitted(), X, *self._read_outputs(y, X.shape[0])))

    @in_memory_by_rows
    def inverse_transform(self, Z: RowsLike) -> np.ndarray:
        """Mean of the rows that have these coordinates, E[x | z].

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Coordinates as `transform` gives them.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        self._refuse_linked("inverse_transform")
        Z = np.asarray(Z)
        matches = hasattr(self, "latent_scale_") and Z.shape[1:] == self.latent_scale_.shape
        return super().inverse_transform(Z * self.latent_scale_ if matches else Z)

    @by_rows
    def predict_distribution(
        self, X: RowsLike, *, links: GraphLike = None, sample_index: ArrayLike | None = None
    ) -> TargetDistribution:
        """Mean and covariance of the outputs of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values, which widen the prediction.
        links : Links, array-like or sparse matrix, default=None
            Links of the rows, as in `PRPCA.transform`: among themselves, among the rows of
            the fit and then these, or with ``sample_index`` among all nodes.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        distribution : TargetDistribution
            Named tuple (mean, covariance), in the units of y; for classes a column per class.
        """
        mean, covariances, pattern = self._outputs_given(self._read(X, links, sample_index))
        coding = self.target_coding_
        covariance = decode_covariance(covariances, coding)[pattern]
        return TargetDistribution(decode_scores(mean, coding), covariance)

    @by_rows
    def score_samples(self, X: RowsLike, y: OutputsLike = None) -> np.ndarray:
        """Log density of every row, of x or of x and y; what is missing does not count.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            For classes the density is that of their orthonormal codes; with a probit likelihood
            the logarithm of the probability of the class, or of the indicators, is added.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        self._refuse_linked("score_samples")
        total = super().score_samples(X)
        if y is None or self.target_coding_.kind == "none":
            return total
        X = self._read(X)
        Y, observed = self._read_outputs(y, X.shape[0])
        if self._scores() is not None:
            return total + self._log_probabilities(X, Y, observed)
        density = predict.log_density(self._outputs_given(X), Y, observed)
        return total + density - observed @ np.log(self.target_coding_.scale)

    @in_memory_by_rows
    def impute(self, X: RowsLike, y: OutputsLike = None, *, return_std: bool = False) -> Any:
        """Rows, and outputs where given, with their gaps filled by conditional means.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with NaN for missing values.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs with gaps; those known help to fill the others.
        return_std : bool, default=False
            Whether to return the standard deviations of the filled values too.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Only if y is given. Rows without a class get the most probable one.
        X_std : ndarray of shape (n_samples, n_features)
            Zero where the value was observed. Only if ``return_std``.
        y_std : ndarray of shape (n_samples, n_outputs)
            In the units of y; for classes those of their codes. Only if y and ``return_std``.
        """
        self._refuse_linked("impute")
        if y is None:
            return super().impute(X, return_std=return_std)
        filled, deviations = super().impute(X, return_std=True)
        rows = self._read(X)
        Y, observed = self._read_outputs(y, rows.shape[0])
        own = self._scores()
        fill = predict.fill if own is None else own.fill
        values, deviations_y = fill(self._placed(rows)[0], Y, observed)
        outputs = restore(values, observed, self.predict(X), self.target_coding_)
        if not return_std:
            return filled, outputs
        return filled, outputs, deviations, deviations_y * self.target_coding_.scale

    def sample(
        self, n_samples: int = 1, *, return_y: bool = False, random_state: SeedLike = None
    ) -> Any:
        """Draw rows, and their outputs, from the model.

        Parameters
        ----------
        n_samples : int, default=1
        return_y : bool, default=False
            Whether to draw outputs too.
        random_state : int, RandomState instance, Generator or None, default=None

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Only if ``return_y``.
        """
        self._refuse_linked("sample")
        rng = generator(random_state)
        X = super().sample(n_samples, random_state=rng)
        if not return_y:
            return X
        mean, covariances, _ = self._placed(X)[0]
        drawn = gaussian.sample(rng, n_samples, mean, np.linalg.cholesky(covariances[0]), 0.0)
        if self._scores() is not None:
            drawn = self._scores().columns(drawn)
        return X, decode_predictions(drawn, self.target_coding_)

    def _log_densities(self, X):
        return self.score_samples(X)

    def _settings(self):
        """Checked parameters, as the model takes them."""
        check_strength(self.supervision)
        check_option("target", self.target, ("auto", *KINDS))
        self._check_likelihood()
        return Settings(
            check_integer("n_components", self.n_components, low=1),
            check_option("solver", self.solver, SOLVERS),
            check_noise(self.noise),
            check_option("target_mean", self.target_mean, ("likelihood", "labelled")),
            check_real("prior", self.prior, low=0),
            check_option("scale", self.scale, SCALES),
            check_integer("max_iter", self.max_iter, low=1),
            check_real("tol", self.tol, low=0),
            repeatable(self.random_state),
            self.likelihood,
        )

    @property
    def _fits_gaps_in_blocks(self):
        return self.likelihood == "gaussian"

    def _check_likelihood(self):
        """Raise where parameters do not go with a probit likelihood."""
        check_option("likelihood", self.likelihood, LIKELIHOODS)
        if self.likelihood == "gaussian":
            return
        if self.solver == "em":
            raise ValueError(
                "likelihood == 'probit' and solver == 'em', the paper's EM for Gaussian codes; "
                "accepted with a probit likelihood are 'auto', 'moments', 'dual' and 'subspace'"
            )
        for name, value in WITH_PROBIT.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"likelihood == 'probit' and {name} == {getattr(self, name)!r}; accepted with "
                    f"a probit likelihood is {name}={value!r}"
                )

    def _with_signs(self, problem, coding):
        """The problem as the probit likelihood takes it: classes, or indicators as signs."""
        if coding.kind == "numeric":
            raise ValueError(
                "likelihood == 'probit' and y holds numbers; accepted are classes and indicators "
                "0 and 1, see target="
            )
        if coding.kind != "multilabel":
            return problem
        return problem._replace(Y=np.sign(coding.center + problem.Y - 0.5))

    def _strength_settings(self, settings, before):
        """The same for a strength in the place of the likelihood."""
        latent, limits = self.scale == "latent", (settings.max_iter, settings.tol)
        chosen = settings.n_components, self.supervision, latent
        return strength.Settings(*chosen, *limits, settings.rng, before)

    def _fit_strength(self, problem, settings, space):
        """The fit at a strength, in a principal space where it is known already."""
        if space is None:
            return strength.fit(problem, settings, self._loop(problem))
        outputs = Outputs(problem.Y, problem.observed, problem.labels, problem.chunks)
        return strength.fit_in(space, outputs, settings)

    def _fit_linked(self, problem, settings):
        """The fit to the columns that the map sees; a head sees those after them too."""
        width = problem.X.shape[1]
        seen = self.linked_rows_.n_map_columns(width)
        found = self._fit_strength(problem._replace(X=problem.X[:, :seen]), settings, None)
        if seen < width:
            found = found._replace(fitted=with_unseen_columns(found.fitted, width))
        return found

    def _chosen_before(self):
        """The directions and the strength of an earlier fit, where they are to stay.

        No supervision does not: it is what little evidence gave.
        """
        known = hasattr(self, "supervision_directions_") and self.supervision_ > 0
        if not self.warm_start or not known:
            return None
        return strength.Candidate(self.supervision_directions_, self.supervision_)

    def _keep(self, dtype, coding, fitted, strength, passes):
        state = fitted.state
        self.n_components_ = state.W.shape[1]
        self.mean_ = np.asarray(fitted.mean, dtype=dtype)
        self.components_ = np.ascontiguousarray(state.W.T.astype(dtype))
        self.noise_variance_ = float(state.sigma2)
        self.projection_ = fitted.projection
        self.latent_scale_ = fitted.latent_scale
        self.latent_covariance_ = fitted.latent_covariance
        self.coef_, self.target_mean_ = fitted.outputs.coef, fitted.outputs.offset
        self.target_covariance_ = fitted.outputs.covariance
        self.target_components_ = state.W_y.T
        self.target_noise_variance_ = state.sigma2_y
        self.target_whitener_ = fitted.whitener
        self.target_coding_ = coding
        self.input_share_ = fitted.input_share
        self.target_share_ = fitted.target_share
        self.supervision_ = strength
        self.n_passes_ = passes
        if coding.kind == "classes":
            self.classes_ = coding.classes

    def _keep_predictions(self, problem, fitted):
        """What the Gaussian likelihood learns besides for its predictions; scores need nothing."""
        self.class_head_ = None
        if self._scores() is None:
            self._keep_widening(*problem[:3], problem.weights, self.n_components_)  # type: ignore[call-arg]
            self._keep_head(problem, fitted)

    def _keep_head(self, problem, fitted):
        def coordinates(rows, wide, outputs):
            X = take_rows(problem.X, rows)
            if has_gaps(X):
                placed = self._placed(X, np.hstack([wide, outputs]))[1]
                return np.split(placed, [wide.shape[1]], axis=1)
            X = as_data(X).less_mean(fitted.mean)
            return X @ wide, X @ outputs

        self._teach_head(fitted, problem.labels, coordinates, problem.weights)

    def _fitted(self):
        """The fitted attributes as the result that they were kept from."""
        W, W_y = self.components_.T.astype(float, copy=False), self.target_components_.T
        sigma2, sigma2_y = self.noise_variance_, self.target_noise_variance_
        return SppcaFit(
            np.asarray(self.mean_, dtype=float),
            State(W, sigma2, W_y, sigma2_y, self.target_mean_),
            self.projection_,
            self.latent_scale_,
            self.latent_covariance_,
            Prediction(self.coef_, self.target_mean_, self.target_covariance_),
            self.target_whitener_,
            self.input_share_,
            self.target_share_,
        )

    def _placed(self, X, coef=None):
        return predict.placed(self._fitted(), X, coef)

    def _scores(self):
        """What scores say of y; None where outputs are Gaussian."""
        coding = self.target_coding_
        if getattr(self, "likelihood_", "gaussian") == "gaussian" or coding.kind == "none":
            return None
        if coding.kind == "multilabel":
            return scores.LabelScores(coding.center, self.n_components_)
        return scores.ClassScores(contrasts(len(coding.classes)), self.n_components_)

    def _probabilities(self, X):
        own = self._scores()
        return super()._probabilities(X) if own is None else own.probabilities(self._placed(X)[0])

    def _outputs_given(self, X):
        given, own = self._placed(X)[0], self._scores()
        return given if own is None else own.outputs(given)

    def _output_means(self, X):
        given, own = self._placed(X)[0], self._scores()
        return given.mean if own is None else own.means(given)

    def _log_probabilities(self, X, Y, observed):
        """Log p(y | x) of the outputs seen, zero where there is none."""
        given, own, rows = self._placed(X)[0], self._scores(), observed.any(axis=1)
        given = given._replace(mean=given.mean[rows], pattern=given.pattern[rows])
        found = np.zeros(len(Y))
        targets = own.targets(Y[rows], observed[rows])
        found[rows] = scores.log_probabilities(given, targets, own.rank)
        return found
