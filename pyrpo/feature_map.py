"""Random Fourier features of shift-invariant kernels (Rahimi and Recht, 2007)."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pyrpo._docs import store
from pyrpo._options import number, positive

__all__ = ["RandomFourierFeatures"]


class RandomFourierFeatures(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Cosines whose inner products approximate a kernel.

    :math:`\varphi(x) = \sqrt{2/D} \cos(x \Omega + b)`. scikit-learn's ``RBFSampler`` has the
    Gaussian kernel only; the Rembrandt paper uses the Laplacian.

    Parameters
    ----------
    n_components : int, default=1000
        D.
    kernel : "gaussian" or "laplacian", default="gaussian"
        :math:`\exp(-\gamma \|x - y\|_2^2)`, whose frequencies are normal, or
        :math:`\exp(-\gamma \|x - y\|_1)`, whose frequencies are Cauchy.
    gamma : float or "scale", default="scale"
        "scale": 1 over the sum of the features' variances, or of their standard deviations.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    frequencies_ : ndarray of shape (n_features_in_, n_components)
    offsets_ : ndarray of shape (n_components,)
    gamma_ : float
    """

    def __init__(self, n_components=1000, *, kernel="gaussian", gamma="scale", random_state=None):
        store(self, locals())

    def fit(self, X, y=None):
        """Draw the frequencies.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        number(self.n_components, "n_components", 1, whole=True)
        if self.kernel not in ("gaussian", "laplacian"):
            raise ValueError(f"kernel must be 'gaussian' or 'laplacian', got {self.kernel!r}")
        if not isinstance(self.gamma, str):
            positive(self.gamma, "gamma")
        elif self.gamma != "scale":
            raise ValueError(f"gamma must be a positive number or 'scale', got {self.gamma!r}")
        X = validate_data(self, X, dtype=[np.float64, np.float32])
        gaussian, shape = self.kernel == "gaussian", (X.shape[1], int(self.n_components))
        if isinstance(self.gamma, str):
            spread = float((X.var(axis=0) if gaussian else X.std(axis=0)).sum())
            self.gamma_ = 1.0 / spread if spread > 0 else 1.0
        else:
            self.gamma_ = float(self.gamma)
        rng = check_random_state(self.random_state)
        if gaussian:
            frequencies = np.sqrt(2 * self.gamma_) * rng.standard_normal(shape)
        else:
            frequencies = self.gamma_ * rng.standard_cauchy(shape)
        self.frequencies_ = frequencies.astype(X.dtype)
        self.offsets_ = rng.uniform(0, 2 * np.pi, shape[1]).astype(X.dtype)
        return self

    def transform(self, X):
        """The features.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)

        Returns
        -------
        F : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])
        F = X @ self.frequencies_.astype(X.dtype, copy=False)
        F += self.offsets_.astype(X.dtype, copy=False)
        np.cos(F, out=F)
        F *= np.sqrt(2.0 / F.shape[1]).astype(X.dtype)
        return F

    @property
    def _n_features_out(self) -> int:
        return self.frequencies_.shape[1]
