"""Gradient boosting of many outputs on random projections (Joly, Wehenkel and Geurts, 2017)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.validation import check_is_fitted

from pyrpo._boost_base import BaseBoosting
from pyrpo._boost_data import BoostData, classification_data, regression_data
from pyrpo._docs import documented, store
from pyrpo._inputs import check_X, labels_or_classes
from pyrpo._options import label_threshold, number
from pyrpo._readout import Classifier, Regressor
from pyrpo.metrics import label_ranking_average_precision

__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]


@documented
class GradientBoostingRegressor(Regressor, BaseBoosting):
    """Gradient boosting for one or many real-valued outputs.

    Each round grows one tree on a random projection of the gradient and labels its leaves with all
    outputs. With ``projection=None`` this is the paper's Algorithm 2 (gbmort), with
    ``relabel=False`` its Algorithm 3 (gbrt-rpo), otherwise Algorithm 4 (gbrt-relabel-rpo).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    _losses = ("squared", "absolute", "huber")

    def __init__(
        self,
        n_estimators=12_000,
        *,
        loss="squared",
        learning_rate="auto",
        projection="gaussian",
        n_components=1,
        relabel=True,
        leaf="auto",
        strategy="joint",
        base_estimator=None,
        max_depth=6,
        max_leaf_nodes=None,
        min_samples_split=2,
        min_samples_leaf=1,
        max_features="auto",
        subsample=0.7,
        l2=1.0,
        compact="auto",
        huber_quantile=0.9,
        max_bins=256,
        early_stopping="auto",
        validation_fraction=0.2,
        n_iter_no_change="auto",
        refit=True,
        scoring="loss",
        tol=0.0,
        max_time=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
    ):
        store(self, locals())

    def _read_y(self, y, sample_weight, *, reset):
        data, ndim = regression_data(y, sample_weight)
        if reset:
            data.warn_of_offsets(stacklevel=4)  # at the call of fit
            self._y_ndim, self.n_outputs_ = ndim, data.outputs
        return data

    def _score_held_out(self, data, scores):
        return float(self.scoring(data.dense(), scores))


@documented
class GradientBoostingClassifier(Classifier, BaseBoosting):
    """Gradient boosting for labels (an indicator matrix) and for classes.

    Each round grows one tree on a random projection of the gradient and labels its leaves with all
    outputs. With ``projection=None`` this is the paper's Algorithm 2 (gbmort), with
    ``relabel=False`` its Algorithm 3 (gbrt-rpo), otherwise Algorithm 4 (gbrt-relabel-rpo).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from pyrpo import GradientBoostingClassifier
    >>> X, Y = make_multilabel_classification(n_classes=20, random_state=0)
    >>> boosting = GradientBoostingClassifier(n_estimators=50, random_state=0).fit(X, Y)
    >>> boosting.predict_proba(X).shape
    (100, 20)
    """

    _losses = ("auto", "logistic", "exponential", "softmax", "squared")

    def __init__(
        self,
        n_estimators=12_000,
        *,
        loss="auto",
        learning_rate="auto",
        projection="gaussian",
        n_components=1,
        relabel=True,
        leaf="auto",
        strategy="joint",
        base_estimator=None,
        max_depth=6,
        max_leaf_nodes=None,
        min_samples_split=2,
        min_samples_leaf=1,
        max_features="auto",
        subsample=0.7,
        l2=1.0,
        compact="auto",
        max_bins=256,
        early_stopping="auto",
        validation_fraction=0.2,
        n_iter_no_change="auto",
        refit=True,
        scoring="loss",
        tol=0.0,
        max_time=None,
        class_weight=None,
        threshold=0.5,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
    ):
        store(self, locals())

    def _read_y(self, y, sample_weight, *, reset):
        if not reset and labels_or_classes(y)[1] != self._indicator:
            raise ValueError("eval_set: y must be of the kind of the training y, labels or classes")
        known = None if reset else self.classes_
        data, classes, indicator = classification_data(y, sample_weight, self.class_weight, known)
        if reset:
            self.classes_, self._indicator = classes, indicator
            self.n_outputs_ = data.outputs if indicator else 1
        if data.outputs == 2 and not indicator:
            data = data.column(1)
        if reset:
            self._link = self._link_of(data)
            self.threshold_ = label_threshold(self.threshold, data.outputs)
        return data

    def _loss_name(self, data):
        alone = self._indicator or data.outputs == 1 or self.strategy == "single_target"
        if isinstance(self.loss, str) and self.loss == "auto":
            return "logistic" if alone else "softmax"
        loss = super()._loss_name(data)
        if loss == "softmax" and alone:
            raise ValueError("loss='softmax' is for three or more classes, strategy='joint'")
        return loss

    def _link_of(self, data: BoostData) -> str:
        loss = self._loss_name(data)
        return loss if loss in ("softmax", "squared") else "logistic"

    def _score_held_out(self, data, scores):
        if self.scoring == "lrap":
            return label_ranking_average_precision(data.Y, scores, empty="drop")
        return float(self.scoring(data.dense(), self._probabilities(scores)))

    def _probabilities(self, scores: np.ndarray) -> np.ndarray:
        if self._link == "softmax":
            return softmax(scores, axis=1)
        p = np.clip(scores, 0.0, 1.0) if self._link == "squared" else expit(scores)
        if self._indicator or p.shape[1] == 1:
            return p
        p = np.maximum(p, 1e-12)  # one class against the others
        return p / p.sum(axis=1, keepdims=True)

    def decision_function(self, X) -> np.ndarray:
        """Scores: log-odds of the labels, or scores of the classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        scores : ndarray of shape (n_samples,) of two classes, else (n_samples, n_outputs)
        """
        scores = self._scores(X)
        return scores.ravel() if not self._indicator and scores.shape[1] == 1 else scores

    def _shaped(self, scores: np.ndarray) -> np.ndarray:
        p = self._probabilities(scores)
        if not self._indicator and p.shape[1] == 1:
            return np.hstack([1.0 - p, p]) if len(self.classes_) == 2 else np.ones_like(p)
        return p

    def staged_predict_proba(self, X) -> Iterator[np.ndarray]:
        """Probabilities after each round (of single targets: after each tree).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Yields
        ------
        p : ndarray of the shape of `predict_proba`
        """
        yield from self._staged_values(X)

    def _best(self, X, k):
        if self._link == "logistic" and self._indicator:
            index, scores = super()._best(X, k)
            return index, expit(scores)
        check_is_fitted(self)
        X = check_X(self, X, reset=False)
        parts = [self._best_of(X[i : i + 4096], k) for i in range(0, X.shape[0], 4096)]
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))

    def _best_of(self, X: Any, k: int):
        p = self._shaped(self._model.predict(X, self.n_jobs))
        number(k, "k", 1, p.shape[1], whole=True)
        index = np.argsort(-p, axis=1, kind="stable")[:, :k]
        return index, np.take_along_axis(p, index, axis=1)
