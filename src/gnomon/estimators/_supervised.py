"""What a fitted model of inputs and outputs can do: project, predict, score, fill, draw."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if

from gnomon.estimators._base import LatentPosterior
from gnomon.estimators._conditional import ConditionalOutputs
from gnomon.estimators._door import check_integer, generator
from gnomon.estimators._targets import (
    decode_covariance,
    decode_predictions,
    decode_scores,
    restore,
)
from gnomon.linalg.data import has_gaps
from gnomon.models import sppca_gaps
from gnomon.models import sppca_prediction as given_inputs
from gnomon.models.gaussian import gaps
from gnomon.stats.gaussian import sample


class TargetDistribution(NamedTuple):
    """Gaussian prediction of the outputs, one row per sample.

    Attributes
    ----------
    mean : ndarray of shape (n_samples, n_outputs)
    covariance : ndarray of shape (n_samples, n_outputs, n_outputs)
    """

    mean: np.ndarray
    covariance: np.ndarray


def _predicts_classes(model):
    coding = getattr(model, "target_coding_", None)
    return coding is None or coding.kind == "classes"


class SupervisedModel(ConditionalOutputs):
    """Transform, predict, score, impute and sample with fitted inputs and outputs."""

    def transform(self, X):
        """Coordinates of every row, from its inputs alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to project. NaN marks missing values.

        Returns
        -------
        T : ndarray of shape (n_samples, n_components)
        """
        X = self._read(X)
        return self._rows(X) @ self.projection_.astype(X.dtype)

    def posterior(self, X, y=None):
        """Posterior of the coordinates of every row, given x or given x and y.

        Its mean given x is what `transform` gives. Coordinates times ``latent_scale_`` are the
        latent variables z of the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to project. NaN marks missing values, which widen the posterior.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs of the rows where they are known, coded as in `fit`.

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components).
        """
        X = self._read(X)
        Y, observed = self._read_outputs(y, X.shape[0])
        if self.supervision_ != "likelihood":
            return self._completed_posterior(X, Y, observed)
        state = self._sppca_state()
        if has_gaps(X):
            joint = sppca_gaps.join(np.asarray(self.mean_, dtype=float), state)
            z = gaps.posterior(joint, self._table(X, Y, observed))
        else:
            XW = np.asarray(self._center(X) @ state.W, dtype=float)
            z = given_inputs.latent_posterior(state, XW, Y, observed)
        return LatentPosterior(*given_inputs.stretched(*z, self._stretch()))

    def inverse_transform(self, Z):
        """Mean of the rows that have these coordinates, E[x | z].

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Coordinates as `transform` gives them.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
        """
        Z = np.asarray(Z)
        matches = hasattr(self, "latent_scale_") and Z.shape[1:] == self.latent_scale_.shape
        return super().inverse_transform(Z * self.latent_scale_ if matches else Z)

    def predict(self, X):
        """Most probable class, or expected values of the outputs, of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Classes, numbers, or 0/1 indicators, as in `fit`.
        """
        return self._predicted(self._read(X))

    @available_if(_predicts_classes)
    def predict_proba(self, X):
        """Probabilities of the classes, from the Gaussian prediction of their codes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        X = self._read(X)
        log_odds = self._log_odds(*self._outputs_given(X))
        odds = np.exp(log_odds - log_odds.max(axis=1, keepdims=True))
        return odds / odds.sum(axis=1, keepdims=True)

    def predict_distribution(self, X):
        """Mean and covariance of the outputs of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values, which widen the prediction.

        Returns
        -------
        distribution : TargetDistribution
            Named tuple (mean, covariance), in the units of y; for classes a column per class.
        """
        mean, covariances, pattern = self._outputs_given(self._read(X))
        coding = self.target_coding_
        covariance = decode_covariance(covariances, coding)[pattern]
        return TargetDistribution(decode_scores(mean, coding), covariance)

    def score_samples(self, X, y=None):
        """Log density of every row, of x or of x and y; what is missing does not count.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            For classes the density is that of their orthonormal codes.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        total = super().score_samples(X)
        if y is None or self.target_coding_.kind == "none":
            return total
        X = self._read(X)
        Y, observed = self._read_outputs(y, X.shape[0])
        mean, covariances, pattern = self._outputs_given(X)
        density = given_inputs.log_density(Y - mean, observed, covariances, pattern)
        return total + density - observed @ np.log(self.target_coding_.scale)

    def score(self, X, y=None):
        """Average log density of the rows, of x or of x and y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None

        Returns
        -------
        score : float
        """
        return float(np.mean(self.score_samples(X, y)))

    def impute(self, X, y=None, *, return_std=False):
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
        if y is None:
            return super().impute(X, return_std=return_std)
        filled, deviations = super().impute(X, return_std=True)
        X = self._read(X)
        Y, observed = self._read_outputs(y, X.shape[0])
        mean, covariances, pattern = self._outputs_given(X)
        values, spread = given_inputs.fill(mean, Y, observed, covariances, pattern)
        outputs = restore(values, observed, self._predicted(X), self.target_coding_)
        if not return_std:
            return filled, outputs
        return filled, outputs, deviations, spread * self.target_coding_.scale

    def sample(self, n_samples=1, *, return_y=False, random_state=None):
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
        rng = generator(random_state)
        X = super().sample(n_samples, random_state=rng)
        if not return_y:
            return X
        check_integer("n_samples", n_samples, low=1)
        mean, covariances, _ = self._outputs_given(X)
        drawn = sample(rng, n_samples, mean, np.linalg.cholesky(covariances[0]), 0.0)
        return X, decode_predictions(drawn, self.target_coding_)

    def _predicted(self, X):
        coding = self.target_coding_
        if coding.kind == "none":
            raise ValueError("the model was fitted without outputs; fit with y to predict")
        mean, covariances, pattern = self._outputs_given(X)
        if coding.kind == "classes":
            return coding.classes[np.argmax(self._log_odds(mean, covariances, pattern), axis=1)]
        return decode_predictions(mean, coding)

    def __sklearn_tags__(self):
        """Outputs may be several; whoever has `predict_proba` must say what classes it takes."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags = ClassifierTags()
        return tags
