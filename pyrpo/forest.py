"""Random forests and extra-trees for many outputs (Joly, Geurts and Wehenkel, 2014)."""

from __future__ import annotations

from pyrpo._docs import documented, store
from pyrpo._forest_base import ForestClassifier, ForestRegressor

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
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
