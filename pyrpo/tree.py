"""Single trees for many outputs."""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pyrpo._base import BaseTrees, TreesClassifier, TreesRegressor
from pyrpo._docs import documented, store
from pyrpo._tree_view import Tree

__all__ = ["DecisionTreeClassifier", "DecisionTreeRegressor"]


class BaseTree(BaseTrees):
    """One tree on all samples."""

    _attributes = ("tree_",)

    def _ensemble_options(self, outputs):
        if self.splitter not in ("best", "random"):
            raise ValueError(f"splitter must be 'best' or 'random', got {self.splitter!r}")
        return {"n_trees": 1, "bootstrap": 0, "random_cut": int(self.splitter == "random")}

    @property
    def tree_(self) -> Tree:
        """The tree's arrays, by scikit-learn's names; made once, and kept with the estimator."""
        check_is_fitted(self)
        kept = vars(self).get("_tree")
        if kept is None or kept.model is not self._model:
            kept = self._tree = Tree(self._model, self._indicator)
        return kept

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
        return self._call("apply", X).ravel()

    def decision_path(self, X) -> sparse.csr_array:
        """Nodes each row passes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        indicator : csr_array of shape (n_samples, n_nodes)
        """
        return self._call("paths", X)[0]


@documented
class DecisionTreeClassifier(TreesClassifier, BaseTree):
    """Classification tree for classes and labels.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
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
        draw_non_constant=False,
        max_bins=None,
        threshold=0.5,
    ):
        store(self, locals())


@documented
class DecisionTreeRegressor(TreesRegressor, BaseTree):
    """Regression tree for one or many outputs.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    """

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
        draw_non_constant=False,
        max_bins=None,
    ):
        store(self, locals())
