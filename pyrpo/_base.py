"""What trees and forests share: fitting, reading out, keeping."""

from __future__ import annotations

import json
from math import ceil
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.metrics import accuracy_score, label_ranking_average_precision_score, r2_score
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pyrpo import _native
from pyrpo._inputs import Outputs, check_X, classification_outputs, regression_outputs
from pyrpo._tree_view import Tree
from pyrpo.projection import resolve_projection

SQUARED = ("squared_error", "variance")
GINI = ("gini",)


def count(value: Any, total: float, name: str, *, low: int = 1) -> int:
    """An int as it is, a share of `total` otherwise, as scikit-learn counts samples."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        if value < low:
            raise ValueError(f"{name} must be at least {low} when an int, got {value}")
        return int(value)
    if isinstance(value, Real) and not isinstance(value, bool):
        if not 0.0 < value <= 1.0:
            raise ValueError(f"{name} must be in (0, 1] when a float, got {value}")
        return max(low, ceil(value * total))
    raise TypeError(f"{name} must be an int or a float, got {value!r}")


def feature_count(max_features: Any, p: int) -> int:
    """Features drawn at a node: scikit-learn's unions."""
    if max_features is None:
        return p
    if isinstance(max_features, str):
        if max_features == "sqrt":
            return max(1, int(np.sqrt(p)))
        if max_features == "log2":
            return max(1, int(np.log2(p)))
        raise ValueError(
            f"max_features must be 'sqrt', 'log2', an int, a float or None, got {max_features!r}"
        )
    if isinstance(max_features, Integral) and not isinstance(max_features, bool):
        if max_features < 1:
            raise ValueError(f"max_features must be at least 1, got {max_features}")
        return min(int(max_features), p)
    if isinstance(max_features, Real) and not isinstance(max_features, bool):
        if not 0.0 < max_features <= 1.0:
            raise ValueError(f"max_features must be in (0, 1] when a float, got {max_features}")
        return max(1, int(max_features * p))
    raise TypeError(f"max_features must be a string, a number or None, got {max_features!r}")


def _number(value: Any, name: str, low: float, high: float, *, whole: bool) -> float:
    kind = Integral if whole else Real
    if not isinstance(value, kind) or isinstance(value, bool):
        raise TypeError(f"{name} must be {'an int' if whole else 'a number'}, got {value!r}")
    if not low <= value <= high:
        raise ValueError(f"{name} must be between {low} and {high}, got {value}")
    return value


class BaseTrees(MultiOutputMixin, BaseEstimator):
    """Trees on the library's engine; subclasses say how many and how randomised."""

    _random_cut = False

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    # ---- what subclasses differ in ----

    def _outputs(self, y: Any, sample_weight: Any) -> Outputs:
        raise NotImplementedError

    def _criteria(self) -> tuple[str, ...]:
        raise NotImplementedError

    def _sampling(self, weight: np.ndarray | None, n: int) -> dict[str, float]:
        return {"bootstrap": 0}

    def _n_trees(self) -> int:
        return 1

    # ---- parameters ----

    def _check_criterion(self) -> None:
        allowed = self._criteria()
        if self.criterion not in allowed:
            raise ValueError(
                f"criterion must be one of {allowed}, got {self.criterion!r}: this engine splits "
                "by variance, which is Gini's index on classes and labels"
            )
        if getattr(self, "monotonic_cst", None) is not None:
            raise ValueError("monotonic_cst is not supported, it must be None")

    def _options(self, n: int, p: int, outputs: Outputs) -> dict[str, float]:
        self._check_criterion()
        limit = {"max_depth": self.max_depth, "max_leaf_nodes": self.max_leaf_nodes}
        options: dict[str, float] = {
            "n_trees": self._n_trees(),
            "min_samples_split": max(2, count(self.min_samples_split, n, "min_samples_split", low=2)),
            "min_samples_leaf": count(self.min_samples_leaf, n, "min_samples_leaf"),
            "min_weight_fraction_leaf": _number(
                self.min_weight_fraction_leaf, "min_weight_fraction_leaf", 0.0, 0.5, whole=False
            ),
            "max_features": feature_count(self.max_features, p),
            "min_impurity_decrease": _number(
                self.min_impurity_decrease, "min_impurity_decrease", 0.0, np.inf, whole=False
            ),
            "ccp_alpha": _number(self.ccp_alpha, "ccp_alpha", 0.0, np.inf, whole=False),
            "random_cut": int(self._random_cut),
            "impurity_scale": outputs.impurity_scale,
            "label_ratio": int(outputs.labels is not None and outputs.fallback is not None),
        }
        for name, value in limit.items():
            if value is not None:
                low = 2 if name == "max_leaf_nodes" else 1
                options[name] = _number(value, name, low, 10**9, whole=True)
        return options

    def _bins(self) -> int:
        if self.max_bins is None:
            return 0
        return int(_number(self.max_bins, "max_bins", 2, 2**31 - 1, whole=True))

    # ---- fitting ----

    def _grow(self, X: Any, y: Any, sample_weight: Any, n_jobs: Any, progress: Any = None):
        """Validate, encode, grow; returns (model, features) and sets nothing but n_features_in_."""
        if y is None:
            raise ValueError(
                f"This {type(self).__name__} estimator requires y to be passed, but the target y "
                "is None"
            )
        X = check_X(self, X, reset=True)
        outputs = self._outputs(y, sample_weight)
        if outputs.target.shape[0] != X.shape[0]:
            raise ValueError(
                "Found input variables with inconsistent numbers of samples: "
                f"X has {X.shape[0]}, y has {outputs.target.shape[0]}"
            )
        n, p = X.shape
        options = self._options(n, p, outputs) | self._sampling(outputs.weight, n)
        options |= self._start(options)
        spec, target = resolve_projection(
            self.projection,
            self.n_components,
            outputs.target,
            seed=int(options["seed"]),
            shared=bool(getattr(self, "shared_projection", True)),
        )
        target_view, label_view = outputs.views()
        if target is not None:
            label_view = label_view or target_view
            target_view = _native.Matrix(target)
        features = _native.Features(X, self._bins(), n_jobs=n_jobs)
        model = _native.Model.fit(
            options,
            features,
            target_view,
            label_view,
            fallback=outputs.fallback,
            weight=outputs.weight,
            projection=spec,
            n_jobs=n_jobs,
            progress=progress,
        )
        self._fit_weight = outputs.weight if self._keeps_weight() else None
        return model, X, outputs

    def _keeps_weight(self) -> bool:
        return False

    def _start(self, options: dict[str, float]) -> dict[str, float]:
        """Seed of the draw."""
        return {"seed": int(check_random_state(self.random_state).randint(2**31 - 1))}

    # ---- reading out ----

    def _checked(self, X: Any) -> Any:
        check_is_fitted(self)
        return check_X(self, X, reset=False)

    def _scores(self, X: Any) -> np.ndarray:
        return self._model.predict(self._checked(X), getattr(self, "n_jobs", None))

    def weights(self, X) -> sparse.csr_array:
        """Weights of the training samples in the prediction of each row of X.

        Predictions are these weights times the training outputs: row i holds the w_j(x_i), which sum
        to 1.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        W : csr_array of shape (n_samples, n_training_samples)
        """
        X = self._checked(X)
        if not self._model.has_rows:
            raise ValueError(
                "the leaves of this model are kept as a table of values, the smaller form: "
                "the weights of training samples were not kept"
            )
        return self._model.weights(X, getattr(self, "n_jobs", None))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean decrease in impurity of each feature; they sum to 1.

        Under a projection the impurity is the projected outputs' variance.
        """
        check_is_fitted(self)
        return self._model.importances()

    def _tree(self, index: int) -> Tree:
        return Tree(self._model, index, self._value_form())

    def _value_form(self) -> bool | None:
        return None

    # ---- keeping ----

    def save(self, path) -> None:
        """Write the fitted estimator to a file that `pyrpo.load` and the C library read.

        Parameters
        ----------
        path : path-like
            An existing file is replaced. Parameters that JSON cannot hold (objects, random states)
            are saved as None; predictions do not depend on them.
        """
        check_is_fitted(self)
        note = {
            "estimator": type(self).__name__,
            "params": {k: _plain(v) for k, v in self.get_params(deep=False).items()},
            "fitted": {k: _pack(v) for k, v in vars(self).items() if k in _KEPT},
        }
        self._model.save(path, json.dumps(note).encode())


_KEPT = ("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "threshold_",
         "_indicator", "_y_ndim", "_seed")  # fmt: skip


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    try:
        json.dumps(value)
    except TypeError:
        return None
    return value


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"dtype": value.dtype.str, "values": value.tolist()}
    return value.item() if isinstance(value, np.generic) else value


def unpack(value: Any) -> Any:
    """Undo `_pack`."""
    if isinstance(value, dict):
        return np.array(value["values"], dtype=value["dtype"])
    return value


class TreesRegressor(RegressorMixin, BaseTrees):
    """Regression: leaves hold means of the outputs."""

    def _criteria(self):
        return SQUARED

    def _outputs(self, y, sample_weight):
        outputs, n_dims = regression_outputs(y, sample_weight, self.output_scale)
        self._pending = {"n_outputs_": outputs.n_outputs, "_y_ndim": n_dims}
        return outputs

    def predict(self, X) -> np.ndarray:
        """Mean outputs.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            NaN means missing.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        scores = self._scores(X)
        return scores.ravel() if self._y_ndim == 1 else scores

    def predict_topk(self, X, k: int):
        """The k largest outputs of each row and their values, largest first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        k : int

        Returns
        -------
        outputs : ndarray of int64, shape (n_samples, k)
        values : ndarray of shape (n_samples, k)
        """
        return self._model.predict_topk(self._checked(X), k, getattr(self, "n_jobs", None))


class TreesClassifier(ClassifierMixin, BaseTrees):
    """Classification: 1-D classes or label indicators; leaves hold their frequencies."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags

    def _criteria(self):
        return GINI

    def _outputs(self, y, sample_weight):
        outputs, classes, indicator = classification_outputs(
            y, sample_weight, self.class_weight, self.output_scale
        )
        self._pending = {
            "classes_": classes,
            "n_outputs_": outputs.n_outputs if indicator else 1,
            "_indicator": indicator,
        }
        return outputs

    @property
    def n_classes_(self) -> int | list[int]:
        """Number of classes; of each label, 2, when fitted to an indicator."""
        check_is_fitted(self)
        return [2] * self.n_outputs_ if self._indicator else len(self.classes_)

    def _value_form(self):
        return self._indicator

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
        return self._scores(X)

    def predict_log_proba(self, X) -> np.ndarray:
        """Logarithm of `predict_proba`."""
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
        p = self.predict_proba(X)
        if self._indicator:
            return (p > self.threshold_).astype(np.int64)
        return self.classes_[p.argmax(axis=1)]

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
        index, p = self._model.predict_topk(self._checked(X), k, getattr(self, "n_jobs", None))
        return (index if self._indicator else self.classes_[index]), p

    def _check_threshold(self, n_outputs: int) -> Any:
        threshold = self.threshold
        if isinstance(threshold, str):
            if threshold != "oob":
                raise ValueError(f"threshold must be a number, an array or 'oob', got {threshold!r}")
            return threshold
        values = np.asarray(threshold, dtype=np.float64)
        if values.shape not in {(), (n_outputs,)} or not ((values >= 0) & (values <= 1)).all():
            raise ValueError(
                f"threshold must be a number in [0, 1] or {n_outputs} of them, got {threshold!r}"
            )
        return float(values) if values.ndim == 0 else values


def best_f1_threshold(p: np.ndarray, Y: Any) -> float:
    """Cut of the scores that maximises micro-averaged F1 against the indicator Y."""
    edges = np.linspace(0.0, 1.0, 201)
    all_counts = np.histogram(p, edges)[0]
    Y = sparse.coo_array(Y)
    hit_counts = np.histogram(p[Y.row, Y.col], edges)[0]
    predicted = np.cumsum(all_counts[::-1])[::-1]
    hits = np.cumsum(hit_counts[::-1])[::-1]
    f1 = 2.0 * hits / np.maximum(predicted + Y.nnz, 1)
    return float(edges[int(np.argmax(f1))])


def oob_metric(oob_score: Any, indicator: bool | None):
    """The score asked for: callables and names; the default is scikit-learn's."""
    if callable(oob_score):
        return oob_score
    if isinstance(oob_score, str):
        if oob_score == "lrap" and indicator:
            return lambda Y, p: label_ranking_average_precision_score(_dense(Y), p)
        raise ValueError(
            f"oob_score must be a bool, a callable or, for label indicators, 'lrap'; "
            f"got {oob_score!r}"
        )
    return r2_score if indicator is None else accuracy_score


def _dense(Y: Any) -> np.ndarray:
    return Y.toarray() if sparse.issparse(Y) else Y
