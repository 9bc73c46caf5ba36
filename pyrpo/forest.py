"""Random forests and extra-trees for many outputs (Joly, Geurts and Wehenkel, 2014)."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from typing import Any

from pyrpo._docs import documented, store
from pyrpo._forest_base import (
    BaseForest,
    ForestClassifier,
    ForestRegressor,
    check_joinable,
)
from pyrpo._growth import join

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "join_forests",
]


@documented
class RandomForestClassifier(ForestClassifier):
    """Random forest for classes and labels.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from pyrpo import RandomForestClassifier
    >>> X, Y = make_multilabel_classification(n_classes=20, random_state=0)
    >>> forest = RandomForestClassifier(projection="gaussian", random_state=0).fit(X, Y)
    >>> forest.predict_proba(X).shape
    (100, 20)
    """

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features="auto",
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        class_weight=None,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        projection=None,
        n_components="auto",
        shared_projection=False,
        max_time=None,
        target_score=None,
        output_scale="none",
        draw_non_constant=False,
        leaf_rows="sample",
        strategy="joint",
        max_bins=None,
        threshold=0.5,
    ):
        store(self, locals())


@documented
class RandomForestRegressor(ForestRegressor):
    """Random forest for one or many real-valued outputs.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features="auto",
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=True,
        oob_score=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        projection=None,
        n_components="auto",
        shared_projection=False,
        max_time=None,
        target_score=None,
        output_scale="none",
        draw_non_constant=False,
        leaf_rows="sample",
        strategy="joint",
        max_bins=None,
    ):
        store(self, locals())


@documented
class ExtraTreesClassifier(ForestClassifier):
    """Extra-trees (Geurts, Ernst and Wehenkel, 2006) for classes and labels: random cuts.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    _random_cut = True

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="gini",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features="sqrt",
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=False,
        oob_score=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        class_weight=None,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        projection=None,
        n_components="log",
        shared_projection=False,
        max_time=None,
        target_score=None,
        output_scale="none",
        draw_non_constant=False,
        leaf_rows="sample",
        strategy="joint",
        max_bins=None,
        threshold=0.5,
    ):
        store(self, locals())


@documented
class ExtraTreesRegressor(ForestRegressor):
    """Extra-trees (Geurts, Ernst and Wehenkel, 2006) for real-valued outputs: random cuts.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

    _random_cut = True

    def __init__(
        self,
        n_estimators=100,
        *,
        criterion="squared_error",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=1.0,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        bootstrap=False,
        oob_score=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
        warm_start=False,
        ccp_alpha=0.0,
        max_samples=None,
        monotonic_cst=None,
        projection=None,
        n_components="log",
        shared_projection=False,
        max_time=None,
        target_score=None,
        output_scale="none",
        draw_non_constant=False,
        leaf_rows="sample",
        strategy="joint",
        max_bins=None,
    ):
        store(self, locals())


def join_forests(forests: Iterable[BaseForest]) -> Any:
    """One forest of the trees of several, fitted to the same data.

    Random forests beside extra-trees are often better than either alone with as many trees; forests
    of other seeds may come from other machines.

    Parameters
    ----------
    forests : iterable of fitted forests
        All classifiers or all regressors, `strategy="joint"`, fitted to the same X, y (in the same
        form, dense or sparse) and weights; which only a y that leaves hold can be compared for.
        Their leaves must hold the same rows: those of bootstrap samples, or all
        (``leaf_rows="all"``); extra-trees without a bootstrap go with either. Forests of the same
        seed are the same trees.

    Returns
    -------
    forest : fitted estimator of the class of the first
        With its parameters, but the `n_estimators` of all and without `oob_score`; the
        parameters say nothing of the trees of the others. What is known of the growth of one
        of them or out of bag (`tuning_`, `oob_score_`, ...) is left out. Where the leaves of one
        are a table of values, those of all are: larger for trees grown to the end, and `weights`
        needs `X_fit`.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from pyrpo import ExtraTreesClassifier, RandomForestClassifier, join_forests
    >>> X, Y = make_multilabel_classification(n_classes=20, random_state=0)
    >>> a = RandomForestClassifier(50, leaf_rows="all", random_state=0).fit(X, Y)
    >>> b = ExtraTreesClassifier(50, random_state=0).fit(X, Y)
    >>> len(join_forests([a, b]).estimators_)
    100
    """
    forests = list(forests)
    check_joinable(forests)
    joined = copy(forests[0])
    for name in ("tuning_", "convergence_", "oob_score_", "oob_prediction_",
                 "oob_decision_function_"):  # fmt: skip
        joined.__dict__.pop(name, None)
    joined._model = join([forest._model for forest in forests])
    joined.n_estimators, joined.oob_score = joined._model.n_trees, False
    if isinstance(getattr(joined, "threshold", None), str):  # found out of bag, by one of them
        joined.threshold = joined.threshold_
    return joined
