"""What all classifiers of this engine say in the same way, and all regressors.

An estimator has a ``_model`` and ``_call(method, X, ...)``, which asks it about checked rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin, RegressorMixin


class Regressor(RegressorMixin):
    """Outputs and the largest of them."""

    _call: Callable[..., Any]
    _y_ndim: int

    def predict(self, X) -> np.ndarray:
        """Predicted outputs.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            NaN means missing.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._shaped(self._call("predict", X))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values.ravel() if self._y_ndim == 1 else values

    def predict_topk(self, X, k: int):
        """The k largest outputs of each row and their values, largest first.

        No (n_samples, n_outputs) array is made.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        k : int

        Returns
        -------
        outputs : ndarray of int64, shape (n_samples, k)
        values : ndarray of shape (n_samples, k)
        """
        return self._call("predict_topk", X, k)


class Classifier(ClassifierMixin):
    """Probabilities, what they decide, and the most probable."""

    _call: Callable[..., Any]
    _indicator: bool | None
    _attributes = ("classes_", "threshold_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def predict_proba(self, X) -> np.ndarray:
        """Probabilities of the classes, or of each label to be present.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            NaN means missing.

        Returns
        -------
        p : ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
        """
        return self._shaped(self._call("predict", X))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        """What the model says, as probabilities."""
        return values

    def predict_log_proba(self, X) -> np.ndarray:
        """Logarithm of `predict_proba`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        log_p : ndarray of shape (n_samples, n_classes) or (n_samples, n_labels)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X) -> np.ndarray:
        """Most probable class, or the labels whose probability exceeds the threshold.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,) or, of int64, (n_samples, n_labels)
        """
        return self._decide(self.predict_proba(X))

    def _decide(self, p: np.ndarray) -> np.ndarray:
        if self._indicator:
            return (p > self.threshold_).astype(np.int64)
        return self.classes_[p.argmax(axis=1)]

    def predict_topk(self, X, k: int):
        """The k most probable classes or labels of each row, best first, and their probabilities.

        No (n_samples, n_labels) array is made.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        k : int

        Returns
        -------
        labels : ndarray of shape (n_samples, k)
            Columns of the indicator, or classes.
        p : ndarray of shape (n_samples, k)
        """
        index, p = self._best(X, k)
        return (index if self._indicator else self.classes_[index]), p

    def _best(self, X: Any, k: int):
        return self._call("predict_topk", X, k)
