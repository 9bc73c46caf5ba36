"""Gradient boosting of many outputs on random projections (Joly, Wehenkel and Geurts, 2017)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy import sparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pyrpo import _note
from pyrpo._boost_data import BoostData, classification_data, regression_data
from pyrpo._boost_learner import LearnerBoost, LearnerModel, check_learner
from pyrpo._boost_weights import FactoredWeights, dense_weights, factored_weights, find_rounds
from pyrpo._docs import documented, store
from pyrpo._inputs import check_weight, check_X
from pyrpo._native import Features, Projection, threads
from pyrpo._native_boost import LEAVES, LOSSES, Boost, staged_scores
from pyrpo._options import bin_count, count, feature_count, label_threshold, number, switch
from pyrpo.metrics import label_ranking_average_precision
from pyrpo.projection import resolve_projection

__all__ = ["GradientBoostingClassifier", "GradientBoostingRegressor"]

_SECONDS = 0.1  # of work between two looks at the clock and at early stopping
_LEAST_GAIN = 0.02  # of loss, in a leaf's step of one output: less is left out of compact models
_LOOK = 10  # rounds between two looks at a metric


class BaseBoosting(MultiOutputMixin, BaseEstimator):
    """Rounds of boosting until a number, a time or early stopping ends them."""

    _losses: tuple[str, ...] = ()
    _indicator: bool | None = None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

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
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        again = switch(self.warm_start, "warm_start")
        earlier = self._forget()
        earlier = earlier if again else {}
        X = check_X(self, X, reset=True)
        data = self._read_y(y, sample_weight, reset=True)
        data.check_observed()
        if data.rows != X.shape[0]:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {X.shape[0]}, y has {data.rows}"
            )
        options = self._options(data, X.shape[1])
        stopping = self._stopping(data, eval_set)
        random = check_random_state(self.random_state)
        self._seed = earlier["_seed_"] if earlier else int(random.randint(2**31 - 1))
        options["seed"] = self._seed
        projection = self._projection(data)
        X, data = self._hold_out(X, data, stopping, eval_set)
        make = self._maker(X, options)
        refit = stopping and switch(self.refit, "refit") and eval_set is None and not again
        budget = None if self.max_time is None else self.max_time / (2 if refit else 1)
        run = Run(self, make, data, projection, stopping, budget)
        with self._bar() as told:
            run.go(earlier, told)
            run.finish()
            if refit:
                run.boosts.clear()  # their scores are as large as the next ones'
                whole = Run(self, make, data.hold([]), projection, False, budget)
                whole.limits = run.best
                whole.go({}, told)
                whole.finish()

    def _maker(self, X: Any, options: dict[str, float]) -> Callable[..., Boost]:
        """What makes runs: of our trees, whose features are encoded once, or of a learner."""
        if self.base_estimator is not None:
            return partial(LearnerBoost, self.base_estimator, X, self._seed, options)
        return partial(Boost, options, Features(X, bin_count(self.max_bins), self.n_jobs))

    def _forget(self) -> dict[str, Any]:
        names = [n for n in vars(self) if n == "_model" or (n[-1] == "_" and n[0] != "_")]
        earlier = {name: self.__dict__.pop(name) for name in names}
        if "_model" not in earlier:
            return {}
        return earlier | {"_seed_": self._seed}

    def _options(self, data: BoostData, p: int) -> dict[str, float]:
        """Check every parameter; the library's options."""
        n = data.rows
        loss = self._loss_name(data)
        if self.strategy not in ("joint", "single_target"):
            raise ValueError(f"strategy must be 'joint' or 'single_target', got {self.strategy!r}")
        alone = self.projection is None or self.strategy == "single_target"
        relabel = switch(self.relabel, "relabel") or alone
        if self.base_estimator is not None:
            check_learner(self.base_estimator, self)
        newton = relabel and self.base_estimator is None
        leaf = ("newton" if newton else "mean") if self.leaf == "auto" else self.leaf
        if leaf not in LEAVES:
            raise ValueError(f"leaf must be 'auto', 'newton' or 'mean', got {self.leaf!r}")
        number(self.n_estimators, "n_estimators", 1, 10**9, whole=True)
        if self.max_time is not None:
            number(self.max_time, "max_time", 0.0)
        if self.n_jobs is not None and not number(self.n_jobs, "n_jobs", -np.inf, whole=True):
            raise ValueError("n_jobs must not be 0")
        options = {
            "loss": LOSSES.index(loss),
            "leaf": LEAVES.index(leaf),
            "relabel": int(relabel),
            "learning_rate": number(self.learning_rate, "learning_rate", 1e-6, 1.0),
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
        number(self.n_iter_no_change, "n_iter_no_change", 1, whole=True)
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

    def _ranks(self) -> bool:
        return bool(self._indicator) and self.strategy == "joint"

    def _hold_out(self, X: Any, data: BoostData, stopping: bool, eval_set: Any):
        """Rows that are watched, not trained on: given ones, or a share drawn by row."""
        if eval_set is not None:
            if not isinstance(eval_set, tuple | list) or len(eval_set) not in (2, 3):
                raise ValueError("eval_set must be (X, y) or (X, y, sample_weight)")
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
        rng = np.random.default_rng(self._seed)
        held = data.choose(rng, self.validation_fraction)
        return X, data.hold(held)

    @contextmanager
    def _tqdm(self):
        from tqdm.auto import tqdm

        with tqdm(total=self.n_estimators, desc=type(self).__name__, unit="round") as bar:
            yield lambda rounds: bar.update(rounds - bar.n)

    def _bar(self):
        return self._tqdm() if self.verbose else nullcontext(lambda rounds: None)

    # ---- reading out ----

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._model.predict(check_X(self, X, reset=False), self.n_jobs)

    def _staged(self, X: Any) -> Iterator[np.ndarray]:
        check_is_fitted(self)
        X = check_X(self, X, reset=False)
        if isinstance(self._model, LearnerModel):
            return self._model.staged(X)
        return staged_scores(self._model, X, self.n_jobs)

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
        self._check_weights()
        X = check_X(self, X, reset=False)
        X_fit = check_X(self, X_fit, reset=False)
        n, d = X_fit.shape[0], self._model.n_outputs
        weight = check_weight(sample_weight, n, 1)
        weight = np.ones(n) if weight is None else np.ascontiguousarray(weight.ravel())
        weight = self._unwatched(weight, self._model.n_rows)
        rounds = find_rounds(
            self._model, X_fit, X, weight, float(self.subsample), self._seed, self.n_jobs
        )
        start, data = weight / weight.sum(), BoostData(np.broadcast_to(0.0, (n, d)))
        options = self._options(data, X.shape[1])
        if options["relabel"]:
            l2 = options["l2"] if options["leaf"] == LEAVES.index("newton") else 0.0
            rate = options["learning_rate"]
            return dense_weights(rounds, start, rate, l2, X.shape[0], self.n_jobs)
        projection = replace(self._projection(data), seed=self._seed)
        return factored_weights(self._model, rounds, start, projection, X.shape[0])

    def _check_weights(self) -> None:
        """Refuse models that are not weights times outputs."""
        if self.loss != "squared":
            raise ValueError(
                f"weights: with loss={self.loss!r} predictions are not linear in the outputs; "
                "loss='squared' is needed"
            )
        if self.base_estimator is not None:
            raise ValueError("weights: base_estimator has no leaves; our trees are needed")
        if self.strategy == "single_target" and self._model.n_outputs > 1:
            raise ValueError("weights: strategy='single_target' has other weights for each output")
        named = self.projection if isinstance(self.projection, str) else None
        if named in ("top", "norm-sampling") and not self.relabel:
            raise ValueError(
                f"weights: projection={named!r} with relabel=False depends on the outputs"
            )

    def _unwatched(self, weight: np.ndarray, rows: int) -> np.ndarray:
        """The weights with zeros for the rows that early stopping held out of this model."""
        stopped = bool(self.early_stopping) and rows == len(weight)  # else a set was given
        if not stopped or (self.refit and not self.warm_start):
            return weight
        if getattr(self, "_indicator", True) is False and len(self.classes_) > 2:
            raise ValueError(
                "weights: rows were held out by class; use refit=True or early_stopping=False"
            )
        data = BoostData(np.broadcast_to(0.0, (len(weight), 1)), weight)
        held = data.choose(np.random.default_rng(self._seed), self.validation_fraction)
        weight = weight.copy()
        weight[held] = 0.0
        return weight

    def apply(self, X) -> np.ndarray:
        """Leaf of each row in each tree, by node number.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        leaves : ndarray of int64, shape (n_samples, n_trees)
        """
        check_is_fitted(self)
        return self._model.apply(check_X(self, X, reset=False), self.n_jobs)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean decrease in impurity of each feature; they sum to 1.

        The impurity is the variance of the projected gradients.
        """
        check_is_fitted(self)
        return self._model.importances()

    def save(self, path) -> None:
        """Write the fitted estimator to a file that `pyrpo.load` and the C library read.

        Parameters
        ----------
        path : path-like
            An existing file is replaced, at once: it is the old or the new one at any moment.
        """
        check_is_fitted(self)
        self._model.save(path, _note.write(self))


class Run:
    """One fit: rounds until something ends them, and what is known of each."""

    def __init__(self, estimator, make, data, projection, stopping, max_time) -> None:
        self.e, self.stopping, self.max_time = estimator, stopping, max_time
        self.single = estimator.strategy == "single_target" and data.outputs > 1
        self.custom = callable(estimator.loss)
        self.parts = [data.column(j) for j in range(data.outputs)] if self.single else [data]
        self.boosts = [
            make(
                part.Y,
                weight=part.weight,
                entry_weight=part.entry_weight,
                watched=part.watched,
                start=part.start(estimator.loss),
                projection=projection,
                loss=part.block_loss(estimator.loss) if self.custom else None,
                n_jobs=estimator.n_jobs,
            )
            for part in self.parts
        ]
        self._by_loss = not self.stopping or (estimator.scoring == "loss" and not self.custom)
        self.best = [0] * len(self.boosts)
        self.limits = [estimator.n_estimators] * len(self.boosts)
        self.metric: list[list[tuple[int, float]]] = [[] for _ in self.boosts]
        self.train_score = np.empty(0)
        self.halted = False
        self.seen = 0  # rounds until it was clear which is the best: not how many were run

    def go(self, earlier: dict[str, Any], told: Callable[[int], Any]) -> None:
        """Boost."""
        if earlier:
            self._take_over(earlier)
        if not self.single:
            self._until_done(0, self.e.n_jobs, told)
            return
        jobs = threads(self.e.n_jobs)
        done = Parallel(n_jobs=jobs, prefer="threads", return_as="generator")(
            delayed(self._until_done)(j, 1, lambda rounds: None) for j in range(len(self.boosts))
        )
        try:
            for j, _ in enumerate(done):
                told(int((j + 1) / len(self.boosts) * self.e.n_estimators))
        finally:
            self.halted = True  # threads still at work after ^C give up

    def _keep_on(self, done: int, total: int) -> None:
        if self.halted:
            raise KeyboardInterrupt

    def _take_over(self, earlier: dict[str, Any]) -> None:
        model = earlier["_model"]
        now = self.e.n_features_in_, self.boosts[0].n_outputs
        if self.single or (model.n_inputs, model.n_outputs) != now or model.is_boosted is False:
            raise ValueError(
                "warm_start goes on with strategy='joint', as many features and as many outputs "
                f"only: the model has {model.n_inputs} and {model.n_outputs}, now there are {now}"
            )
        if not np.array_equal(earlier.get("classes_"), getattr(self.e, "classes_", None)):
            raise ValueError("warm_start goes on with the same classes only")
        if model.n_trees > self.e.n_estimators:
            raise ValueError(
                f"n_estimators={self.e.n_estimators} must be larger or equal to the "
                f"{model.n_trees} rounds already run when warm_start=True"
            )
        self.boosts[0].resume(model, self.e.n_jobs)
        self.train_score = earlier.get("train_score_", self.train_score)[: model.n_trees]

    def _until_done(self, j: int, n_jobs: int | None, told: Callable[[int], Any]) -> None:
        boost = self.boosts[j]
        began, step = perf_counter(), 1 if self._by_loss else _LOOK
        if self.stopping and boost.rounds > 0 and self._has_stalled(j):
            return
        while boost.rounds < self.limits[j]:
            now = perf_counter()
            step = min(step, self.limits[j] - boost.rounds)
            self._keep_on(0, step)
            boost.run(step, n_jobs, progress=self._keep_on)
            told(boost.rounds)
            spent, elapsed = perf_counter() - now, perf_counter() - began
            if self.stopping and self._has_stalled(j):
                break
            if self.max_time is not None and elapsed >= self.max_time:
                break
            if not self._by_loss:
                step = _LOOK  # whatever the time: it decides what is seen
                continue
            step = max(1, min(2 * step, int(step * _SECONDS / max(spent, 1e-6)), 64))
            if self.max_time is not None:
                step = max(1, min(step, int((self.max_time - elapsed) / (spent / step + 1e-9))))
        if not self.stopping:
            self.best[j] = self.seen = boost.rounds

    def _has_stalled(self, j: int) -> bool:
        """Note the best round; true once `n_iter_no_change` rounds have passed since."""
        boost, e = self.boosts[j], self.e
        if self._by_loss:
            losses = boost.losses()[1]
            at = np.arange(len(losses))
        else:
            self.metric[j].append((boost.rounds, -self._metric(j)))
            at, losses = (np.array(v) for v in zip(*self.metric[j], strict=True))
        lowest = np.minimum.accumulate(losses)
        better = losses[1:] < lowest[:-1] - e.tol * np.abs(lowest[:-1])
        best = np.maximum.accumulate(
            np.concatenate([[0], np.where(better, np.arange(1, len(losses)), 0)])
        )
        late = np.flatnonzero(at - at[best] >= e.n_iter_no_change)
        last = late[0] if len(late) else -1
        self.best[j], self.seen = max(int(at[best[last]]), 1), int(at[last])
        return len(late) > 0

    def _metric(self, j: int) -> float:
        part = self.parts[j]
        held, scores = part.held, self.boosts[j].scores(part.held_rows)
        if self.e.scoring == "loss":
            return -held.mean_loss(self.e.loss, scores)
        return self.e._score_held_out(held, scores)

    def finish(self) -> None:
        """Keep the best rounds and what is known of all."""
        e = self.e
        if self.single:
            e._model = Boost.join(self.boosts, self.best)
            e.n_estimators_ = max(self.best)
            return
        boost, rounds = self.boosts[0], self.best[0]
        e._model = boost.model(rounds)
        e.n_estimators_ = rounds
        if isinstance(e._model, LearnerModel):
            e.estimators_, e.steps_ = e._model.estimators, e._model.steps
        train, watched = boost.losses()
        known = self.train_score
        e.train_score_ = np.concatenate([known, train[len(known) : -1]])[: self.seen]
        if self.stopping:
            e.validation_score_ = watched[: self.seen + 1]


@documented
class GradientBoostingRegressor(RegressorMixin, BaseBoosting):
    """Gradient boosting for one or many real-valued outputs.

    Each round grows one tree on a random projection of the gradient and labels its leaves with all
    outputs. With ``projection=None`` this is the paper's Algorithm 2 (gbmort), with
    ``relabel=False`` its Algorithm 3 (gbrt-rpo), otherwise Algorithm 4 (gbrt-relabel-rpo).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_estimators_ : int
        Rounds of the model.
    train_score_ : ndarray of shape (n_rounds,)
        Mean loss of the round's sample before each round; of large ones, of one row in 16.
    validation_score_ : ndarray of shape (n_rounds + 1,)
        Mean loss of the rows held out, from before the first round.
    n_features_in_ : int
    n_outputs_ : int
    feature_importances_ : ndarray of shape (n_features_in_,)
    estimators_ : list of regressors
        With `base_estimator`: one a round.
    steps_ : ndarray of float32, shape (n_estimators_, n_outputs_)
        With `base_estimator`: what each output takes of them, learning rate included.
    """

    _losses = ("squared", "absolute", "huber")

    def __init__(
        self,
        n_estimators=2000,
        *,
        loss="squared",
        learning_rate=0.05,
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
        validation_fraction=0.1,
        n_iter_no_change=50,
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
            self._y_ndim, self.n_outputs_ = ndim, data.outputs
        return data

    def _score_held_out(self, data, scores):
        return float(self.scoring(data.dense(), scores))

    def predict(self, X) -> np.ndarray:
        """Outputs.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            NaN means missing.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        return self._shaped(self._scores(X))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values.ravel() if self._y_ndim == 1 else values

    def staged_predict(self, X) -> Iterator[np.ndarray]:
        """Outputs after each round (of single targets: after each tree).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Yields
        ------
        y : ndarray of the shape of `predict`
        """
        for scores in self._staged(X):
            yield self._shaped(scores.astype(np.float64))

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
        check_is_fitted(self)
        return self._model.predict_topk(check_X(self, X, reset=False), k, self.n_jobs)


@documented
class GradientBoostingClassifier(ClassifierMixin, BaseBoosting):
    """Gradient boosting for labels (an indicator matrix) and for classes.

    Each round grows one tree on a random projection of the gradient and labels its leaves with all
    outputs. With ``projection=None`` this is the paper's Algorithm 2 (gbmort), with
    ``relabel=False`` its Algorithm 3 (gbrt-rpo), otherwise Algorithm 4 (gbrt-relabel-rpo).

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    n_estimators_ : int
        Rounds of the model.
    train_score_ : ndarray of shape (n_rounds,)
        Mean loss of the round's sample before each round; of large ones, of one row in 16.
    validation_score_ : ndarray of shape (n_rounds + 1,)
        Mean loss of the rows held out, from before the first round.
    classes_ : ndarray
        Classes, or the labels' numbers.
    threshold_ : float or ndarray of shape (n_labels,)
        The parameter, checked.
    n_features_in_ : int
    n_outputs_ : int
    feature_importances_ : ndarray of shape (n_features_in_,)
    estimators_ : list of regressors
        With `base_estimator`: one a round.
    steps_ : ndarray of float32, shape (n_estimators_, n_outputs_)
        With `base_estimator`: what each output takes of them, learning rate included.

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
        n_estimators=2000,
        *,
        loss="auto",
        learning_rate=0.05,
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
        validation_fraction=0.1,
        n_iter_no_change=50,
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

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _read_y(self, y, sample_weight, *, reset):
        known = None if reset else self.classes_
        data, classes, indicator = classification_data(y, sample_weight, self.class_weight, known)
        if reset:
            self.classes_, self._indicator = classes, indicator
            self.n_outputs_ = data.outputs if indicator else 1
        elif indicator != self._indicator:
            raise ValueError("eval_set: y must be of the kind of the training y")
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
        return self._shaped(self._scores(X))

    def _shaped(self, scores: np.ndarray) -> np.ndarray:
        p = self._probabilities(scores)
        if not self._indicator and p.shape[1] == 1:
            return np.hstack([1.0 - p, p]) if len(self.classes_) == 2 else np.ones_like(p)
        return p

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

    def staged_predict_proba(self, X) -> Iterator[np.ndarray]:
        """Probabilities after each round (of single targets: after each tree).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Yields
        ------
        p : ndarray of the shape of `predict_proba`
        """
        for scores in self._staged(X):
            yield self._shaped(scores.astype(np.float64))

    def staged_predict(self, X) -> Iterator[np.ndarray]:
        """Classes or labels after each round (of single targets: after each tree).

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Yields
        ------
        y : ndarray of the shape of `predict`
        """
        for p in self.staged_predict_proba(X):
            yield self._decide(p)

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
        check_is_fitted(self)
        X = check_X(self, X, reset=False)
        if self._link == "logistic" and self._indicator:
            index, scores = self._model.predict_topk(X, k, self.n_jobs)
            return index, expit(scores)
        parts = [self._best(X[i : i + 4096], k) for i in range(0, X.shape[0], 4096)]
        index, p = (np.concatenate(part) for part in zip(*parts, strict=True))
        return index if self._indicator else self.classes_[index], p

    def _best(self, X: Any, k: int):
        p = self._shaped(self._model.predict(X, self.n_jobs))
        if not 1 <= k <= p.shape[1]:
            raise ValueError(f"k must be between 1 and {p.shape[1]}, got {k}")
        index = np.argsort(-p, axis=1, kind="stable")[:, :k]
        return index, np.take_along_axis(p, index, axis=1)
