"""From codes to labels: what the embedding's own inverse gives, or logistic regression on codes.

The last step of Mineiro and Karampatziakis' Algorithm 3. Scores of many rows are made block by
block, so that lists of the best need no (n_samples, n_labels) array.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from scipy import linalg, sparse
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from pyrpo._docs import store
from pyrpo._inputs import canonical, check_structure, check_weight
from pyrpo._native_scores import scores_topk
from pyrpo._options import label_count, number

__all__ = ["LogisticDecoder"]

_SCORES = 1 << 24  # numbers of a block of scores
_ROWS = 2048  # of codes that each pass over many labels' coefficients serves
_MOMENTUM, _MEMORY = 0.9, 0.999
_BATCH, _FEWEST_STEPS = 512, 1000
_EPOCHS, _PATIENCE = 40, 15
_HELD = 2500  # rows
_ROUNDING = 1e-6  # of the largest: what varies less is constant
_FLAT = 0.03  # added to the variances of standardised codes before whitening


class LogisticDecoder(BaseEstimator):
    """Softmax regression of classes, or independent logistic regressions of labels, on few codes.

    Codes are whitened by their covariance, the second-order information that Agarwal et al. (2014)
    precondition with: Hessians of either loss are bounded by multiples of it. Then steps are taken
    on blocks of rows with a step size of its own for each coefficient (Adam), falling linearly to
    zero; the coefficients with the smallest held-out loss are kept.

    Parameters
    ----------
    loss : "softmax" or "logistic", default="softmax"
        One class a row, or any number of labels.
    l2 : float, default=0.2
        Half of it times the squared coefficients, those of whitened codes, is added to the sum of
        the rows' losses: 1/C of scikit-learn.
    max_epochs : int or "auto", default="auto"
        Passes over the rows. "auto": 40 or, on few rows, where a pass has few steps, as many as
        have 1000.
    validation_fraction : float, default=0.1
        Share of the rows, 2500 at most, whose loss says when to stop. 0: none, all epochs are
        made. Fewer than 20 rows are never split.
    patience : int or "auto", default="auto"
        Epochs without improvement after which to stop. "auto": 15, or a quarter of all.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    coef_ : ndarray of float32 of shape (n_codes, n_labels)
    intercept_ : ndarray of float32 of shape (n_labels,)
    n_epochs_ : int
    validation_loss_ : list of float
        Mean loss of a held-out row after each epoch.

    References
    ----------
    A. Agarwal, S. Kakade, N. Karampatziakis, L. Song and G. Valiant, "Least Squares Revisited:
    Scalable Approaches for Multi-class Prediction", ICML 2014.
    """

    def __init__(
        self,
        loss="softmax",
        *,
        l2=0.2,
        max_epochs="auto",
        validation_fraction=0.1,
        patience="auto",
        random_state=None,
    ):
        store(self, locals())

    def fit(self, codes, Y, sample_weight=None):
        """Fit the coefficients.

        Parameters
        ----------
        codes : array of shape (n_samples, n_codes)
            Those that vary a millionth as much as another are taken to be constant: rounding.
        Y : array or sparse matrix of shape (n_samples, n_labels)
            Indicators; with the softmax loss exactly one a row.
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        self._check_parameters()
        codes = check_array(codes, dtype=np.float32, input_name="codes")
        check_structure(Y, "Y")
        Y = check_array(Y, accept_sparse="csr", dtype=np.float32, input_name="Y")
        Y = canonical(sparse.csr_array(Y))
        if Y.shape[0] != len(codes):
            raise ValueError(f"codes have {len(codes)} rows, Y has {Y.shape[0]}")
        if self.loss == "softmax" and (np.diff(Y.indptr) != 1).any():
            raise ValueError("Y must have exactly one class a row with loss='softmax'")
        weight = check_weight(sample_weight, len(codes), 1)
        if weight is not None:
            weight = weight.ravel()
            used = np.flatnonzero(weight > 0)
            codes, Y, weight = codes[used], Y[used], weight[used].astype(np.float32)
            weight = weight / weight.mean()
        rng = check_random_state(self.random_state)
        mean, whiten = _whitening(codes, weight)
        Z = (codes - mean) @ whiten
        W = self._descend(_with_ones(Z), Y, weight, rng)
        self.coef_ = np.ascontiguousarray(whiten @ W[:-1])
        self.intercept_ = W[-1] - mean @ self.coef_
        return self

    def _check_parameters(self) -> None:
        if self.loss not in ("softmax", "logistic"):
            raise ValueError(f"loss must be 'softmax' or 'logistic', got {self.loss!r}")
        number(self.l2, "l2", 0.0, 1e300)
        if not 0 <= self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction must be at least 0 and below 1, "
                f"got {self.validation_fraction}"
            )
        for name in ("max_epochs", "patience"):
            value = getattr(self, name)
            if isinstance(value, str) and value == "auto":
                continue
            number(value, name, 1, 1e9, whole=True)

    def _descend(self, Z: Any, Y: Any, weight: np.ndarray | None, rng: Any) -> np.ndarray:
        """Coefficients of whitened codes, the last row being intercepts."""
        n, n_labels = Y.shape
        order = rng.permutation(n)
        n_held = min(int(self.validation_fraction * n), _HELD) if n >= 20 else 0
        held, train = np.sort(order[:n_held]), order[n_held:]
        batch = max(1, min(_BATCH, len(train) // 8, max(16, _SCORES // n_labels)))
        per_epoch = -(-len(train) // batch)
        epochs = self.max_epochs
        if epochs == "auto":
            epochs = max(_EPOCHS, -(-_FEWEST_STEPS // per_epoch))
        patience = max(_PATIENCE, epochs // 4) if self.patience == "auto" else self.patience
        W = np.zeros((Z.shape[1], n_labels), dtype=np.float32)
        W[-1] = self._start(Y[np.sort(train)])
        steps = _Steps(W, per_epoch * epochs)
        best, kept, waited = np.inf, W, 0
        self.validation_loss_ = []
        for epoch in range(epochs):
            self.n_epochs_ = epoch + 1
            for rows in np.array_split(rng.permutation(train), per_epoch):
                steps.take(self._gradient(W, Z[rows], Y[rows], _of(weight, rows), len(train)))
            if not n_held:
                continue
            loss = self._loss(W, Z, Y, weight, held)
            self.validation_loss_.append(loss)
            waited += 1
            if loss < best:
                best, kept, waited = loss, W.copy(), 0
            if waited >= patience:
                break
        return kept

    def _start(self, Y: Any) -> np.ndarray:
        """Intercepts that predict each label's frequency."""
        count = np.bincount(Y.indices, minlength=Y.shape[1]) + 0.5
        if self.loss == "softmax":
            return np.log(count / count.sum())
        share = count / (Y.shape[0] + 1.0)
        return np.log(share / (1 - share))

    def _gradient(self, W, Z, Y, weight, n) -> np.ndarray:
        """Mean over the rows of a block, with the penalty's share."""
        P = self._probabilities(Z @ W)
        P[np.repeat(np.arange(len(Z)), np.diff(Y.indptr)), Y.indices] -= 1.0
        if weight is not None:
            P *= weight[:, None]
        G = Z.T @ P
        G /= len(Z)
        G[:-1] += (self.l2 / n) * W[:-1]
        return G

    def _probabilities(self, S: np.ndarray) -> np.ndarray:
        return softmax(S) if self.loss == "softmax" else sigmoid(S)

    def _loss(self, W, Z, Y, weight, held: np.ndarray) -> float:
        """Mean loss of held-out rows."""
        total = 0.0
        for part in blocks(len(held), Y.shape[1]):
            rows = held[part]
            S, labels = Z[rows] @ W, Y[rows]
            hit = S[np.repeat(np.arange(len(rows)), np.diff(labels.indptr)), labels.indices]
            if self.loss == "softmax":
                top = S.max(axis=1)
                each = top + np.log(np.exp(S - top[:, None]).sum(axis=1)) - hit
            else:
                each = (np.maximum(S, 0) + np.log1p(np.exp(-np.abs(S)))).sum(axis=1)
                each -= np.bincount(
                    np.repeat(np.arange(len(rows)), np.diff(labels.indptr)), hit, len(rows)
                )
            total += float(each.sum() if weight is None else each @ weight[rows])
        return total / (len(held) if weight is None else float(weight[held].sum()))

    def scores(self, codes) -> np.ndarray:
        """Log-odds of labels, or logarithms of classes' probabilities up to a constant a row.

        Parameters
        ----------
        codes : array of shape (n_samples, n_codes)

        Returns
        -------
        scores : ndarray of shape (n_samples, n_labels)
        """
        check_is_fitted(self)
        S = np.asarray(codes, dtype=np.float32) @ self.coef_
        S += self.intercept_
        return S

    def predict_proba(self, codes) -> np.ndarray:
        """Probabilities of all labels or classes.

        Parameters
        ----------
        codes : array of shape (n_samples, n_codes)

        Returns
        -------
        p : ndarray of shape (n_samples, n_labels)
        """
        return self._probabilities(self.scores(codes))

    def predict_topk(self, codes, k: int, n_jobs: int | None = None):
        """The k most probable labels of each row, best first, and their probabilities.

        Parameters
        ----------
        codes : array of shape (n_samples, n_codes)
        k : int
        n_jobs : int or None, default=None

        Returns
        -------
        labels : ndarray of int64 of shape (n_samples, k)
        p : ndarray of shape (n_samples, k)
        """
        labels, best, total = self._top(codes, k, n_jobs, self.loss == "softmax")
        return labels, sigmoid(best) if total is None else np.exp(best - total)

    def best(self, codes, k: int, n_jobs: int | None = None):
        """The k best labels of each row and their scores: quicker than probabilities of classes.

        Parameters
        ----------
        codes : array of shape (n_samples, n_codes)
        k : int
        n_jobs : int or None, default=None

        Returns
        -------
        labels : ndarray of int64 of shape (n_samples, k)
        scores : ndarray of shape (n_samples, k)
        """
        return self._top(codes, k, n_jobs, False)[:2]

    def _top(self, codes, k: int, n_jobs: int | None, totals: bool):
        """The best, their scores and, with `totals`, log sum exp of all scores, (n_samples, 1)."""
        check_is_fitted(self)
        codes, n_labels = np.asarray(codes, dtype=np.float32), len(self.intercept_)
        k = label_count(k, n_labels)
        labels, best = np.empty((len(codes), k), dtype=np.int64), np.empty((len(codes), k))
        total = np.empty((len(codes), 1)) if totals else None
        for start in range(0, len(codes), _ROWS):
            rows = slice(start, start + _ROWS)
            found = self._top_of_rows(codes[rows], k, n_jobs, totals)
            labels[rows], best[rows] = found[:2]
            if total is not None:
                total[rows] = found[2]
        return labels, best, total

    def _top_of_rows(self, codes: np.ndarray, k: int, n_jobs: int | None, totals: bool):
        """`_top` of few rows, so that scores of many labels at a time fit a block."""
        found, total = [], np.full((len(codes), 1), -np.inf)
        for part in blocks(len(self.intercept_), len(codes)):
            S = codes @ self.coef_[:, part]
            S += self.intercept_[part]
            index, best, _ = scores_topk(S, min(k, S.shape[1]), n_jobs)
            found.append((index + part.start, best))
            if totals:
                top = np.maximum(total, best[:, :1]).astype(np.float32)
                S -= top
                share = np.exp(S, out=S).sum(axis=1, keepdims=True)
                total = top + np.log(share + np.exp(total - top))
        labels, best = (np.hstack(each) for each in zip(*found, strict=True))
        if len(found) > 1:
            place, best, _ = scores_topk(best, k, n_jobs)
            labels = np.take_along_axis(labels, place, axis=1)
        return labels, best, total


class _Steps:
    """Adam: averages of gradients and of their squares; the rate falls linearly to zero."""

    def __init__(self, W: np.ndarray, total: int) -> None:
        # A first step moves all coefficients of a score, whose codes have variance 1.
        self.rate = min(0.2, 5.0 / len(W))
        self.W, self.total, self.done = W, total, 0
        self.first, self.second = np.zeros_like(W), np.zeros_like(W)

    def take(self, G: np.ndarray) -> None:
        rate = self.rate * (1.0 - self.done / self.total)
        self.done += 1
        self.first *= _MOMENTUM
        self.first += (1 - _MOMENTUM) * G
        self.second *= _MEMORY
        np.square(G, out=G)
        G *= 1 - _MEMORY
        self.second += G
        scale = np.sqrt(self.second / (1 - _MEMORY**self.done), out=G)
        scale += 1e-8
        np.divide(self.first, scale, out=scale)
        scale *= rate / (1 - _MOMENTUM**self.done)
        self.W -= scale


def _of(weight: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if weight is None else weight[rows]


def _with_ones(Z: np.ndarray) -> np.ndarray:
    return np.hstack([Z, np.ones((len(Z), 1), dtype=Z.dtype)])


def _whitening(codes: np.ndarray, weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Mean, and the matrix that makes centred codes uncorrelated and of variance 1."""
    w = np.full(len(codes), 1.0 / len(codes)) if weight is None else weight / weight.sum()
    w = w.astype(np.float32)
    mean = w @ codes
    centred = codes - mean
    cov = (centred.T @ (w[:, None] * centred)).astype(np.float64)
    spread = np.sqrt(np.diag(cov))
    size = np.abs(codes).max(axis=0, initial=np.finfo(np.float32).tiny)
    varies = spread > _ROUNDING * np.maximum(size, spread.max(initial=0.0))
    scale = np.divide(1.0, spread, out=np.zeros_like(spread), where=varies)
    cov *= scale * scale[:, None]
    cov[np.diag_indices_from(cov)] += np.where(varies, _FLAT, 1.0)
    lower = linalg.cholesky(cov, lower=True)
    root = linalg.solve_triangular(lower, np.eye(len(cov)), lower=True).T
    return mean, (scale[:, None] * root).astype(np.float32)


def softmax(S: np.ndarray) -> np.ndarray:
    """Of each row, in place."""
    S -= S.max(axis=1, keepdims=True)
    np.exp(S, out=S)
    S /= S.sum(axis=1, keepdims=True)
    return S


def sigmoid(S: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-s)), in place; scores beyond ±80 count as that."""
    np.clip(S, -80.0, 80.0, out=S)
    np.negative(S, out=S)
    np.exp(S, out=S)
    S += 1.0
    return np.reciprocal(S, out=S)


def blocks(n_rows: int, n_labels: int) -> Iterator[slice]:
    """Slices of rows whose scores fit a block."""
    step = max(1, _SCORES // max(n_labels, 1))
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def top_of_blocks(
    scores: Callable[[slice], np.ndarray],
    n_rows: int,
    n_labels: int,
    k: int,
    n_jobs: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The k best labels of each row and their scores, block by block."""
    k = label_count(k, n_labels)
    labels, best = np.empty((n_rows, k), dtype=np.int64), np.empty((n_rows, k))
    for rows in blocks(n_rows, n_labels):
        labels[rows], best[rows], _ = scores_topk(scores(rows), k, n_jobs)
    return labels, best
