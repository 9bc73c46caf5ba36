"""Single trees for many outputs."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pyrpo._base import BaseTrees, TreesClassifier, TreesRegressor
from pyrpo._tree_view import Tree

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreeClassifier",
    "ExtraTreeRegressor",
]


class BaseTree(BaseTrees):
    """One tree on all samples."""

    def _options(self, n, p, outputs):
        if self.splitter not in ("best", "random"):
            raise ValueError(f"splitter must be 'best' or 'random', got {self.splitter!r}")
        return super()._options(n, p, outputs) | {"random_cut": int(self.splitter == "random")}

    def fit(self, X, y, sample_weight=None):
        """Grow the tree.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            NaN means missing.
        y : array of shape (n_samples,), or array or sparse matrix of shape (n_samples, n_outputs)
        sample_weight : array of shape (n_samples,) or (n_samples, n_outputs), default=None

        Returns
        -------
        self
        """
        self._model, _, outputs = self._grow(X, y, sample_weight, None)
        for name, value in self.__dict__.pop("_pending").items():
            setattr(self, name, value)
        if isinstance(self, TreesClassifier):
            threshold = self._check_threshold(outputs.n_outputs)
            if isinstance(threshold, str):
                raise ValueError("threshold='oob' is for forests: a single tree has no such samples")
            self.threshold_ = threshold
        return self

    @property
    def tree_(self) -> Tree:
        """The tree's arrays, by scikit-learn's names."""
        check_is_fitted(self)
        return self._tree(0)

    def get_depth(self) -> int:
        """Depth of the deepest leaf."""
        return self.tree_.max_depth

    def get_n_leaves(self) -> int:
        """Number of leaves."""
        return self.tree_.n_leaves

    def apply(self, X) -> np.ndarray:
        """Leaf each row ends in.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        leaves : ndarray of int64, shape (n_samples,)
        """
        return self._model.apply(self._checked(X)).ravel()

    def decision_path(self, X) -> sparse.csr_array:
        """Nodes each row passes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        indicator : csr_array of shape (n_samples, n_nodes)
        """
        return self._model.paths(self._checked(X))[0]


_PARAMETERS = """    criterion : str
        "gini" of classifiers, "squared_error" or "variance" of regressors.
    splitter : {{"best", "random"}}, default="{splitter}"
    max_depth : int, default=None
    min_samples_split : int or float, default=2
    min_samples_leaf : int or float, default=1
    min_weight_fraction_leaf : float, default=0.0
    max_features : "sqrt", "log2", int, float or None
    random_state : int, RandomState instance or None, default=None
    max_leaf_nodes : int, default=None
    min_impurity_decrease : float, default=0.0
    ccp_alpha : float, default=0.0
    monotonic_cst : None
        Not supported.
    projection : str, object, array of shape (m, n_outputs) or None, default=None
        What the tree is grown on; its leaves hold the original outputs.
    n_components : int, "log" or "jl", default="log"
    output_scale : "none", "std" or array of shape (n_outputs,), default="none"
    max_bins : int, default=None
"""


def _document(cls):
    splitter = "random" if cls.__name__.startswith("Extra") else "best"
    cls.__doc__ = cls.__doc__.replace("{parameters}", _PARAMETERS.format(splitter=splitter))
    return cls


@_document
class DecisionTreeClassifier(TreesClassifier, BaseTree):
    """Classification tree for classes and labels.

    Parameters
    ----------
{parameters}    class_weight : dict, list of dicts or "balanced", default=None
    threshold : float or array of shape (n_labels,), default=0.5
    """

    def __init__(
        self,
        *,
        criterion="gini",
        splitter="best",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        random_state=None,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        class_weight=None,
        ccp_alpha=0.0,
        monotonic_cst=None,
        projection=None,
        n_components="log",
        output_scale="none",
        max_bins=None,
        threshold=0.5,
    ):
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.projection = projection
        self.n_components = n_components
        self.output_scale = output_scale
        self.max_bins = max_bins
        self.threshold = threshold


@_document
class DecisionTreeRegressor(TreesRegressor, BaseTree):
    """Regression tree for one or many outputs.

    Parameters
    ----------
{parameters}    """

    def __init__(
        self,
        *,
        criterion="squared_error",
        splitter="best",
        max_depth=None,
        min_samples_split=2,
        min_samples_leaf=1,
        min_weight_fraction_leaf=0.0,
        max_features=None,
        random_state=None,
        max_leaf_nodes=None,
        min_impurity_decrease=0.0,
        ccp_alpha=0.0,
        monotonic_cst=None,
        projection=None,
        n_components="log",
        output_scale="none",
        max_bins=None,
    ):
        self.criterion = criterion
        self.splitter = splitter
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.random_state = random_state
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.ccp_alpha = ccp_alpha
        self.monotonic_cst = monotonic_cst
        self.projection = projection
        self.n_components = n_components
        self.output_scale = output_scale
        self.max_bins = max_bins


class ExtraTreeClassifier(DecisionTreeClassifier):
    """A tree of an extra-trees forest: `DecisionTreeClassifier` with random cuts."""

    def _options(self, n, p, outputs):
        return super()._options(n, p, outputs) | {"random_cut": 1}


class ExtraTreeRegressor(DecisionTreeRegressor):
    """A tree of an extra-trees forest: `DecisionTreeRegressor` with random cuts."""

    def _options(self, n, p, outputs):
        return super()._options(n, p, outputs) | {"random_cut": 1}
