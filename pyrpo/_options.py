"""scikit-learn's parameters, whose values have several types, to the library's table of numbers."""

from __future__ import annotations

from math import ceil
from numbers import Integral, Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state


def _is(kind: type, value: Any) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def number(value: Any, name: str, low: float, high: float = np.inf, *, whole: bool = False) -> Any:
    """A number within bounds."""
    if not _is(Integral if whole else Real, value):
        raise TypeError(f"{name} must be {'an int' if whole else 'a number'}, got {value!r}")
    if not low <= value <= high:
        limits = f"at least {low}" if high == np.inf else f"between {low} and {high}"
        raise ValueError(f"{name} must be {limits}, got {value}")
    return int(value) if whole else value


def positive(value: Any, name: str) -> float:
    """A finite number above 0."""
    if not _is(Real, value):
        raise TypeError(f"{name} must be a number, got {value!r}")
    if not 0 < value < np.inf:
        raise ValueError(f"{name} must be positive and finite, got {value}")
    return float(value)


def seed_of(random_state: Any) -> int:
    """The library's seed. An int is that itself: other languages draw the same from it."""
    if _is(Integral, random_state) and 0 <= random_state < 2**32:
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))


_PURPOSES = {"watched": 1, "held out": 2, "learners": 3}


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Numpy's draws of a seed: others than a caller's, who may have seeded numpy with the same."""
    return np.random.default_rng([seed, _PURPOSES[purpose]])


def label_count(k: Any, n_labels: int) -> int:
    """So many of the labels."""
    if not _is(Integral, k):
        raise TypeError(f"k must be an int, got {k!r}")
    if not 1 <= k <= n_labels:
        raise ValueError(f"k must be between 1 and the {n_labels} labels, got {k}")
    return int(k)


def count(value: Any, total: float, name: str, *, low: int = 1) -> int:
    """An int as it is, a share of `total` otherwise, as scikit-learn counts samples."""
    if _is(Integral, value):
        return int(number(value, name, low, whole=True))
    if not _is(Real, value):
        raise TypeError(f"{name} must be an int or a float, got {value!r}")
    if not 0.0 < value <= 1.0:
        raise ValueError(f"{name} must be in (0, 1] when a float, got {value}")
    return max(low, ceil(value * total))


def feature_count(max_features: Any, p: int) -> int:
    """Features drawn at a node."""
    if max_features is None:
        return p
    if isinstance(max_features, str) and max_features in ("sqrt", "log2"):
        return max(1, int(np.sqrt(p) if max_features == "sqrt" else np.log2(p)))
    if _is(Integral, max_features):
        return min(int(number(max_features, "max_features", 1, whole=True)), p)
    if _is(Real, max_features):
        if not 0.0 < max_features <= 1.0:
            raise ValueError(f"max_features must be in (0, 1] when a float, got {max_features}")
        return max(1, int(max_features * p))
    kind = ValueError if isinstance(max_features, str) else TypeError
    raise kind(
        "max_features must be 'sqrt', 'log2', an int, a float or None, of random forests and "
        f"extra-trees also 'auto', got {max_features!r}"
    )


def switch(value: Any, name: str) -> int:
    """A bool as the library's 0 or 1."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be a bool, got {value!r}")
    return int(value)


def check_shared(ensemble: Any) -> None:
    """Refuse wrong values of parameters that forests and boosting share."""
    e = ensemble
    number(e.n_estimators, "n_estimators", 1, 10**9, whole=True)
    if e.n_jobs is not None and not number(e.n_jobs, "n_jobs", -np.inf, whole=True):
        raise ValueError("n_jobs must not be 0")
    if e.strategy not in ("joint", "single_target"):
        raise ValueError(f"strategy must be 'joint' or 'single_target', got {e.strategy!r}")
    if e.max_time is not None and not number(e.max_time, "max_time", 0.0):
        raise ValueError("max_time must be positive, got 0")


def check_criterion(estimator: Any, allowed: tuple[str, ...]) -> None:
    """Refuse, by name, what scikit-learn offers and this engine does not."""
    if estimator.criterion not in allowed:
        raise ValueError(
            f"criterion must be one of {allowed}, got {estimator.criterion!r}: this engine splits "
            "by variance, which is Gini's index on classes and labels"
        )
    if estimator.monotonic_cst is not None:
        raise ValueError("monotonic_cst is not supported, it must be None")


def tree_options(e: Any, n: int, p: int) -> dict[str, float]:
    """How a single tree of the estimator `e` is grown on n rows and p features."""
    options: dict[str, float] = {
        "min_samples_split": count(e.min_samples_split, n, "min_samples_split", low=2),
        "min_samples_leaf": count(e.min_samples_leaf, n, "min_samples_leaf"),
        "max_features": feature_count(e._max_features(), p),
        "draw_non_constant": switch(e.draw_non_constant, "draw_non_constant"),
        "min_weight_fraction_leaf": number(
            e.min_weight_fraction_leaf, "min_weight_fraction_leaf", 0.0, 0.5
        ),
        "min_impurity_decrease": number(e.min_impurity_decrease, "min_impurity_decrease", 0.0),
        "ccp_alpha": number(e.ccp_alpha, "ccp_alpha", 0.0),
    }
    if e.max_depth is not None:
        options["max_depth"] = number(e.max_depth, "max_depth", 1, 10**9, whole=True)
    if e.max_leaf_nodes is not None:
        options["max_leaf_nodes"] = number(e.max_leaf_nodes, "max_leaf_nodes", 2, whole=True)
    return options


def bin_count(max_bins: Any) -> int:
    """Bins a feature is grouped into; 0: every value is one."""
    return 0 if max_bins is None else number(max_bins, "max_bins", 2, 2**31 - 1, whole=True)


def label_threshold(threshold: Any, n_outputs: int) -> float | np.ndarray:
    """Probabilities above which labels are predicted: one, or one a label."""
    if isinstance(threshold, str):
        raise ValueError(f"threshold must be a number or an array, got {threshold!r}")
    values = np.asarray(threshold, dtype=np.float64)
    if values.shape not in {(), (n_outputs,)} or not ((values >= 0) & (values <= 1)).all():
        raise ValueError(
            f"threshold must be a number in [0, 1] or {n_outputs} of them, got {threshold!r}"
        )
    return float(values) if values.ndim == 0 else values
