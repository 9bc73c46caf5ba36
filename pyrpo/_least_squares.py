"""Ridge regression of many columns at once, on dense or sparse X, centred or not.

The gram matrix is factorised once where the features are few, that of the rows where these are.
Where features are many and sparse all columns are solved by conjugate gradients together, sharing
each pass over X.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.base import BaseEstimator, RegressorMixin

from pyrpo._options import number
from pyrpo._products import gram_product, product, t_product

_FEW = 2000  # features up to which "auto" factorises the gram matrix of a sparse X
_WIDE = 3  # times as many features as rows: then the rows' products are factorised
_SOLVERS = ("auto", "cholesky", "cg")


class LeastSquares:
    """Minimise the sum of w_i ||t_i - x_i Z||^2 + ridge ||Z||^2 over Z, for any targets T.

    Parameters
    ----------
    X : array or CSR matrix of shape (n, d), of float32 or float64
    weight : array of shape (n,) or None
        Not negative; a row of weight 2 counts as two rows.
    center : bool
        Subtract the (weighted) mean from X, by its products only. T's mean does not matter then.
    ridge : float
    solver : "auto", "cholesky" or "cg"
        "auto" factorises for dense X and up to 2000 features that occur.
    tol, max_iter : float, int
        Of conjugate gradients: they end when no column's gradient is longer than `tol` times its
        right-hand side.
    n_jobs : int or None
        Threads of products with a sparse X.
    """

    def __init__(
        self,
        X: Any,
        *,
        weight: np.ndarray | None = None,
        center: bool = False,
        ridge: float = 0.0,
        solver: str = "auto",
        tol: float = 1e-6,
        max_iter: int = 200,
        n_jobs: int | None = None,
    ) -> None:
        if solver not in _SOLVERS:
            raise ValueError(f"solver must be one of {list(_SOLVERS)}, got {solver!r}")
        number(ridge, "ridge", 0.0, 1e300)
        self.n_features = X.shape[1]
        self.used, self.X = _used_columns(X)
        self.weight = None if weight is None else weight.astype(X.dtype)
        self.total = float(X.shape[0] if weight is None else weight.sum())
        self._exact_mean = self._mean() if center else None
        self.mean = self._exact_mean.astype(X.dtype) if center else None
        self.ridge, self.tol, self.max_iter = float(ridge), tol, max_iter
        if solver == "auto":
            few = not sparse.issparse(X) or self.X.shape[1] <= _FEW
            solver = "cholesky" if few else "cg"
        self.solver, self.n_jobs = solver, n_jobs
        self._inverse = None

    # ---- products with the centred, weighted X ----

    def _mean(self) -> np.ndarray:
        """In double precision: squares of what it leaves out add up."""
        weight = np.ones(self.X.shape[0]) if self.weight is None else self.weight.astype(np.float64)
        return (self.X.T @ weight) / self.total

    def whole_mean(self) -> np.ndarray:
        """Mean of every feature, also of those that never occur."""
        return self._widen(self.mean[:, None])[:, 0]

    def fitted(self, Z: np.ndarray) -> np.ndarray:
        """(X - 1 mean') Z, one pass."""
        Z = self._narrow(Z)
        XZ = product(self.X, Z, n_jobs=self.n_jobs)
        if self.mean is not None:
            XZ -= self.mean @ Z
        return XZ

    def _project_back(self, T: Any) -> np.ndarray:
        """(X - 1 mean')' W T, one pass; rows of features that never occur are left out."""
        T = weigh(T, self.weight)
        B = _dense(self.X.T @ T) if sparse.issparse(T) else t_product(self.X, T, n_jobs=self.n_jobs)
        if self.mean is not None:
            B -= np.outer(self.mean, np.asarray(T.sum(axis=0)).ravel())
        return B

    def _gram_times(
        self, Z: np.ndarray, out: np.ndarray | None = None, work: np.ndarray | None = None
    ) -> np.ndarray:
        """(X - 1 mean')' W (X - 1 mean') Z + ridge Z, one pass; `out` and `work` may be used."""
        G = gram_product(self.X, Z, self.weight, n_jobs=self.n_jobs, out=out)
        if self.mean is not None:
            G -= np.outer(self.mean, self.total * (self.mean @ Z), out=work)
        G += np.multiply(self.ridge, Z, out=work)
        return G

    def _diagonal(self) -> np.ndarray:
        squares = self.X.multiply(self.X) if sparse.issparse(self.X) else self.X**2
        weight = np.ones(self.X.shape[0], self.X.dtype) if self.weight is None else self.weight
        diagonal = squares.T @ weight
        if self.mean is not None:
            diagonal = diagonal - (self.total * self._exact_mean**2).astype(diagonal.dtype)
        return diagonal + self.ridge

    # ---- solving ----

    def solve(self, T: Any) -> np.ndarray:
        """The minimising Z, (d, m); of smallest norm where several minimise and X is factorised."""
        return self._widen(self._solve(self._project_back(T.astype(self.X.dtype, copy=False))))

    def solve_normal(self, B: np.ndarray) -> np.ndarray:
        """(X'WX + ridge I)^-1 B, X centred. Features that never occur get B over the ridge."""
        Z = self._solve(self._narrow(B))
        if self.used is None:
            return Z
        whole = B / self.ridge if self.ridge > 0 else np.zeros_like(B)
        whole[self.used] = Z
        return whole

    def apply_normal(self, Z: np.ndarray) -> np.ndarray:
        """(X'WX + ridge I) Z, X centred."""
        whole = self.ridge * Z
        GZ = self._gram_times(self._narrow(Z))
        if self.used is None:
            return GZ
        whole[self.used] = GZ
        return whole

    def _narrow(self, Z: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(Z if self.used is None else Z[self.used])

    def _widen(self, Z: np.ndarray) -> np.ndarray:
        if self.used is None:
            return Z
        whole = np.zeros((self.n_features, Z.shape[1]), dtype=Z.dtype)
        whole[self.used] = Z
        return whole

    def _solve(self, B: np.ndarray) -> np.ndarray:
        return self._factorised(B) if self.solver == "cholesky" else self._conjugate_gradients(B)

    def _factorised(self, B: np.ndarray) -> np.ndarray:
        if self._inverse is None:
            n, d = self.X.shape
            wide = not sparse.issparse(self.X) and _WIDE * n <= d
            self._inverse = (
                _inverse_by_rows(self._rows(), self.ridge) if wide else _inverse_of(self._gram())
            )
        return self._inverse(B).astype(B.dtype, copy=False)

    def _rows(self) -> np.ndarray:
        """A dense X whose gram matrix is the weighted one, in double precision."""
        X = self.X.astype(np.float64)
        if self.mean is not None:
            X -= self._exact_mean
        return X if self.weight is None else X * np.sqrt(self.weight.astype(np.float64))[:, None]

    def _gram(self) -> np.ndarray:
        """In double precision: it squares the condition of X."""
        X, weight = self.X, self.weight
        if sparse.issparse(X):
            right = X if weight is None else X.multiply(weight[:, None])
            gram = (X.T.astype(np.float64) @ right).toarray()
        else:
            X, centred = X.astype(np.float64, copy=False), X.dtype != np.float64
            if self.mean is not None and centred:
                X -= self._exact_mean  # a copy
            gram = X.T @ (X if weight is None else weight[:, None] * X)
        if self.mean is not None and (sparse.issparse(X) or not centred):
            gram -= self.total * np.outer(self._exact_mean, self._exact_mean)
        gram[np.diag_indices_from(gram)] += self.ridge
        return gram

    def _conjugate_gradients(self, B: np.ndarray) -> np.ndarray:
        """Each column has steps of its own, all share the products; the diagonal preconditions.

        Arrays of B's shape are made before the loop: new memory is cleared before it is used.
        """
        diagonal = self._diagonal()[:, None]
        tiny = np.finfo(B.dtype).eps * max(diagonal.max(initial=0.0), np.finfo(B.dtype).tiny)
        scale = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=diagonal > tiny)
        R = np.array(B, dtype=np.result_type(B.dtype, self.X.dtype), order="C")
        Z, P, GP, S = np.zeros_like(R), scale * R, np.empty_like(R), np.empty_like(R)
        self.n_iter = 0
        rho = np.einsum("ij,ij->j", R, P)
        goal = self.tol**2 * rho
        for _ in range(self.max_iter):
            self.n_iter += 1
            self._gram_times(P, out=GP, work=S)
            curvature = np.einsum("ij,ij->j", P, GP)
            step = np.divide(rho, curvature, out=np.zeros_like(rho), where=curvature > 0)
            Z += np.multiply(step, P, out=S)
            R -= np.multiply(step, GP, out=S)
            np.multiply(scale, R, out=S)
            before, rho = rho, np.einsum("ij,ij->j", R, S)
            if (rho <= goal).all():
                break
            P *= np.divide(rho, before, out=np.zeros_like(rho), where=before > 0)
            P += S
        return Z


class Ridge(RegressorMixin, BaseEstimator):
    """Ridge regression of several columns, dense or sparse, with intercepts, by `LeastSquares`.

    scikit-learn's solves a sparse X column by column.
    """

    def __init__(self, ridge=1.0, *, n_jobs=None):
        self.ridge, self.n_jobs = ridge, n_jobs

    def fit(self, X, T, sample_weight=None):
        """Least squares; X and T are trusted."""
        X = sparse.csr_array(X) if sparse.issparse(X) else X
        fit = LeastSquares(
            X, weight=sample_weight, center=True, ridge=self.ridge, n_jobs=self.n_jobs
        )
        self.coef_ = fit.solve(T)
        share = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        mean = np.asarray(T.T @ (share / share.sum()))
        self.intercept_ = (mean - fit.whole_mean() @ self.coef_).astype(self.coef_.dtype)
        return self

    def predict(self, X):
        """Fitted values."""
        return product(X, self.coef_.astype(X.dtype, copy=False), n_jobs=self.n_jobs) + (
            self.intercept_
        )


def weigh(T: Any, weight: np.ndarray | None) -> Any:
    """Rows times their weights."""
    if weight is None:
        return T
    column = weight.astype(T.dtype)[:, None]
    return sparse.csr_array(T.multiply(column)) if sparse.issparse(T) else T * column


def _dense(A: Any) -> np.ndarray:
    return A.toarray() if sparse.issparse(A) else A


def _used_columns(X: Any) -> tuple[np.ndarray | None, Any]:
    """Columns of a sparse X with entries, and X without the others."""
    if not sparse.issparse(X):
        return None, X
    seen = np.zeros(X.shape[1], dtype=bool)
    seen[X.indices] = True
    if seen.all():
        return None, X
    used, place = np.flatnonzero(seen), np.cumsum(seen) - 1
    indices = place[X.indices].astype(X.indices.dtype)
    return used, sparse.csr_array((X.data, indices, X.indptr), shape=(X.shape[0], len(used)))


def _inverse_by_rows(A: np.ndarray, ridge: float):
    """Solver with A'A + ridge I of few rows: by the eigenvectors of A A', which is smaller.

    Off the span of the rows it divides by the ridge, or leaves out, where that is next to nothing.
    """
    values, U = linalg.eigh(A @ A.T)
    cutoff = len(U) * np.finfo(np.float64).eps * (max(values[-1], 0.0) + ridge)
    kept = values > cutoff
    V = A.T @ (U[:, kept] / np.sqrt(values[kept]))
    inverse = (1.0 / (values[kept] + ridge))[:, None]

    def solve(B: np.ndarray) -> np.ndarray:
        VB = V.T @ B
        Z = V @ (inverse * VB)
        return Z + (B - V @ VB) / ridge if ridge > cutoff else Z

    return solve


def _inverse_of(gram: np.ndarray):
    """Solver with a symmetric matrix: Cholesky, or the pseudo-inverse if it is nearly singular."""
    if not len(gram):  # no feature occurs; LAPACK would complain
        return np.copy
    size, norm = len(gram), np.abs(gram).sum(axis=0).max(initial=0.0)
    cutoff = size * np.finfo(np.float64).eps
    try:
        factor = linalg.cho_factor(gram, lower=True)
        rcond, _ = linalg.lapack.dpocon(factor[0], norm, uplo="L")
        if rcond > cutoff:
            return lambda B: linalg.cho_solve(factor, B)
    except linalg.LinAlgError:
        pass
    values, vectors = linalg.eigh(gram)
    kept = values > cutoff * max(values[-1], 0.0)
    left = vectors[:, kept] / values[kept]
    return lambda B: left @ (vectors[:, kept].T @ B)
