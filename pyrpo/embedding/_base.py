"""What all embeddings share: how X, Y and weights are read, codes by a matrix, names of codes."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.validation import check_is_fitted, validate_data

from pyrpo._inputs import FLOATS, canonical, check_structure, check_weight
from pyrpo._keeping import SavesArrays
from pyrpo._options import label_count
from pyrpo._products import product


class Embedding(SavesArrays, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """A transformer of Y. `n_features_in_` counts labels, `n_components_` codes."""

    _needs_X = False
    _sparse_codes = False  # what inverse_transform takes

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X, Y=None, *, sample_weight=None):
        """Learn the codes: ``fit(X, Y)``, or ``fit(Y)`` where features are not looked at.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Y, if it is the only argument.
        Y : array or sparse matrix of shape (n_samples, n_labels), default=None
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        if Y is None:
            if self._needs_X:
                raise ValueError(f"{type(self).__name__}.fit needs X and Y, got one of them only")
            X, Y = None, X
        fitted = copy(self)  # a call that fails leaves the embedding as it was
        Y = fitted._read_Y(Y, reset=True)
        if X is not None:
            X = read_X(X)
            check_consistent_length(X, Y)
        if not self._needs_X:
            X = None
        weight = check_weight(sample_weight, Y.shape[0], 1)
        fitted._fit(X, Y, None if weight is None else weight.ravel())
        self.__dict__ = fitted.__dict__
        return self

    def fit_transform(self, X, Y=None, *, sample_weight=None):
        """``fit``, then the codes of Y.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            Y, if it is the only argument.
        Y : array or sparse matrix of shape (n_samples, n_labels), default=None
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components_)
        """
        self.fit(X, Y, sample_weight=sample_weight)
        return self.transform(X if Y is None else Y)

    def _fit(self, X: Any, Y: Any, weight: np.ndarray | None) -> None:
        raise NotImplementedError

    def transform(self, Y):
        """Codes of label sets.

        Parameters
        ----------
        Y : array or sparse matrix of shape (n_samples, n_labels)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components_)
        """
        check_is_fitted(self)
        return self._encode(self._read_Y(Y, reset=False))

    def inverse_transform(self, codes):
        """Scores of all labels, given codes or predictions of them.

        Parameters
        ----------
        codes : array of shape (n_samples, n_components_)
            `BinaryRelevance`, whose codes are the labels, takes and returns sparse ones, too.

        Returns
        -------
        scores : ndarray of shape (n_samples, n_labels)
            A label is taken to hold where its score exceeds ½.
        """
        check_is_fitted(self)
        codes = check_array(
            codes, accept_sparse=self._sparse_codes, dtype=FLOATS, input_name="codes"
        )
        if codes.shape[1] != self.n_components_:
            raise ValueError(
                f"codes must have {self.n_components_} columns, one a code; got {codes.shape[1]}"
            )
        return self._decode(codes)

    def _encode(self, Y: Any) -> np.ndarray:
        raise NotImplementedError

    def _decode(self, codes: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _read_Y(self, Y: Any, *, reset: bool) -> Any:
        check_structure(Y, "Y")
        given, Y = Y, check_array(Y, accept_sparse="csr", dtype=FLOATS, input_name="Y")
        validate_data(self, given, reset=reset, skip_check_array=True)
        return canonical(sparse.csr_array(Y)) if sparse.issparse(Y) else Y

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _width(self, n_labels: int) -> int:
        """Check k, the number of codes."""
        return label_count(self.k, n_labels)


class LinearEmbedding(Embedding):
    """Codes (y - mean) V of orthonormal V, scores mean + codes V'."""

    components_: np.ndarray
    mean_: np.ndarray | None

    def _encode(self, Y):
        return shifted_product(Y, self.components_.T, self.mean_)

    def _decode(self, codes):
        scores = codes @ self.components_
        if self.mean_ is not None:
            scores += self.mean_
        return scores


def read_X(X: Any) -> Any:
    """Features as a float array or CSR."""
    check_structure(X, "X")
    X = check_array(X, accept_sparse="csr", dtype=FLOATS, input_name="X")
    return canonical(sparse.csr_array(X)) if sparse.issparse(X) else X


def weighted_mean(Y: Any, weight: np.ndarray | None) -> np.ndarray:
    """Mean of each column."""
    if weight is None:
        return np.asarray(Y.mean(axis=0)).ravel().astype(Y.dtype, copy=False)
    return (Y.T @ (weight / weight.sum()).astype(Y.dtype)).astype(Y.dtype, copy=False)


def shifted_product(
    Y: Any, Q: np.ndarray, mean: np.ndarray | None, n_jobs: int | None = None
) -> np.ndarray:
    """(Y - 1 mean') Q."""
    Q = np.ascontiguousarray(Q, dtype=Y.dtype)
    YQ = product(Y, Q, n_jobs=n_jobs)
    if mean is not None:
        YQ -= mean.astype(Y.dtype) @ Q
    return YQ
