r"""Random projections of the output space, as transformers and as parts of a forest.

Each class draws an (m, d) matrix :math:`\Phi`; ``transform(Y)`` is :math:`Y \Phi^T`. Given to a
forest as ``projection=``, an object says which kind is drawn: one a tree, or one for all trees with
``shared_projection=True``.
"""

from __future__ import annotations

from math import floor, log, sqrt
from numbers import Integral
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    clone,
)
from sklearn.decomposition import PCA
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted, validate_data

from pyrpo._docs import store
from pyrpo._inputs import canonical, check_structure
from pyrpo._native import Projection
from pyrpo._options import seed_of

__all__ = [
    "AchlioptasProjection",
    "GaussianProjection",
    "HadamardProjection",
    "PCAProjection",
    "RademacherProjection",
    "SparseProjection",
    "SubsampleProjection",
    "johnson_lindenstrauss",
    "resolve_components",
]


def johnson_lindenstrauss(n_samples: int, eps: float = 0.5) -> int:
    r"""Components that keep distances within :math:`1 \pm \epsilon`: Lemma 1's 8 ln n / eps^2."""
    if not 0 < eps < 1:
        raise ValueError(f"eps must be between 0 and 1, got {eps}")
    return max(1, int(np.ceil(8.0 * log(max(n_samples, 2)) / eps**2)))


def resolve_components(n_components: Any, n_samples: int, n_outputs: int) -> int:
    """The number that ``n_components`` stands for: an int, "log" or "jl"."""
    if isinstance(n_components, str):
        if n_components == "log":
            return max(1, floor(0.5 + log(n_outputs)))
        if n_components == "jl":
            return johnson_lindenstrauss(n_samples)
        raise ValueError(f"n_components must be an int, 'log' or 'jl', got {n_components!r}")
    if not isinstance(n_components, Integral) or isinstance(n_components, bool):
        raise TypeError(f"n_components must be an int, 'log' or 'jl', got {n_components!r}")
    if n_components < 1:
        raise ValueError(f"n_components must be at least 1, got {n_components}")
    return int(n_components)


class _OutputTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """What all projections share: how Y is read, names of the components."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read(self, Y: Any, *, reset: bool) -> Any:
        check_structure(Y, "Y")
        Y = validate_data(self, Y, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32])
        return canonical(Y) if sparse.issparse(Y) else Y

    @property
    def _n_features_out(self) -> int:
        return self.n_components_


class _Projection(_OutputTransformer):
    """A random matrix drawn by the library."""

    def __init__(self, n_components="log", *, random_state=None):
        store(self, locals())

    def _kind(self, n_outputs: int) -> dict[str, Any]:
        raise NotImplementedError

    def spec(self, n_samples: int, n_outputs: int, *, seed: int, shared: bool = False):
        """The library's description of this projection of `n_outputs` outputs."""
        m = resolve_components(self.n_components, n_samples, n_outputs)
        spec = Projection(components=m, seed=seed, shared=shared, **self._kind(n_outputs))
        spec.apply(sparse.csr_array((1, n_outputs)))  # refuses an m that the kind forbids
        return spec

    def fit(self, Y, y=None):
        """Draw the matrix for as many outputs as Y has.

        Parameters
        ----------
        Y : array or sparse matrix of shape (n_samples, n_outputs)
        y : ignored

        Returns
        -------
        self
        """
        Y = self._read(Y, reset=True)
        self._spec = self.spec(*Y.shape, seed=seed_of(self.random_state))
        self.n_components_ = self._spec.components
        return self

    @property
    def components_(self) -> np.ndarray:
        r"""The matrix :math:`\Phi`, (m, d), drawn again at each access."""
        check_is_fitted(self)
        return self._spec.draw(self.n_features_in_)

    def transform(self, Y):
        r"""Project: :math:`Y \Phi^T`.

        Parameters
        ----------
        Y : array or sparse matrix of shape (n_samples, n_outputs)

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        return self._spec.apply(self._read(Y, reset=False))


class GaussianProjection(_Projection):
    """Independent entries of the normal distribution of variance 1/m.

    Parameters
    ----------
    n_components : int, "log" or "jl", default="log"
        m: a number, max(1, floor(1/2 + ln d)), or Lemma 1's bound for the number of samples.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    n_components_ : int
    components_ : ndarray of shape (n_components_, n_features_in_)

    Examples
    --------
    >>> import numpy as np
    >>> from pyrpo.projection import GaussianProjection
    >>> GaussianProjection(3, random_state=0).fit_transform(np.eye(10)).shape
    (10, 3)
    """

    def _kind(self, n_outputs):
        return {"kind": "gaussian"}


class RademacherProjection(_Projection):
    """Entries +-sqrt(s/m) with probability 1/(2s) each, else 0.

    Parameters
    ----------
    n_components : int, "log" or "jl", default="log"
    sparsity : float, default=1.0
        s >= 1.
    random_state : int, RandomState instance or None, default=None
    """

    def __init__(self, n_components="log", *, sparsity=1.0, random_state=None):
        store(self, locals())

    def _kind(self, n_outputs):
        return {"kind": "rademacher", "sparsity": float(self.sparsity)}


class AchlioptasProjection(_Projection):
    """Rademacher projection of sparsity 3: two thirds of the entries are 0.

    Parameters
    ----------
    n_components : int, "log" or "jl", default="log"
    random_state : int, RandomState instance or None, default=None
    """

    def _kind(self, n_outputs):
        return {"kind": "rademacher", "sparsity": 3.0}


class SparseProjection(_Projection):
    """Rademacher projection of sparsity sqrt(d): very sparse.

    Parameters
    ----------
    n_components : int, "log" or "jl", default="log"
    random_state : int, RandomState instance or None, default=None
    """

    def _kind(self, n_outputs):
        return {"kind": "rademacher", "sparsity": sqrt(n_outputs)}


class HadamardProjection(_Projection):
    """Rows of the Hadamard matrix of the next power of 2, drawn without replacement.

    Parameters
    ----------
    n_components : int, "log" or "jl", default="log"
        At most the next power of 2 of the number of outputs.
    random_state : int, RandomState instance or None, default=None
    """

    def _kind(self, n_outputs):
        return {"kind": "hadamard"}


class SubsampleProjection(_Projection):
    """Some of the outputs, times sqrt(d/m).

    Parameters
    ----------
    n_components : int, "log" or "jl", default="log"
        At most the number of outputs, without replacement.
    replace : bool, default=False
        Draw with replacement.
    random_state : int, RandomState instance or None, default=None
    """

    def __init__(self, n_components="log", *, replace=False, random_state=None):
        store(self, locals())

    def _kind(self, n_outputs):
        return {"kind": "subsample_replaced" if self.replace else "subsample"}


class PCAProjection(_OutputTransformer):
    """The first principal axes of the outputs, found without densifying a sparse Y.

    Nothing is random here: a forest uses the same axes for all its trees.

    Parameters
    ----------
    n_components : int, "log" or "jl", default="log"
        At most the number of outputs and of samples.

    Attributes
    ----------
    components_ : ndarray of shape (n_components_, n_features_in_)
    mean_ : ndarray of shape (n_features_in_,)
    """

    def __init__(self, n_components="log"):
        store(self, locals())

    def fit(self, Y, y=None):
        """Find the axes of Y.

        Parameters
        ----------
        Y : array or sparse matrix of shape (n_samples, n_outputs)
        y : ignored

        Returns
        -------
        self
        """
        Y = self._read(Y, reset=True)
        m = resolve_components(self.n_components, *Y.shape)
        if m > min(Y.shape):
            raise ValueError(
                f"n_components must be at most min(n_samples, n_outputs) = {min(Y.shape)} for "
                f"PCA, got {m}"
            )
        if sparse.issparse(Y) and m == min(Y.shape):
            Y = Y.toarray()  # as many axes as there are: the result is dense anyway
        solver = "arpack" if sparse.issparse(Y) else "auto"
        pca = PCA(m, svd_solver=solver, random_state=0).fit(Y)
        self.components_, self.mean_, self.n_components_ = pca.components_, pca.mean_, m
        return self

    def transform(self, Y):
        """Coordinates of the centred Y on the axes.

        Parameters
        ----------
        Y : array or sparse matrix of shape (n_samples, n_outputs)

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        Y = self._read(Y, reset=False)
        return np.asarray(Y @ self.components_.T) - self.mean_ @ self.components_.T


NAMES = {
    "gaussian": GaussianProjection,
    "rademacher": RademacherProjection,
    "achlioptas": AchlioptasProjection,
    "sparse": SparseProjection,
    "hadamard": HadamardProjection,
    "subsample": SubsampleProjection,
    "pca": PCAProjection,
}


def named_projection(projection: Any, n_components: Any) -> Any:
    """The object that a name stands for; what is no name, as it is."""
    if not isinstance(projection, str):
        return projection
    if projection not in NAMES:
        raise ValueError(
            f"projection must be one of {sorted(NAMES)}, an object, an array or None, of random "
            f"forests and extra-trees also 'auto'; got {projection!r}"
        )
    return NAMES[projection](n_components)


def resolve_projection(projection: Any, n_components: Any, Y: Any, *, seed: int, shared: bool):
    """What a forest is given for ``projection``.

    Returns
    -------
    spec : library's projection or None
    target : ndarray or None
        The projected outputs, where Python computes them (PCA, other transformers).
    """
    resolve_components(n_components, *Y.shape)
    projection = named_projection(projection, n_components)
    if projection is None:
        return None, None
    if isinstance(projection, type):
        raise TypeError(f"projection must be an instance, got the class {projection.__name__}")
    if isinstance(projection, _Projection):
        return projection.spec(*Y.shape, seed=seed, shared=shared), None
    if hasattr(projection, "transform"):
        Z = clone(projection).fit_transform(Y)
        return None, check_array(Z, dtype=np.float64, input_name="projected y")
    if sparse.issparse(projection):
        check_structure(projection, "projection")
        projection = projection.toarray()
    matrix = np.asarray(projection)
    if matrix.ndim != 2 or len(matrix) < 1 or matrix.shape[1] != Y.shape[1]:
        raise ValueError(
            f"projection must have a row at least and a column for each of the {Y.shape[1]} "
            f"outputs, got shape {matrix.shape}"
        )
    matrix = check_array(matrix, dtype=np.float64, order="C", input_name="projection")
    return Projection("matrix", len(matrix), shared=True, matrix=matrix), None
