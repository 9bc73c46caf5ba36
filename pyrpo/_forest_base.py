"""What all forests share: growing on, out-of-bag scores, their trees."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from pyrpo._base import BaseTrees, TreesClassifier, TreesRegressor
from pyrpo._choosing import ChoosesItself
from pyrpo._growth import Growth, SingleTargets
from pyrpo._inputs import Outputs, check_same_classes
from pyrpo._native import Model
from pyrpo._note import KEPT
from pyrpo._options import check_shared, count, seed_of, switch
from pyrpo.metrics import label_ranking_average_precision
from pyrpo.tree import DecisionTreeClassifier, DecisionTreeRegressor

# What else forests of single targets must have.
SINGLE = {
    "projection": None,
    "target_score": None,
    "max_time": None,
    "oob_score": False,
    "warm_start": False,
    "leaf_rows": "sample",
}

# What forests to be joined must have in common.
_SAME = (
    "n_features_in_",
    "feature_names_in_",
    "_indicator",
    "n_outputs_",
    "classes_",
    "_y_ndim",
    "threshold_",
)


class Estimators(Sequence):
    """The trees of a forest as fitted single-tree estimators, made when asked for."""

    def __init__(self, forest: BaseForest) -> None:
        self._forest = forest

    def __len__(self) -> int:
        return self._forest._model.n_trees

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if not -len(self) <= index < len(self):
            raise IndexError(f"tree {index} of a forest of {len(self)}")
        return self._forest._make_tree(index % len(self))


class BaseForest(ChoosesItself, BaseTrees):
    """Many trees grown in parallel."""

    _attributes = ("estimators_", "tuning_", "convergence_", "oob_score_")
    _random_cut = False
    _single = False  # each output has a forest of its own; whatever `strategy` is set to since
    _tree_class: type

    def _ensemble_options(self, outputs):
        check_shared(self)
        options = {
            "n_trees": self.n_estimators,
            "bootstrap": switch(self.bootstrap, "bootstrap"),
            "random_cut": int(self._random_cut),
        }
        if self.leaf_rows not in ("sample", "all"):
            raise ValueError(f"leaf_rows must be 'sample' or 'all', got {self.leaf_rows!r}")
        n, weight = outputs.Y.shape[0], outputs.weight
        if self.max_samples is not None and not self.bootstrap:
            raise ValueError(
                f"max_samples={self.max_samples!r} needs bootstrap=True; use max_samples=None"
            )
        if self.bootstrap:
            total = n if weight is None else float(weight.sum())
            draws = n if self.max_samples is None else self.max_samples
            options["max_samples"] = count(draws, total, "max_samples")
        self._check_growth(outputs)
        many = outputs.Y.shape[1] > 1 and self._indicator is not False  # 1-D classes are one output
        self._single = many and self.strategy == "single_target"
        if self._single:
            self._check_single(outputs)
        return options

    def _growth(self, outputs):
        return SingleTargets if self._single else Growth

    def _check_single(self, outputs: Outputs) -> None:
        """Refuse by name what forests of single targets cannot do."""
        for name, allowed in SINGLE.items():
            value = getattr(self, name, allowed)
            if value is not allowed and not (np.isscalar(value) and value == allowed):
                raise ValueError(
                    f"{name}={value!r} does not go with strategy='single_target'; "
                    f"use {name}={allowed!r}"
                )
        for name in ("threshold", "class_weight"):
            value = getattr(self, name, None)
            if isinstance(value, str) and value in ("oob", "balanced_subsample"):
                raise ValueError(f"{name}={value!r} does not go with strategy='single_target'")
        if outputs.fallback is not None:
            raise ValueError(
                "strategy='single_target' needs a y without missing entries and a sample_weight "
                "by row"
            )

    def _read_single(self, what: str) -> None:
        check_is_fitted(self)
        if self._single:
            raise ValueError(
                f"{what}: forests of single targets keep no rows; strategy='joint' does"
            )

    def weights(self, X, X_fit=None, sample_weight=None):
        """Weights of the training samples in the prediction of each row of X.

        See `pyrpo.DecisionTreeRegressor.weights`; a `strategy` of single targets has other weights
        for each output, and is refused.
        """
        self._read_single("weights")
        return super().weights(X, X_fit, sample_weight)

    def importances(self, X, y, sample_weight=None):
        """Mean decrease in variance of the outputs `y`, projected or not; they sum to 1.

        See `pyrpo.DecisionTreeRegressor.importances`; a `strategy` of single targets is refused.
        """
        self._read_single("importances")
        return super().importances(X, y, sample_weight)

    def _resume(self, earlier, options):
        if not (self.warm_start and earlier):
            return super()._resume(earlier, options)
        seed_of(self.random_state)  # checked only: the trees go on with the seed they have
        check_same_classes(self, earlier)
        grown = earlier["_model"].n_trees
        more = options["n_trees"] - grown
        if more < 0:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to the {grown} trees "
                "already grown when warm_start=True"
            )
        if more == 0:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.",
                stacklevel=4,
            )
            vars(self).update(earlier)
            return False
        options |= {"seed": self._seed, "first_tree": grown, "n_trees": more}
        return True

    def _result(self, growth):
        every = self.leaf_rows == "all" and self.bootstrap
        return growth.relabelled() if every else growth.result()

    def _join(self, earlier):
        if not (self.warm_start and earlier):
            return
        old, new = earlier["_model"], self._model
        trees = [(0, i) for i in range(old.n_trees)] + [(1, i) for i in range(new.n_trees)]
        self._model = Model.pick([old, new], trees)

    # ---- out of bag ----

    def _needs_oob(self) -> bool:
        return bool(self.oob_score)

    def _check_readout(self, outputs):
        super()._check_readout(outputs)
        if self._needs_oob() and not self.bootstrap:
            raise ValueError(
                "Out of bag estimation only available if bootstrap=True; "
                f"got oob_score={self.oob_score!r}"
            )
        if isinstance(self.oob_score, str) and not (self.oob_score == "lrap" and self._indicator):
            raise ValueError(
                "oob_score must be a bool, a callable or, for label indicators, 'lrap'; "
                f"got {self.oob_score!r}"
            )
        if self.oob_score and not callable(self.oob_score) and outputs.fallback is not None:
            missing = not sparse.issparse(outputs.Y) and np.isnan(outputs.Y).any()
            if missing:
                raise ValueError("oob_score of a y with missing entries must be a callable")

    def _finish(self, X, outputs):
        if not self._needs_oob():
            return
        target, labels = outputs.views()
        scores, counts = self._model.predict_oob(
            _rows_first(X), outputs.weight, self.n_jobs, labels or target
        )
        seen = np.flatnonzero(counts)
        if len(seen) < len(counts):
            warnings.warn(
                f"{len(counts) - len(seen)} of {len(counts)} samples have no out-of-bag tree: the "
                "out-of-bag score leaves them out (grow more trees)",
                stacklevel=4,
            )
        self._set_oob(scores, seen, outputs)

    def _set_oob(self, scores: np.ndarray, seen: np.ndarray, outputs: Outputs) -> None:
        raise NotImplementedError

    # ---- trees ----

    @property
    def estimators_(self) -> Estimators:
        """The trees, as single-tree estimators."""
        self._read_single("estimators_")
        return Estimators(self)

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, index):
        return self.estimators_[index]

    def __iter__(self):
        return iter(self.estimators_)

    def _make_tree(self, index: int):
        tree = self._tree_class(splitter="random" if self._random_cut else "best")
        mine = self.get_params(deep=False)
        mine.pop("class_weight", None)  # what a forest makes of it, a tree cannot
        mine |= self._resolved()
        tree.set_params(**{k: mine[k] for k in tree.get_params(deep=False) if k in mine})
        for name in KEPT:
            if name in vars(self):
                setattr(tree, name, getattr(self, name))
        tree._model = Model.pick([self._model], [(0, index)])
        return tree

    def apply(self, X) -> np.ndarray:
        """Leaf each row ends in, in each tree.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        leaves : ndarray of int64, shape (n_samples, n_estimators)
            Nodes by their number in ``estimators_[i].tree_``.
        """
        return self._call("apply", X)

    def decision_path(self, X):
        """Nodes each row passes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        indicator : csr_array of shape (n_samples, n_nodes)
        n_nodes_ptr : ndarray of shape (n_estimators + 1,)
            Tree i's nodes are columns ``n_nodes_ptr[i]`` to ``n_nodes_ptr[i + 1]``.
        """
        return self._call("paths", X)


def _rows_first(X: Any) -> Any:
    return X.tocsr() if sparse.issparse(X) else X


def _rows(Y: Any, rows: np.ndarray) -> np.ndarray:
    return Y[rows].toarray() if sparse.issparse(Y) else Y[rows]


class ForestRegressor(TreesRegressor, BaseForest):
    """Forests of regression trees."""

    _attributes = ("oob_prediction_",)
    _tree_class = DecisionTreeRegressor

    def _more_features(self, k, p):
        return super()._more_features(k, p) | {max(k, p // 3)}

    def _set_oob(self, scores, seen, outputs):
        Y = _rows(outputs.Y, seen)
        if self._y_ndim == 1:
            scores, Y = scores.ravel(), Y.ravel()
        self.oob_prediction_ = scores
        metric = self.oob_score if callable(self.oob_score) else r2_score
        self.oob_score_ = metric(Y, scores[seen])


class ForestClassifier(TreesClassifier, BaseForest):
    """Forests of classification trees."""

    _attributes = ("oob_decision_function_",)
    _tree_class = DecisionTreeClassifier

    def _balances(self) -> bool:
        return isinstance(self.class_weight, str) and self.class_weight == "balanced_subsample"

    def _class_weight(self):
        if not self._balances():
            return self.class_weight
        return None if self.bootstrap else "balanced"  # a sample of its own, or the one there is

    def _ensemble_options(self, outputs):
        options = super()._ensemble_options(outputs)
        if not (self._balances() and self.bootstrap):
            return options
        if outputs.fallback is not None:
            raise ValueError(
                "class_weight='balanced_subsample' needs a y without missing entries and a "
                "sample_weight by row; class_weight='balanced' does not"
            )
        if self.leaf_rows == "all":
            raise ValueError(
                "class_weight='balanced_subsample' has no weights for rows outside a tree's "
                "sample: leaf_rows='all' needs another, such as 'balanced'"
            )
        return options | {"balance": 2 if self._indicator else 1}

    def _needs_oob(self):
        return super()._needs_oob() or self._tunes()

    def _tunes(self) -> bool:
        return isinstance(self.threshold, str) and self.threshold == "oob"

    def _check_readout(self, outputs):
        if not self._tunes():
            super()._check_readout(outputs)
            return
        if not (self._indicator and self.bootstrap):
            raise ValueError("threshold='oob' needs a label indicator as y and bootstrap=True")
        BaseForest._check_readout(self, outputs)

    def _set_oob(self, p, seen, outputs):
        if self._tunes():
            self.threshold_ = best_f1_threshold(p[seen], outputs.Y[seen])
        if not self.oob_score:
            return
        self.oob_decision_function_ = p
        if isinstance(self.oob_score, str):
            self.oob_score_ = label_ranking_average_precision(
                outputs.Y[seen], p[seen], n_jobs=self.n_jobs
            )
            return
        Y = _rows(outputs.Y, seen)
        if not self._indicator:
            Y = self.classes_[Y.argmax(axis=1)]
        metric = self.oob_score if callable(self.oob_score) else accuracy_score
        self.oob_score_ = metric(Y, self._decide(p[seen]))


def check_joinable(forests: list[Any]) -> None:
    """Refuse what is no forest, not fitted, or known to be fitted to other data than the first."""
    if not forests:
        raise ValueError("forests is empty, it must hold at least one forest")
    kinds = [k for k in (ForestClassifier, ForestRegressor) if isinstance(forests[0], k)]
    for i, forest in enumerate(forests):
        if not kinds or not isinstance(forest, kinds[0]):
            like = f", a {type(forests[0]).__name__} as forests[0]" if kinds else ""
            raise TypeError(
                f"forests[{i}] must be a fitted forest{like} or of its kind, "
                f"got {type(forest).__name__}"
            )
        forest._read_single("join_forests")
        for name in _SAME:
            own, first = (getattr(f, name, None) for f in (forest, forests[0]))
            if not np.array_equal(own, first):
                raise ValueError(
                    f"forests[{i}] and forests[0] cannot be joined: {name.strip('_')} is "
                    f"{own!r} and {first!r}"
                )
        if forest._weighs_samples() != forests[0]._weighs_samples():
            raise ValueError(
                f"forests[{i}] and forests[0] cannot be joined: class_weight is "
                f"{forest.class_weight!r} and {forests[0].class_weight!r}"
            )


def best_f1_threshold(p: np.ndarray, Y: Any) -> float:
    """Cut of the scores that maximises micro-averaged F1 against the indicator Y.

    Entries of a dense Y that are NaN do not count.
    """
    edges = np.linspace(0.0, 1.0, 201)
    if sparse.issparse(Y):
        row, col = Y.nonzero()
        observed, present = p.ravel(), p[row, col]
    else:
        observed, present = p[~np.isnan(Y)], p[Y == 1]
    predicted = np.histogram(observed, edges)[0][::-1].cumsum()[::-1]
    hits = np.histogram(present, edges)[0][::-1].cumsum()[::-1]
    f1 = 2.0 * hits / np.maximum(predicted + len(present), 1)
    return float(edges[int(np.argmax(f1))])
