"""What both boosting estimators share: parameters to options, rows to hold out, fitting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pyrpo._boost_data import BoostData
from pyrpo._boost_learner import LearnerBoost, LearnerModel, check_learner
from pyrpo._boost_run import Run
from pyrpo._boost_weights import FactoredWeights, weights_of
from pyrpo._fitted import Fitted
from pyrpo._inputs import check_same_rows, check_X, check_y_given
from pyrpo._native import Features, Projection
from pyrpo._native_boost import LEAVES, LOSSES, Boost, staged_scores
from pyrpo._options import (
    bin_count,
    check_shared,
    count,
    feature_count,
    number,
    seed_of,
    switch,
)
from pyrpo.projection import NAMES, resolve_projection

_LEAST_GAIN = 0.02  # of loss, in a leaf's step of one output: less is left out of compact models


_STEPS, _SIZE = (0.015, 0.03), 1e6  # learning rates; up to which size of X and y the small one
_LARGEST_STEP = 0.1  # where rounds are few
_PATH, _PATIENCE = 1.5, 20  # how far to go on without a gain: rate times rounds; rounds at least


class BaseBoosting(Fitted):
    """Rounds of boosting until a number, a time or early stopping ends them."""

    _losses: tuple[str, ...] = ()
    _attributes = (
        *("n_estimators_", "learning_rate_", "train_score_", "validation_score_"),
        *("estimators_", "steps_"),
    )

    # ---- what subclasses differ in ----

    def _read_y(self, y: Any, sample_weight: Any, *, reset: bool) -> BoostData:
        raise NotImplementedError

    def _score_held_out(self, data: BoostData, scores: np.ndarray) -> float:
        raise NotImplementedError

    # ---- fitting ----

    def fit(self, X, y, sample_weight=None, *, eval_set=None):
        """Boost. A call that fails or is interrupted leaves the estimator as it was.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            NaN means missing.
        y : array of shape (n_samples,), or array or sparse matrix of shape (n_samples, n_outputs)
            NaN means missing, except in 1-D classes: it gives no gradient.
        sample_weight : array of shape (n_samples,) or (n_samples, n_outputs), default=None
        eval_set : (X, y) or (X, y, sample_weight), default=None
            What early stopping looks at, instead of a share of the training data.

        Returns
        -------
        self
        """
        fitted = copy(self)
        fitted._fit(X, y, sample_weight, eval_set)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, eval_set: Any) -> None:
        check_y_given(self, y)
        again = switch(self.warm_start, "warm_start")
        earlier = self._forget()
        earlier = earlier if again and "_model" in earlier else {}
        self._check_complete(earlier)
        X = check_X(self, X, reset=True)
        data = self._read_y(y, sample_weight, reset=True)
        data.check_observed()
        check_same_rows(X, data.Y)
        if again and self.strategy == "single_target" and data.outputs > 1:
            raise ValueError("warm_start=True does not go with strategy='single_target'")
        check_shared(self)
        self.learning_rate_ = self._rate(X, data, earlier)
        options = self._options(data, X.shape[1])
        stopping, patience = self._stopping(data, eval_set), self._patience()
        seed = seed_of(self.random_state)
        if not earlier:  # else that of the rounds already run
            self._seed = seed
        options["seed"] = self._seed
        projection = self._projection(data)
        X, data = self._hold_out(X, data, stopping, eval_set)
        make = self._maker(X, options)
        refit = stopping and switch(self.refit, "refit") and eval_set is None and not again
        began, budget = perf_counter(), self.max_time
        if budget is not None and refit:
            budget /= 2
        run = Run(self, make, data, projection, stopping, patience, budget)
        with self._bar(self.n_estimators, "round") as told:
            run.go(earlier, told)
            run.finish()
            if refit:
                run.boosts.clear()  # their scores are as large as the next ones'
                if budget is not None:
                    budget = self.max_time - (perf_counter() - began)
                whole = Run(self, make, data.hold([]), projection, False, patience, budget)
                whole.limits = [min(self.n_estimators, data.scaled_up(r)) for r in run.best]
                whole.go({}, told)
                whole.finish()

    def _maker(self, X: Any, options: dict[str, float]) -> Callable[..., Boost]:
        """What makes runs: of our trees, whose features are encoded once, or of a learner."""
        if self.base_estimator is not None:
            return partial(LearnerBoost, self.base_estimator, X, self._seed, options)
        return partial(Boost, options, Features(X, bin_count(self.max_bins), self.n_jobs))

    def _options(self, data: BoostData, p: int) -> dict[str, float]:
        """Check the other parameters; the library's options."""
        n = data.rows
        loss = self._loss_name(data)
        alone = self.projection is None or self.strategy == "single_target"
        relabel = switch(self.relabel, "relabel") or alone
        if self.base_estimator is not None:
            check_learner(self.base_estimator, self)
        newton = relabel and self.base_estimator is None
        leaf = ("newton" if newton else "mean") if self.leaf == "auto" else self.leaf
        if leaf not in LEAVES:
            raise ValueError(f"leaf must be 'auto', 'newton' or 'mean', got {self.leaf!r}")
        options = {
            "loss": LOSSES.index(loss),
            "leaf": LEAVES.index(leaf),
            "relabel": int(relabel),
            # Files from before it was chosen have the parameter alone.
            "learning_rate": vars(self).get("learning_rate_", self.learning_rate),
            "subsample": number(self.subsample, "subsample", 1e-9, 1.0),
            "l2": number(self.l2, "l2", 0.0),
            "min_samples_split": count(self.min_samples_split, n, "min_samples_split", low=2),
            "min_samples_leaf": count(self.min_samples_leaf, n, "min_samples_leaf"),
            "max_features": feature_count(self._max_features(p), p),
            **self._leaf_numbers(loss, data),
            "train_loss": 1,
        }
        if self.max_depth is not None:
            options["max_depth"] = number(self.max_depth, "max_depth", 1, 10**9, whole=True)
        if self.max_leaf_nodes is not None:
            options["max_leaf_nodes"] = number(self.max_leaf_nodes, "max_leaf_nodes", 2, whole=True)
        if loss == "huber":
            options["huber_quantile"] = number(self.huber_quantile, "huber_quantile", 0.0, 1.0)
        return options

    def _rate(self, X: Any, data: BoostData, earlier: dict[str, Any]) -> float:
        """Small steps do better and take more rounds: fewer where rounds are long, or not many."""
        if isinstance(self.learning_rate, str) and self.learning_rate != "auto":
            raise ValueError(
                f"learning_rate must be 'auto' or a number, got {self.learning_rate!r}"
            )
        if not isinstance(self.learning_rate, str):
            return float(number(self.learning_rate, "learning_rate", 1e-6, 1.0))
        if "learning_rate_" in earlier:
            return earlier["learning_rate_"]
        size = np.count_nonzero(X.data if sparse.issparse(X) else X) + data.rows * data.outputs
        small, large = _STEPS
        step = large if self.max_time is not None else small * max((size / _SIZE) ** 0.5, 1.0)
        return max(min(step, large), min(10.0 / self.n_estimators, _LARGEST_STEP))

    def _leaf_numbers(self, loss: str, data: BoostData) -> dict[str, float]:
        """How leaves are kept: scores of labels bear 16 bits, and few of them move in a leaf."""
        labels = loss in ("logistic", "exponential", "softmax")
        if not (isinstance(self.compact, str) and self.compact == "auto"):
            compact = switch(self.compact, "compact")
            if compact and not labels:
                raise ValueError("compact=True is for losses of labels and classes")
        else:
            compact = labels and data.outputs >= 32
        return {"half": 1, "leaf_min_gain": _LEAST_GAIN} if compact else {}

    def _max_features(self, p: int) -> Any:
        """Three in ten features, ten at least: boosting gains by it, in time and precision."""
        if isinstance(self.max_features, str) and self.max_features == "auto":
            return min(p, max(10, round(0.3 * p)))
        return self.max_features

    def _loss_name(self, data: BoostData) -> str:
        if callable(self.loss):
            return "custom"
        if self.loss not in self._losses:
            raise ValueError(f"loss must be a callable or one of {self._losses}, got {self.loss!r}")
        return self.loss

    def _projection(self, data: BoostData) -> Projection | None:
        if self.strategy == "single_target" or self.projection is None:
            return None
        if isinstance(self.projection, str) and self.projection in ("top", "norm-sampling"):
            m = number(self.n_components, "n_components", 1, whole=True)
            return Projection(self.projection.replace("-", "_"), int(m))
        if isinstance(self.projection, str) and self.projection not in NAMES:
            names = [*sorted({*NAMES} - {"pca"}), "top", "norm-sampling"]
            raise ValueError(
                f"projection must be one of {names}, an object, an array or None, got "
                f"{self.projection!r}"
            )
        spec, target = resolve_projection(
            self.projection, self.n_components, data.Y, seed=self._seed, shared=False
        )
        if target is not None:
            raise ValueError(
                f"projection={self.projection!r} looks at y once; boosting projects new gradients "
                "each round and takes a name, an object of pyrpo.projection, or a matrix"
            )
        return spec

    # ---- early stopping ----

    def _stopping(self, data: BoostData, eval_set: Any) -> bool:
        if self.early_stopping not in (True, False, "auto"):
            raise ValueError(
                f"early_stopping must be a bool or 'auto', got {self.early_stopping!r}"
            )
        share = number(self.validation_fraction, "validation_fraction", 0.0, 1.0)
        if not 0.0 < share < 1.0:
            raise ValueError(f"validation_fraction must be in (0, 1), got {share}")
        number(self.tol, "tol", 0.0)
        if not (self.scoring in ("loss", "lrap") or callable(self.scoring)):
            raise ValueError(f"scoring must be 'loss', 'lrap' or a callable, got {self.scoring!r}")
        if self.scoring == "lrap" and not self._ranks():
            raise ValueError("scoring='lrap' is for label indicators and strategy='joint'")
        if eval_set is not None:
            return True
        few = np.count_nonzero(data.weight) if data.weight is not None else data.rows
        if self.early_stopping is True and few < 2:
            raise ValueError(f"early_stopping needs rows to hold out, but there is {few} sample")
        return bool(self.early_stopping) and few > 1

    def _patience(self) -> int:
        given = self.n_iter_no_change
        if isinstance(given, str) and given == "auto":
            return max(_PATIENCE, round(_PATH / self.learning_rate_))
        if isinstance(given, str):
            raise ValueError(f"n_iter_no_change must be 'auto' or an int, got {given!r}")
        return number(given, "n_iter_no_change", 1, whole=True)

    def _ranks(self) -> bool:
        return bool(self._indicator) and self.strategy == "joint"

    def _hold_out(self, X: Any, data: BoostData, stopping: bool, eval_set: Any):
        """Rows that are watched, not trained on: given ones, or a share drawn by row."""
        if eval_set is not None:
            if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
                found = len(eval_set) if isinstance(eval_set, tuple | list) else type(eval_set)
                raise ValueError(f"eval_set must be (X, y) or (X, y, sample_weight), got {found!r}")
            other = check_X(self, eval_set[0], reset=False)
            more = self._read_y(eval_set[1], (*eval_set, None)[2], reset=False)
            if more.rows != other.shape[0] or more.outputs != data.outputs:
                raise ValueError(
                    f"eval_set: X has {other.shape[0]} rows, y has {more.rows} of {more.outputs} "
                    f"outputs; {data.outputs} outputs are wanted"
                )
            stack = sparse.vstack if sparse.issparse(X) or sparse.issparse(other) else np.vstack
            return stack([X, other], **({"format": "csr"} if stack is sparse.vstack else {})), (
                data.stack(more)
            )
        if not stopping:
            return X, data
        held = data.choose(self._seed, self.validation_fraction)
        return X, data.hold(held)

    # ---- reading out ----

    def _scores(self, X: Any) -> np.ndarray:
        return self._call("predict", X)

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        """Scores after each round: one array, changed by the next."""
        check_is_fitted(self)
        X = check_X(self, X, reset=False)
        if isinstance(self._model, LearnerModel):
            return self._model.staged(X)
        return staged_scores(self._model, X, self.n_jobs)

    def _staged_values(self, X: Any) -> Iterator[np.ndarray]:
        """Outputs or probabilities after each round."""
        for scores in self._staged(X):
            yield self._shaped(scores.astype(np.float64))

    def _decide(self, values: np.ndarray) -> np.ndarray:
        """What `predict` makes of values; classifiers choose by them."""
        return values

    def staged_predict(self, X) -> Iterator[np.ndarray]:
        """What `predict` says after each round (of single targets: after each tree).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Yields
        ------
        y : ndarray of the shape of `predict`
        """
        for values in self._staged_values(X):
            yield self._decide(values)

    def weights(self, X, X_fit, sample_weight=None) -> np.ndarray | FactoredWeights:
        """Weights of the training samples in the prediction of each row of X: squared loss only.

        Predictions (a classifier's scores) are these weights times the training outputs. Rows sum
        to 1; weights may be negative. With ``relabel=False`` a prediction combines all outputs:
        then the weights come in factors, with a method ``apply(Y)`` that multiplies them with
        outputs and a method ``between(j, k)`` that gives those of one output in another. Parameters
        must be those of `fit`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        X_fit : array or sparse matrix of shape (n_training_samples, n_features)
            The X of `fit`. Data that do not agree with the leaves are refused.
        sample_weight : array of shape (n_training_samples,), default=None
            The weights of `fit`, times those of the classes if there is a `class_weight`.

        Returns
        -------
        W : ndarray of shape (n_samples, n_training_samples), or `FactoredWeights`
        """
        check_is_fitted(self)
        return weights_of(self, X, X_fit, sample_weight)

    def apply(self, X) -> np.ndarray:
        """Leaf of each row in each tree, by node number.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        leaves : ndarray of int64, shape (n_samples, n_trees)
        """
        return self._call("apply", X)
