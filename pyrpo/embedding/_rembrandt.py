"""Rembrandt (Mineiro and Karampatziakis, 2015): label embeddings by randomized linear algebra."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg
from sklearn.base import clone
from sklearn.model_selection import cross_val_predict
from sklearn.utils import check_random_state

from pyrpo._docs import store
from pyrpo._least_squares import LeastSquares, weigh
from pyrpo._options import number
from pyrpo._products import t_product
from pyrpo.embedding._base import (
    LinearEmbedding,
    shifted_product,
    weighted_mean,
)


class Rembrandt(LinearEmbedding):
    r"""Response EMBedding via RANdomized Techniques: the paper's Algorithm 2.

    The codes are YV, where V are the top right singular vectors of :math:`\Pi_X Y`, the labels as
    the best linear predictor from X sees them. Least squares are fitted for k + p columns only,
    whatever the number of labels; (q + 1) times.

    Parameters
    ----------
    k : int
        Codes.
    p : int, default=20
        Further columns of the random start, for a better range; at most as many as labels.
    q : int, default=1
        Iterations of the range finder. With q = 0 and p = 0 V is an orthonormal basis of a random
        projection of the labels' predictions.
    ridge : float, default=1.0
        Added to the diagonal of X'X in least squares, as ``alpha`` is in scikit-learn's ``Ridge``.
    center : bool, default=False
        Subtract the means of X and Y, without densifying them.
    whiten : bool, default=False
        Canonical correlation analysis (section 3): correlations instead of covariances are
        maximised. V'(Y'Y)V is the identity then, not V'V, and scores are codes V'(Y'Y).
    solver : "auto", "cholesky" or "cg", default="auto"
        Least squares by factorising X'X, or by conjugate gradients on all columns at once. "auto"
        factorises a dense X and a sparse one in which at most 2000 features occur.
    tol : float, default=1e-3
        Of conjugate gradients: relative length of the gradient at which they end.
    max_iter : int, default=100
        Of conjugate gradients.
    regressor : estimator or None, default=None
        Predicts the columns YQ from X in line 5, instead of least squares: any regressor of several
        outputs.
    cv : int, splitter or None, default=None
        With a `regressor`: predictions of rows by models that have not seen them. In its own
        training rows a flexible regressor repeats Y, and V tends to the most frequent labels.
    random_state : int, RandomState instance or None, default=None
    n_jobs : int or None, default=None
        Threads of products with sparse matrices.

    Attributes
    ----------
    components_ : ndarray of shape (k, n_labels)
        V'.
    eigenvalues_ : ndarray of shape (k,)
        The paper's Sigma: those of Y' Pi_X Y; with `whiten`, squared canonical correlations.
    mean_ : ndarray of shape (n_labels,) or None
    n_components_ : int

    Notes
    -----
    Z in line 8 is fitted to the Q of the last iteration, the (q + 1)-th pass. Lines 8 to 10 are
    computed by a QR factorisation and a small SVD, so that V is orthonormal to rounding.

    The low-rank plus L1 residual of section 5 is not offered: the residual's direct connections
    from features to labels are a sparse (n_features, n_labels) regression, which scikit-learn's
    ``SGDClassifier(penalty="l1")`` fits label by label, and the paper defines no joint method.

    References
    ----------
    P. Mineiro and N. Karampatziakis, "Fast Label Embeddings via Randomized Linear Algebra", ECML
    PKDD 2015.
    """

    _needs_X = True

    def __init__(
        self,
        k,
        p=20,
        q=1,
        *,
        ridge=1.0,
        center=False,
        whiten=False,
        solver="auto",
        tol=1e-3,
        max_iter=100,
        regressor=None,
        cv=None,
        random_state=None,
        n_jobs=None,
    ):
        store(self, locals())

    def _fit(self, X, Y, weight):
        k = self._width(Y.shape[1])
        p, q = number(self.p, "p", 0, whole=True), number(self.q, "q", 0, whole=True)
        self.mean_ = weighted_mean(Y, weight) if self.center else None
        Y = Y.astype(X.dtype, copy=False)
        predict = self._predictor(X, weight)
        rng = check_random_state(self.random_state)
        Q = rng.standard_normal((Y.shape[1], min(k + p, Y.shape[1]))).astype(X.dtype)
        whitener = _Whitener(Y, self.mean_, weight) if self.whiten else None
        for _ in range(q):
            Psi = self._outer(predict, Y, Q, weight)
            Q = _orthogonalize(Psi if whitener is None else whitener.solve(Psi))
        Psi = self._outer(predict, Y, Q, weight)
        if whitener is None:
            V, self.eigenvalues_ = _top_left(Psi, k)
            self._metric = None
        else:
            V, self.eigenvalues_, self._metric = whitener.top(Q, Psi, k)
        self.components_ = np.ascontiguousarray(V.T)
        self.n_components_ = k

    def _predictor(self, X: Any, weight: np.ndarray | None):
        """Line 5: from T = YQ to what the model predicts for it, XZ."""
        if self.regressor is None:
            least_squares = LeastSquares(
                X,
                weight=weight,
                center=self.center,
                ridge=self.ridge,
                solver=self.solver,
                tol=self.tol,
                max_iter=self.max_iter,
                n_jobs=self.n_jobs,
            )
            return lambda T: least_squares.fitted(least_squares.solve(T))

        def predict(T: np.ndarray) -> np.ndarray:
            fitted = {} if weight is None else {"sample_weight": weight}
            if self.cv is None:
                P = clone(self.regressor).fit(X, T, **fitted).predict(X)
            else:
                P = cross_val_predict(self.regressor, X, T, cv=self.cv, params=fitted)
            return np.asarray(P, dtype=T.dtype).reshape(T.shape)

        return predict

    def _outer(self, predict, Y, Q, weight) -> np.ndarray:
        """Y'XZ, where Z is fitted to YQ."""
        XZ = weigh(predict(shifted_product(Y, Q, self.mean_, self.n_jobs)), weight)
        Psi = t_product(Y, np.ascontiguousarray(XZ), n_jobs=self.n_jobs)
        if self.mean_ is not None:
            Psi -= np.outer(self.mean_, XZ.sum(axis=0))
        return Psi

    def _decode(self, codes):
        if self._metric is None:
            return super()._decode(codes)
        scores = codes @ self._metric
        return scores if self.mean_ is None else scores + self.mean_

    def similarity(self) -> np.ndarray:
        """Similarity of labels in factored form, k numbers a label.

        Returns
        -------
        S : ndarray of shape (n_labels, k)
            S S' is the best similarity matrix of rank k: of labels predicted together from X.
        """
        return self.components_.T * np.sqrt(self.eigenvalues_)


def _orthogonalize(Psi: np.ndarray) -> np.ndarray:
    return linalg.qr(Psi, mode="economic", check_finite=False)[0]


def _top_left(Psi: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Lines 8 to 10: V = Psi eigenvectors Sigma^+ of eig(Psi'Psi, k), by QR and a small SVD."""
    Q, R = linalg.qr(Psi, mode="economic", check_finite=False)
    U, sigma, _ = linalg.svd(R, check_finite=False)
    return Q @ U[:, :k], sigma[:k]


class _Whitener:
    """The metric M = Y'WY + eps I of canonical correlation analysis, by products with Y only."""

    def __init__(self, Y: Any, mean: np.ndarray | None, weight: np.ndarray | None) -> None:
        self.Y, self.mean, self.weight = Y, mean, weight
        # Labels that never occur would have no variance: a little is given to all.
        total = float(Y.shape[0] if weight is None else weight.sum())
        self.eps = 1e-6 * total / Y.shape[1]
        self._solver = LeastSquares(
            Y, weight=weight, center=mean is not None, ridge=self.eps, solver="cg", tol=1e-6
        )

    def solve(self, B: np.ndarray) -> np.ndarray:
        """M^-1 B; where each row has one label M is diagonal and one iteration exact."""
        return self._solver.solve_normal(B)

    def top(self, Q: np.ndarray, Psi: np.ndarray, k: int):
        """V of largest correlations in the range of Q, with V'MV = I; their squares; (MV)'."""
        MQ = self._solver.apply_normal(Q)
        A, B = Q.T @ Psi, Q.T @ MQ
        values, C = linalg.eigh((A + A.T) / 2, (B + B.T) / 2)
        C = np.ascontiguousarray(C[:, ::-1][:, :k])
        return Q @ C, np.maximum(values[::-1][:k], 0.0), (MQ @ C).T
