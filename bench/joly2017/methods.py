"""The paper's methods as estimators, and the grid their parameters are searched on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.multioutput import MultiOutputRegressor

import pyrpo

# Those of the paper; "single" is its st-gbrt and br-gbrt, and its st-rf and br-rf.
BOOSTING: dict[str, dict[str, Any]] = {
    "gbmort": {"projection": None},
    "gbrt-rpo-subsampled": {"projection": "subsample", "relabel": False},
    "gbrt-rpo-gaussian": {"projection": "gaussian", "relabel": False},
    "gbrt-relabel-rpo-subsampled": {"projection": "subsample", "relabel": True},
    "gbrt-relabel-rpo-gaussian": {"projection": "gaussian", "relabel": True},
    "single-gbrt": {"strategy": "single_target"},
}
FORESTS = ("mo-rf", "single-rf")
METHODS = ("artificial-gbrt", *FORESTS, *BOOSTING)
TREES = 100

RATES = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01)
LEAVES = tuple(range(2, 9))

# Everything of the estimators that the paper has not: no Newton steps, no l2, all rows.
PLAIN = {"leaf": "mean", "l2": 0.0, "subsample": 1.0, "max_depth": None, "early_stopping": False}


@dataclass(frozen=True)
class Setting:
    """A point of the grid of section 4.1.2."""

    learning_rate: float
    max_features: int
    max_leaf_nodes: int
    loss: str


STUMP = Setting(0.1, 1, 2, "squared")


def feature_counts(p: int) -> list[int]:
    """Numbers k in {√p, 0.1p, 0.2p, 0.5p, p}, each once."""
    return sorted({max(1, int(k)) for k in (p**0.5, 0.1 * p, 0.2 * p, 0.5 * p, p)})


def grid(metric: str, p: int) -> list[Setting]:
    """All settings."""
    losses = ("squared", "logistic" if metric == "LRAP" else "absolute")
    return [Setting(*values) for values in product(RATES, feature_counts(p), LEAVES, losses)]


def drawn(metric: str, p: int, count: int, split: int) -> list[Setting]:
    """Random settings of the grid, for all methods the same; more begin with fewer."""
    points = grid(metric, p)
    order = np.random.default_rng(split).permutation(len(points))
    return [points[i] for i in order[:count]]


def stump(metric: str, p: int, loss: str | None = None) -> Setting:
    """The paper's figures: k = p, two leaves, µ = 0.1."""
    return Setting(0.1, p, 2, loss or ("logistic" if metric == "LRAP" else "squared"))


def boosting(method: str, setting: Setting, seed: int, **more: Any) -> Any:
    """A boosting estimator that is to be given its rounds.

    Labels under squared loss are targets of 0 and 1: a classifier's probabilities end at 0 and 1,
    which would tie scores.
    """
    labels = setting.loss == "logistic"
    cls = pyrpo.GradientBoostingClassifier if labels else pyrpo.GradientBoostingRegressor
    options = PLAIN | BOOSTING[method] | asdict(setting) | {"random_state": seed, "n_jobs": 1}
    return cls(**(options | more))


def forest(metric: str, p: int, seed: int) -> Any:
    """100 trees: of labels fully grown, k = √p; of targets n_min = 5, k = p/3."""
    common = {"n_estimators": TREES, "n_components": "log", "random_state": seed, "n_jobs": 1}
    if metric == "LRAP":
        return pyrpo.RandomForestClassifier(max_features="sqrt", **common)
    k = max(1, p // 3)
    return pyrpo.RandomForestRegressor(max_features=k, min_samples_split=5, **common)


def forest_scores(metric: str, method: str, seed: int, X: Any, Y: Any, X_test: Any) -> np.ndarray:
    """Fit one forest, or one an output, and predict."""
    model = forest(metric, X.shape[1], seed)
    if metric != "LRAP":
        model = model if method == "mo-rf" else MultiOutputRegressor(model)
        return model.fit(X, Y).predict(X_test)
    if method == "mo-rf":
        return model.fit(X, Y).predict_proba(X_test)
    # An indicator of one column is a label; as 1-D classes a label without rows would fail.
    return np.hstack([model.fit(X, Y[:, [j]]).predict_proba(X_test) for j in range(Y.shape[1])])
