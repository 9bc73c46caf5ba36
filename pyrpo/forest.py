"""Random forests and extra-trees for many outputs (Joly, Geurts and Wehenkel, 2014)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pyrpo._base import (
    BaseTrees,
    TreesClassifier,
    TreesRegressor,
    _number,
    best_f1_threshold,
    count,
    oob_metric,
)
from pyrpo._native import Model
from pyrpo.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

__all__ = [
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "RandomForestClassifier",
    "RandomForestRegressor",
]


class _Estimators(Sequence):
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


class BaseForest(BaseTrees):
    """Many trees grown in parallel."""

    def _n_trees(self) -> int:
        return int(_number(self.n_estimators, "n_estimators", 1, 10**9, whole=True))

    def _keeps_weight(self) -> bool:
        return bool(self.bootstrap)

    def _sampling(self, weight, n):
        if not self.bootstrap:
            if self.oob_score:
                raise ValueError(
                    "Out of bag estimation only available if bootstrap=True; got oob_score="
                    f"{self.oob_score!r}"
                )
            return {"bootstrap": 0}
        draws = n
        if self.max_samples is not None:
            total = n if weight is None else float(weight.sum())
            draws = count(self.max_samples, total, "max_samples")
        return {"bootstrap": 1, "max_samples": draws}

    def _start(self, options):
        """A warm start goes on with the seed and after the trees of the first fit."""
        if not (self.warm_start and hasattr(self, "_model")):
            return super()._start(options)
        grown = self._model.n_trees
        if options["n_trees"] < grown:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be larger or equal to the {grown} trees "
                "already grown when warm_start=True"
            )
        return {
            "seed": self._seed,
            "first_tree": grown,
            "n_trees": max(1, options["n_trees"] - grown),
        }

    def fit(self, X, y, sample_weight=None):
        """Grow the forest.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            NaN means missing.
        y : array of shape (n_samples,), or array or sparse matrix of shape (n_samples, n_outputs)
            NaN means missing, except in 1-D classes.
        sample_weight : array of shape (n_samples,) or (n_samples, n_outputs), default=None

        Returns
        -------
        self
        """
        warm = self.warm_start and hasattr(self, "_model")
        old = self._model if warm else None
        if warm and old.n_trees == self.n_estimators:
            return self
        with _bar(self.verbose, type(self).__name__) as progress:
            model, X, outputs = self._grow(X, y, sample_weight, self.n_jobs, progress)
        threshold = self._threshold_of(outputs)
        if warm:
            self._check_same(model, old)
            pairs = [(0, i) for i in range(old.n_trees)] + [(1, i) for i in range(model.n_trees)]
            model = Model.pick([old, model], pairs)
        self._adopt(model)
        if threshold is not None and not isinstance(threshold, str):
            self.threshold_ = threshold
        if self.oob_score or isinstance(threshold, str):
            self._set_oob(X, y, outputs, tune=isinstance(threshold, str))
        self._fit_weight = None
        return self

    def _check_same(self, new: Model, old: Model) -> None:
        if (new.n_inputs, new.n_outputs, new.n_rows) != (old.n_inputs, old.n_outputs, old.n_rows):
            raise ValueError("warm_start=True needs the same X and y shapes as the first fit")

    def _adopt(self, model: Model) -> None:
        self._model = model
        for name, value in self.__dict__.pop("_pending", {}).items():
            setattr(self, name, value)

    def _grow(self, *args):
        model, X, outputs = super()._grow(*args)
        return model, X, outputs

    def _threshold_of(self, outputs) -> Any:
        return None

    def _set_oob(self, X, y, outputs, *, tune: bool) -> None:
        scores, counts = self._model.predict_oob(X, self._fit_weight, self.n_jobs)
        seen = counts > 0
        if not seen.all():
            import warnings

            warnings.warn(
                f"{int((~seen).sum())} of {len(seen)} samples have no out-of-bag tree: the "
                "out-of-bag score leaves them out (grow more trees)",
                stacklevel=3,
            )
        if tune:
            Y = outputs.target
            if not sparse.issparse(Y):
                raise ValueError("threshold='oob' needs an indicator y without missing entries")
            self.threshold_ = best_f1_threshold(scores[seen], Y[np.flatnonzero(seen)])
        if self.oob_score:
            self._score_oob(scores, seen, y)

    @property
    def estimators_(self) -> _Estimators:
        """The trees, as single-tree estimators."""
        check_is_fitted(self)
        return _Estimators(self)

    def __len__(self) -> int:
        return self._model.n_trees if hasattr(self, "_model") else 0

    def __getitem__(self, index):
        return self.estimators_[index]

    def __iter__(self):
        return iter(self.estimators_)

    def _tree_class(self) -> type:
        raise NotImplementedError

    def _make_tree(self, index: int):
        cls = self._tree_class()
        names = cls._get_param_names()
        tree = cls(**{k: v for k, v in self.get_params(deep=False).items() if k in names})
        for name in ("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "threshold_",
                     "_indicator", "_y_ndim"):  # fmt: skip
            if hasattr(self, name):
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
        return self._model.apply(self._checked(X), self.n_jobs)

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
        return self._model.paths(self._checked(X), self.n_jobs)


def _bar(verbose: Any, name: str):
    """A tqdm bar fed by the library's progress; nothing when quiet."""
    import contextlib

    if not verbose:
        return contextlib.nullcontext()
    from tqdm.auto import tqdm

    @contextlib.contextmanager
    def show():
        with tqdm(desc=name, unit="tree") as bar:

            def progress(done, total):
                bar.total = total
                bar.update(done - bar.n)

            yield progress
            bar.update((bar.total or bar.n) - bar.n)

    return show()


class ForestRegressor(TreesRegressor, BaseForest):
    """Forests of regression trees."""

    def _score_oob(self, scores, seen, y):
        metric = oob_metric(self.oob_score, None)
        Y = y.toarray() if sparse.issparse(y) else np.asarray(y, dtype=np.float64)
        self.oob_prediction_ = scores.ravel() if self._y_ndim == 1 else scores
        self.oob_score_ = metric(Y[seen], self.oob_prediction_[seen])


class ForestClassifier(TreesClassifier, BaseForest):
    """Forests of classification trees."""

    def _threshold_of(self, outputs):
        threshold = self._check_threshold(outputs.n_outputs)
        if isinstance(threshold, str) and not self.bootstrap:
            raise ValueError("threshold='oob' needs bootstrap=True")
        if isinstance(threshold, str) and not self._pending["_indicator"]:
            raise ValueError("threshold='oob' needs a label indicator as y")
        return threshold

    def _score_oob(self, scores, seen, y):
        metric = oob_metric(self.oob_score, self._indicator)
        self.oob_decision_function_ = scores
        if self._indicator:
            Y = y[np.flatnonzero(seen)] if sparse.issparse(y) else np.asarray(y)[seen]
            Y = Y.toarray() if sparse.issparse(Y) else Y
            as_scores = isinstance(self.oob_score, str)
            guess = scores[seen] if as_scores else (scores[seen] > self.threshold_).astype(int)
        else:
            Y, guess = np.asarray(y)[seen], self.classes_[scores[seen].argmax(axis=1)]
        self.oob_score_ = metric(Y, guess)


_SHARED = """    n_estimators : int, default=100
        Trees.
    criterion : {criteria}
        Splits maximise the decrease of the outputs' summed variance, which for classes and labels is
        Gini's index.
    max_depth : int, default=None
    min_samples_split : int or float, default=2
        The paper's n_min; fully grown trees at 2.
    min_samples_leaf : int or float, default=1
    min_weight_fraction_leaf : float, default=0.0
    max_features : "sqrt", "log2", int, float or None, default={max_features}
        The paper's k.
    max_leaf_nodes : int, default=None
        Grow best-first to so many leaves.
    min_impurity_decrease : float, default=0.0
        Under a projection in units of the projected variance.
    bootstrap : bool, default={bootstrap}
        Draw each tree's samples with replacement, by weight.
    oob_score : bool, callable or "lrap", default=False
        Score on the samples each tree left out; "lrap": label ranking average precision.
    n_jobs : int, default=None
        Native threads. The same seed gives the same forest for any number.
    random_state : int, RandomState instance or None, default=None
    verbose : int, default=0
        A progress bar when positive (needs tqdm).
    warm_start : bool, default=False
{class_weight}    ccp_alpha : float, default=0.0
    max_samples : int or float, default=None
        Draws of a bootstrap, or share of the number (with weights: of the sum of weights).
    monotonic_cst : None
        Not supported.
    projection : str, object, array of shape (m, n_outputs) or None, default=None
        What trees are grown on: "gaussian", "rademacher", "achlioptas", "sparse", "hadamard",
        "subsample", "pca", an object of `pyrpo.projection`, a matrix, or None: the original outputs.
        Leaves always hold the original outputs.
    n_components : int, "log" or "jl", default="log"
        The paper's m, for projections given by name.
    shared_projection : bool, default=False
        One subspace for all trees (Algorithm 1) instead of one a tree (Algorithm 2).
    output_scale : "none", "std" or array of shape (n_outputs,), default="none"
        Factor of each output in the split score; "std": 1 / standard deviation.
    max_bins : int, default=None
        Bins a feature is grouped into before growing; None: exact splits.
{threshold}
    Attributes
    ----------
    estimators_ : sequence of single-tree estimators
    n_features_in_ : int
    n_outputs_ : int
    feature_importances_ : ndarray of shape (n_features_in_,)
    oob_score_ : float
"""

_CLASS_WEIGHT = """    class_weight : dict, list of dicts, "balanced" or "balanced_subsample", default=None
        As in scikit-learn; bootstraps draw by the weights it gives.
"""

_THRESHOLD = """    threshold : float, array of shape (n_labels,) or "oob", default=0.5
        Labels are predicted where their probability exceeds it; "oob": the value that maximises
        micro-averaged F1 out of bag.
"""


def _document(cls):
    classifier = issubclass(cls, TreesClassifier)
    extra = cls._random_cut
    cls.__doc__ = cls.__doc__.replace(
        "{parameters}",
        _SHARED.format(
            criteria='{"gini"}, default="gini"'
            if classifier
            else '{"squared_error", "variance"}, default="squared_error"',
            max_features='"sqrt"' if classifier else "1.0",
            bootstrap=not extra,
            class_weight=_CLASS_WEIGHT if classifier else "",
            threshold=_THRESHOLD if classifier else "",
        ),
    )
    return cls


@_document
class RandomForestClassifier(ForestClassifier):
    """Random forest for classes and labels.

    Parameters
    ----------
{parameters}
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
        max_features="sqrt",
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
        n_components="log",
        shared_projection=False,
        output_scale="none",
        max_bins=None,
        threshold=0.5,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.projection = projection
        self.n_components = n_components
        self.shared_projection = shared_projection
        self.output_scale = output_scale
        self.max_bins = max_bins
        self.threshold = threshold

    def _tree_class(self):
        return DecisionTreeClassifier


@_document
class RandomForestRegressor(ForestRegressor):
    """Random forest for one or many real-valued outputs.

    Parameters
    ----------
{parameters}    """

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
        n_components="log",
        shared_projection=False,
        output_scale="none",
        max_bins=None,
    ):
        self.n_estimators = n_estimators
        self.criterion = criterion
        self.max_depth = max_depth
        self.min_samples_split = min_samples_split
        self.min_samples_leaf = min_samples_leaf
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_features = max_features
        self.max_leaf_nodes = max_leaf_nodes
        self.min_impurity_decrease = min_impurity_decrease
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.warm_start = warm_start
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.monotonic_cst = monotonic_cst
        self.projection = projection
        self.n_components = n_components
        self.shared_projection = shared_projection
        self.output_scale = output_scale
        self.max_bins = max_bins

    def _tree_class(self):
        return DecisionTreeRegressor


@_document
class ExtraTreesClassifier(RandomForestClassifier):
    """Extra-trees (Geurts, Ernst and Wehenkel, 2006) for classes and labels: random cuts.

    Parameters
    ----------
{parameters}    """

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
        output_scale="none",
        max_bins=None,
        threshold=0.5,
    ):
        super().__init__(
            n_estimators,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap,
            oob_score=oob_score,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            class_weight=class_weight,
            ccp_alpha=ccp_alpha,
            max_samples=max_samples,
            monotonic_cst=monotonic_cst,
            projection=projection,
            n_components=n_components,
            shared_projection=shared_projection,
            output_scale=output_scale,
            max_bins=max_bins,
            threshold=threshold,
        )

    def _tree_class(self):
        return ExtraTreeClassifier


@_document
class ExtraTreesRegressor(RandomForestRegressor):
    """Extra-trees (Geurts, Ernst and Wehenkel, 2006) for real-valued outputs: random cuts.

    Parameters
    ----------
{parameters}    """

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
        output_scale="none",
        max_bins=None,
    ):
        super().__init__(
            n_estimators,
            criterion=criterion,
            max_depth=max_depth,
            min_samples_split=min_samples_split,
            min_samples_leaf=min_samples_leaf,
            min_weight_fraction_leaf=min_weight_fraction_leaf,
            max_features=max_features,
            max_leaf_nodes=max_leaf_nodes,
            min_impurity_decrease=min_impurity_decrease,
            bootstrap=bootstrap,
            oob_score=oob_score,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
            warm_start=warm_start,
            ccp_alpha=ccp_alpha,
            max_samples=max_samples,
            monotonic_cst=monotonic_cst,
            projection=projection,
            n_components=n_components,
            shared_projection=shared_projection,
            output_scale=output_scale,
            max_bins=max_bins,
        )

    def _tree_class(self):
        return ExtraTreeRegressor
