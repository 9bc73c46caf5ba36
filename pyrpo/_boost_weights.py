"""What boosting with the squared loss makes of the training outputs: a linear map, given its trees.

A leaf takes a share of the sum of its rows' residuals, and residuals are linear in the outputs:
predictions are weights times outputs (boosting paper, appendix B).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse

from pyrpo._boost_data import BoostData
from pyrpo._inputs import check_weight, check_X
from pyrpo._native import Model, Projection
from pyrpo._native_boost import LEAVES, model_steps, round_rows
from pyrpo._native_call import threads

_NUMBERS = 2**20  # of a block of columns: it stays in cache while all rounds pass


@dataclass
class Round:
    """Leaves of a round's tree: which rows of its sample they sum over, who ends in them."""

    sums: sparse.csr_array  # (leaves, training rows): weights of the round's sample
    total: np.ndarray  # by leaf
    fitted: np.ndarray  # leaf of each training row
    asked: np.ndarray  # leaf of each row that is asked about


def find_rounds(
    model: Model, X_fit: Any, X: Any, weight: np.ndarray, subsample: float, seed: int, n_jobs: Any
) -> list[Round]:
    """The rounds of a model again. ValueError when X_fit and weight are not those of its fit."""
    n = len(weight)
    nodes, asked = model.apply(X_fit, n_jobs), model.apply(X, n_jobs)
    rounds = []
    for m in range(model.n_trees):
        rows = round_rows(seed, m, subsample, weight)
        names, leaf = np.unique(np.concatenate([nodes[:, m], asked[:, m]]), return_inverse=True)
        shape = len(names), n
        sums = sparse.csr_array((weight[rows], (leaf[rows], rows)), shape=shape)
        total = np.bincount(leaf[rows], weight[rows], minlength=len(names))
        known = model.tree(m)["weight"][names]
        if not np.allclose(total, known, rtol=1e-6):
            raise ValueError(
                "X_fit and sample_weight are not those of fit: a leaf weighs "
                f"{total[np.argmax(abs(total - known))]:g} by them, in the model "
                f"{known[np.argmax(abs(total - known))]:g}"
            )
        rounds.append(Round(sums, total, leaf[:n], leaf[n:]))
    return rounds


def _blocks(n: int, width: int) -> list[slice]:
    each = max(1, _NUMBERS // max(width, 1))
    return [slice(i, min(i + each, n)) for i in range(0, n, each)]


def dense_weights(
    rounds: list[Round], start: np.ndarray, rate: float, l2: float, rows: int, n_jobs: Any
) -> np.ndarray:
    """Equation (45): one weight for each training row, shared by all outputs.

    By blocks of training rows k, with R the residuals where row k's output is 1 and all others 0:
    from start, every round adds ``rate / (total + l2)`` of the leaf's sums of R.
    """
    n = len(start)
    W = np.empty((rows, n))

    def fill(block: slice) -> None:
        R = np.zeros((n, block.stop - block.start))
        R[block][np.diag_indices(R.shape[1])] = 1.0
        R -= start[block]
        W[:, block] = start[block]
        for r in rounds:
            leaves = (r.sums @ R) * (rate / (r.total + l2))[:, None]
            R -= leaves[r.fitted]
            W[:, block] += leaves[r.asked]

    Parallel(n_jobs=threads(n_jobs), prefer="threads")(
        delayed(fill)(block) for block in _blocks(n, n)
    )
    return W


@dataclass
class FactoredWeights:
    """Weights of the training outputs in predictions of Algorithm 3, equation (47), in factors.

    The prediction of output j is a sum over training rows i and all outputs k: the model's steps
    are taken as they are, and what trees say is linear in the outputs that were projected. The
    whole array of shape `shape` is never made.

    Attributes
    ----------
    shape : tuple
        Rows asked about, training rows, outputs, outputs.
    start : ndarray of shape (n_training_samples,)
        Weights of an output's own values in its constant.
    phi : ndarray of shape (n_rounds, n_outputs)
        What each round projected residuals on.
    steps : ndarray of shape (n_rounds, n_outputs)
        What each output takes of a round, learning rate included.
    """

    start: np.ndarray
    phi: np.ndarray
    steps: np.ndarray
    _rounds: list[Round] = field(repr=False)
    _rows: int = 0

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the whole array."""
        d = self.phi.shape[1]
        return self._rows, len(self.start), d, d

    def _components(self, project: Any, shape: tuple[int, ...]) -> Iterator[np.ndarray]:
        """What each round's tree says of the rows asked about.

        ``project(m)`` gives the outputs, without their constants, projected by round m: of the
        shape given. What earlier rounds took away, projected, is steps @ phi of their own.
        """
        said = np.empty((len(self._rounds), *shape))
        for m, r in enumerate(self._rounds):
            taken = self.steps[:m] @ self.phi[m]
            z = project(m) - np.tensordot(taken, said[:m], 1)
            leaves = ((r.sums @ z).T / r.total).T
            said[m] = leaves[r.fitted]
            yield leaves[r.asked]

    def apply(self, Y: Any) -> np.ndarray:
        """Predictions from outputs Y: those of the model, if Y is that of its fit.

        Parameters
        ----------
        Y : array or sparse matrix of shape (n_training_samples, n_outputs)

        Returns
        -------
        predictions : ndarray of shape (n_samples, n_outputs)
        """
        if Y.shape != self.shape[1:3]:
            raise ValueError(f"Y must have shape {self.shape[1:3]}, got {Y.shape}")
        constants = np.asarray(Y.T @ self.start)
        Z = np.asarray(Y @ self.phi.T) - self.phi @ constants
        said = self._components(lambda m: Z[:, m], (len(self.start),))
        out = np.tile(constants, (self._rows, 1))
        for step, column in zip(self.steps, said, strict=True):
            out += np.multiply.outer(column, step)
        return out

    def between(self, j: int, k: int) -> np.ndarray:
        """Weights of the training values of output k in the predictions of output j.

        Parameters
        ----------
        j, k : int

        Returns
        -------
        W : ndarray of shape (n_samples, n_training_samples)
        """
        n = len(self.start)
        W = np.empty((self._rows, n))
        for block in _blocks(n, n * (len(self._rounds) + 1)):
            R = np.zeros((n, block.stop - block.start))
            R[block][np.diag_indices(R.shape[1])] = 1.0
            R -= self.start[block]
            W[:, block] = self.start[block] if j == k else 0.0
            said = self._components(lambda m, R=R: self.phi[m, k] * R, R.shape)
            for step, part in zip(self.steps[:, j], said, strict=True):
                W[:, block] += step * part
        return W


def factored_weights(
    model: Model, rounds: list[Round], start: np.ndarray, projection: Projection, rows: int
) -> FactoredWeights:
    """Draw the projections again, as the run rounded them."""
    phi = [replace(projection, stream=m).draw(model.n_outputs)[0] for m in range(len(rounds))]
    phi = np.array(phi).astype(np.float32).astype(np.float64)
    return FactoredWeights(start, phi, model_steps(model).astype(np.float64), rounds, rows)


def weights_of(boosting: Any, X: Any, X_fit: Any, sample_weight: Any) -> Any:
    """Weights of the training rows in a fitted estimator's predictions for X: see its `weights`."""
    _check_linear(boosting)
    X = check_X(boosting, X, reset=False)
    X_fit = check_X(boosting, X_fit, reset=False)
    model, n, n_jobs = boosting._model, X_fit.shape[0], boosting.n_jobs
    weight = check_weight(sample_weight, n, 1)
    weight = np.ones(n) if weight is None else np.ascontiguousarray(weight.ravel())
    weight = _unwatched(boosting, weight, model.n_rows)
    subsample = float(boosting.subsample)
    rounds = find_rounds(model, X_fit, X, weight, subsample, boosting._seed, n_jobs)
    start, data = weight / weight.sum(), BoostData(np.broadcast_to(0.0, (n, model.n_outputs)))
    options = boosting._options(data, X.shape[1])
    if options["relabel"]:
        l2 = options["l2"] if options["leaf"] == LEAVES.index("newton") else 0.0
        return dense_weights(rounds, start, options["learning_rate"], l2, X.shape[0], n_jobs)
    projection = replace(boosting._projection(data), seed=boosting._seed)
    return factored_weights(model, rounds, start, projection, X.shape[0])


def _check_linear(boosting: Any) -> None:
    """Refuse models that are not weights times outputs."""
    if boosting.loss != "squared":
        raise ValueError(
            f"weights: with loss={boosting.loss!r} predictions are not linear in the outputs; "
            "loss='squared' is needed"
        )
    if boosting.base_estimator is not None:
        raise ValueError("weights: base_estimator has no leaves; our trees are needed")
    if boosting.strategy == "single_target" and boosting._model.n_outputs > 1:
        raise ValueError("weights: strategy='single_target' has other weights for each output")
    named = boosting.projection if isinstance(boosting.projection, str) else None
    if named in ("top", "norm-sampling") and not boosting.relabel:
        raise ValueError(f"weights: projection={named!r} with relabel=False depends on the outputs")


def _unwatched(boosting: Any, weight: np.ndarray, rows: int) -> np.ndarray:
    """The weights with zeros for the rows that early stopping held out of this model."""
    stopped = bool(boosting.early_stopping) and rows == len(weight)  # else a set was given
    if not stopped or (boosting.refit and not boosting.warm_start):
        return weight
    if getattr(boosting, "_indicator", True) is False and len(boosting.classes_) > 2:
        raise ValueError(
            "weights: rows were held out by class; use refit=True or early_stopping=False"
        )
    data = BoostData(np.broadcast_to(0.0, (len(weight), 1)), weight)
    held = data.choose(boosting._seed, boosting.validation_fraction)
    weight = weight.copy()
    weight[held] = 0.0
    return weight
