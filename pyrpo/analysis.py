r"""Where a forest's error comes from: bias and variance of randomly projected trees.

Section 3.3 and appendix C of Joly, Geurts and Wehenkel (2014) split the mean squared error of a
model grown on a random learning set :math:`LS`, a random projection :math:`\Phi` and the random
draws :math:`\varepsilon` of the algorithm (bootstrap, features, cuts). Here each part is estimated
by drawing the three again and again, one inside the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.utils import check_array, check_random_state, resample

from pyrpo._base import BaseTrees
from pyrpo._native import Model
from pyrpo._options import number
from pyrpo.projection import _Projection, named_projection

__all__ = ["BiasVariance", "Components", "bias_variance"]


@dataclass(frozen=True)
class Components:
    """Parts of the mean squared error; numbers, or arrays of one number an output.

    Attributes
    ----------
    residual_bias : float or array
        Residual error plus squared bias.
    v_ls : float or array
        Variance due to the learning set.
    v_algo : float or array
        Variance due to the randomness of the algorithm.
    v_proj : float or array
        Variance due to the projection.
    residual : float or array
        Residual error, the outputs' own noise; NaN where the truth was not given.
    bias : float or array
        Squared bias; NaN where the truth was not given.
    """

    residual_bias: Any
    v_ls: Any
    v_algo: Any
    v_proj: Any
    residual: Any
    bias: Any

    @property
    def variance(self) -> Any:
        """All variance: ``v_ls + v_algo + v_proj``."""
        return self.v_ls + self.v_algo + self.v_proj

    @property
    def error(self) -> Any:
        """Expected squared error: ``residual_bias + variance``."""
        return self.residual_bias + self.variance

    def of_ensemble(self, n_trees: int, *, shared: bool) -> Components:
        r"""What theory makes of a single tree's components in an ensemble of such trees.

        Appendix C.2: :math:`V_{Algo}` is divided by t, :math:`V_{Proj}` too in Algorithm 2, in
        which each tree has a projection of its own, but not in Algorithm 1.

        Parameters
        ----------
        n_trees : int
            t.
        shared : bool
            One projection for all trees (Algorithm 1) or one a tree (Algorithm 2).

        Returns
        -------
        components : Components
        """
        number(n_trees, "n_trees", 1, whole=True)
        v_proj = self.v_proj if shared else self.v_proj / n_trees
        parts = (self.residual_bias, self.v_ls, self.v_algo / n_trees, v_proj)
        return Components(*parts, self.residual, self.bias)


@dataclass(frozen=True)
class BiasVariance(Components):
    """Components averaged over test rows and outputs, as `bias_variance` returns them.

    Times the number of outputs they are the paper's, whose squared norms are sums over outputs.

    Attributes
    ----------
    per_output : Components
        The same of each output: arrays of shape (n_outputs,).
    standard_error : Components
        Jackknife over the learning sets, of the averages. The test rows are taken as given: how
        much their noise and their choice matter is not in it.
    """

    per_output: Components
    standard_error: Components


def bias_variance(
    estimator: BaseTrees,
    sample: Callable[[np.random.Generator, int], tuple[Any, Any]] | tuple[Any, Any],
    X_test: Any,
    Y_test: Any,
    *,
    learning_size: int,
    truth: Any = None,
    n_learning_sets: int = 20,
    n_projections: int = 4,
    n_repeats: int = 2,
    random_state: Any = None,
) -> BiasVariance:
    r"""Estimate the parts of an estimator's mean squared error by nested resampling.

    With f the prediction of the estimator as it is given, and :math:`f_B(x) = E(Y|x)`, the parts
    are, averaged over the test rows x (appendix C.1, equations a.13 and a.14):

    ================= =========================================================================
    ``residual_bias`` :math:`\sigma_R^2 + B^2 = E\,(Y - \bar f)^2`, :math:`\bar f = E f`
    ``bias``          :math:`B^2 = (f_B - \bar f)^2`, when the truth is given
    ``v_ls``          :math:`V_{LS} = Var_{LS}\, E_{\Phi, \varepsilon | LS} f`
    ``v_proj``        :math:`V_{Proj} = E_{LS}\, Var_{\Phi | LS}\, E_{\varepsilon | LS, \Phi} f`
    ``v_algo``        :math:`V_{Algo} = E_{LS}\, E_{\Phi | LS}\, Var_{\varepsilon | LS, \Phi} f`
    ================= =========================================================================

    Of a forest of one tree, or a single tree, these are the paper's :math:`V_{LS}(x)`,
    :math:`V_{Algo}(x)` and :math:`V_{Proj}(x)`. Of a forest of t trees they are what the paper
    derives in C.2: :math:`V_{LS}, V_{Algo}/t` and, with ``shared_projection=True`` (Algorithm 1),
    :math:`V_{Proj}`, else (Algorithm 2) :math:`V_{Proj}/t`. Nothing of this is assumed: forests
    are measured as they are, and what one tree predicts about them is `Components.of_ensemble`.

    Parameters
    ----------
    estimator : decision tree or forest of this package
        Not fitted here; its ``random_state`` and the readouts it would add after growing
        (``oob_score``, a tuned threshold) are not used. Nothing races: parameters that are "auto"
        are what stands first in a race, sqrt(p) features and "log" components. Classifiers are
        judged by their probabilities (the squared error is then Brier's score).
    sample : callable or pair (X, Y)
        Source of learning sets. A callable gets a numpy generator and the number of rows and
        returns new X, Y of the population. Of a pair, a pool, ``learning_size`` rows are drawn
        without replacement: learning sets then overlap, and ``v_ls`` is that of drawing from this
        pool, too small by about the share of the pool that a learning set takes.
        Y is 1-D or 2-D and real-valued for regressors, a label indicator for classifiers (1-D
        classes: encode them one-hot, which grows the same trees).
    X_test : array or sparse matrix of shape (n_test, n_features)
    Y_test : array or sparse matrix of shape (n_test, n_outputs) or (n_test,)
        Outputs observed at the test rows, independent of the learning sets.
    learning_size : int
        Rows of a learning set.
    truth : array of shape of Y_test, default=None
        The expectation of Y_test given X_test; it separates residual error and bias.
    n_learning_sets : int, default=20
        Learning sets, 3 at least.
    n_projections : int, default=4
        Projections (Algorithm 2: lists of t of them) a learning set, 2 at least. What counts as
        random are the named ones and their objects, except PCA, and transformers that have a
        ``random_state``. Of others (None, a matrix, PCA) there is 1, and ``v_proj`` is 0.
    n_repeats : int, default=2
        Forests a projection that differ by the algorithm's randomness only, 2 at least.
    random_state : int, RandomState instance or None, default=None

    Returns
    -------
    result : BiasVariance

    Notes
    -----
    The design is a balanced nested analysis of variance. The variance among means of A repeats
    holds the noise of these means, :math:`V_{Algo}/A`, and so on upwards; it is subtracted at each
    level, and the noise of the overall mean is subtracted from the squared bias. All estimates are
    unbiased. Hence one whose true value is about 0 may come out below 0.

    With own projections, projection j of a list is held while n_repeats trees are grown on it, and
    repeat a joins tree a of each projection. In all
    ``n_learning_sets * n_projections * n_repeats * t`` trees are grown.

    Examples
    --------
    >>> import numpy as np
    >>> from pyrpo import RandomForestRegressor
    >>> from pyrpo.analysis import bias_variance
    >>> def sample(rng, n):
    ...     X = rng.uniform(size=(n, 3))
    ...     return X, X @ np.eye(3, 6) + rng.normal(size=(n, 6))
    >>> X_test, Y_test = sample(np.random.default_rng(1), 50)
    >>> forest = RandomForestRegressor(10, projection="gaussian", n_components=2)
    >>> parts = bias_variance(forest, sample, X_test, Y_test, learning_size=40, random_state=0)
    >>> bool(parts.v_ls > parts.v_proj)
    True
    """
    _check_estimator(estimator)
    Y, truth = _read_test(X_test, Y_test, truth)
    low = {"n_learning_sets": (n_learning_sets, 3), "n_projections": (n_projections, 2),
           "n_repeats": (n_repeats, 2), "learning_size": (learning_size, 1)}  # fmt: skip
    for name, (value, least) in low.items():
        number(value, name, least, whole=True)
    rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
    study = _Study(estimator, X_test, Y.shape, n_projections, n_repeats, rng)
    sets = [study.learn(*_draw(sample, learning_size, rng)) for _ in range(n_learning_sets)]
    return _decompose(sets, Y, truth)


# ---- reading ----


def _check_estimator(estimator: Any) -> None:
    if isinstance(estimator, type) or not isinstance(estimator, BaseTrees):
        raise TypeError(f"estimator must be a tree or forest of this package, got {estimator!r}")


def _read_test(X_test: Any, Y_test: Any, truth: Any) -> tuple[np.ndarray, np.ndarray | None]:
    def read(values: Any, name: str) -> np.ndarray:
        if sparse.issparse(values):
            values = values.toarray()
        values = check_array(values, dtype=np.float64, ensure_2d=False, input_name=name)
        return values[:, None] if values.ndim == 1 else values

    Y = read(Y_test, "Y_test")
    rows = X_test.shape[0] if hasattr(X_test, "shape") else len(X_test)
    if len(Y) != rows:
        raise ValueError(f"Y_test must have the {rows} rows of X_test, got {len(Y)}")
    if truth is None:
        return Y, None
    truth = read(truth, "truth")
    if truth.shape != Y.shape:
        raise ValueError(f"truth must have the shape of Y_test, {Y.shape}, got {truth.shape}")
    return Y, truth


def _draw(sample: Any, size: int, rng: np.random.Generator) -> tuple[Any, Any]:
    """One learning set."""
    if callable(sample):
        return sample(rng, size)
    if not isinstance(sample, tuple) or len(sample) != 2:
        raise TypeError(f"sample must be callable or a pair (X, Y), got {type(sample).__name__}")
    X, Y = sample
    rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if size > rows:
        raise ValueError(f"learning_size must be at most the {rows} rows to draw from, got {size}")
    seed = int(rng.integers(2**31))
    return tuple(resample(X, Y, replace=False, n_samples=size, random_state=seed))


# ---- growing ----


@dataclass(frozen=True)
class _LearningSet:
    """What one learning set contributes."""

    mean: np.ndarray  # (n_test, d): mean prediction over projections and repeats
    v_algo: np.ndarray  # (d,): variance over repeats; mean over projections and test rows
    v_mean: np.ndarray  # (d,): variance over projections of the mean over repeats
    noise: np.ndarray  # (d,): what that variance holds of v_algo
    projections: int


def _summary(predictions: list[np.ndarray], random: bool) -> _LearningSet:
    """Of predictions (n_repeats, n_test, d), one array a projection."""
    repeats, projections = len(predictions[0]), len(predictions)
    cells = np.array([p.mean(axis=0) for p in predictions])
    v_algo = np.mean([p.var(axis=0, ddof=1).mean(axis=0) for p in predictions], axis=0)
    noise = v_algo / repeats
    v_mean = cells.var(axis=0, ddof=1).mean(axis=0) if random else noise
    return _LearningSet(cells.mean(axis=0), v_algo, v_mean, noise, projections)


def _has_seed(projection: Any) -> bool:
    return hasattr(projection, "transform") and "random_state" in projection.get_params()


class _Study:
    """The estimator, and how its projections and its other randomness are drawn apart."""

    def __init__(self, estimator, X_test, shape, n_projections, n_repeats, rng) -> None:
        self.X_test, self.shape, self.rng = X_test, shape, rng
        self.n_projections, self.n_repeats = n_projections, n_repeats
        parameters = estimator.get_params(deep=False)
        plain = {"oob_score": False, "threshold": 0.5, "verbose": 0, "warm_start": False}
        usual = {"max_features": "sqrt", "n_components": "log", "projection": None}
        given = {name: parameters[name] for name in usual}
        plain |= {n: usual[n] for n, v in given.items() if isinstance(v, str) and v == "auto"}
        self.estimator = clone(estimator).set_params(
            **{name: value for name, value in plain.items() if name in parameters}
        )
        self.n_trees = parameters.get("n_estimators", 1)
        self.kind = named_projection(self.estimator.projection, self.estimator.n_components)
        drawn = isinstance(self.kind, _Projection)
        self.own = drawn and not estimator.shared_projection
        self.random = drawn or _has_seed(self.kind)

    def learn(self, X: Any, Y: Any) -> _LearningSet:
        """Grow all forests of one learning set and predict the test rows."""
        if is_classifier(self.estimator) and np.ndim(Y) == 1:
            raise ValueError(
                "Y of a classifier must be a label indicator, got 1-D classes: encode them "
                "one-hot, which grows the same trees"
            )
        forests = self._own if self.own else self._shared
        predictions = [
            np.array([self._predict(forest) for forest in forests(X, Y)])
            for _ in range(self.n_projections if self.random else 1)
        ]
        return _summary(predictions, self.random)

    def _shared(self, X: Any, Y: Any) -> Iterator[BaseTrees]:
        """Algorithm 1: forests on one projection."""
        projection = self._projection(Y)
        for _ in range(self.n_repeats):
            yield self._fit(X, Y, projection)

    def _own(self, X: Any, Y: Any) -> Iterator[BaseTrees]:
        """Algorithm 2: forests of trees that have a projection each, the same in all forests."""
        grown = [
            self._fit(X, Y, self._projection(Y), n_estimators=self.n_repeats)
            for _ in range(self.n_trees)
        ]
        for repeat in range(self.n_repeats):
            forest = copy(grown[0])
            pick = [(j, repeat) for j in range(self.n_trees)]
            forest._model = Model.pick([f._model for f in grown], pick)
            yield forest

    def _projection(self, Y: Any) -> Any:
        """A projection of the estimator's kind, to be held over any number of fits."""
        if isinstance(self.kind, _Projection):
            n, d = (*np.shape(Y), 1)[:2]  # 1-D: one output
            return self.kind.spec(n, d, seed=self._seed()).draw(d)
        if _has_seed(self.kind):
            return clone(self.kind).set_params(random_state=self._seed())
        return self.kind

    def _seed(self) -> int:
        return int(self.rng.integers(2**31))

    def _fit(self, X: Any, Y: Any, projection: Any, **parameters: Any) -> BaseTrees:
        forest = copy(self.estimator)  # unfitted: a clone or set_params would take half of the time
        parameters |= {"projection": projection, "random_state": self._seed()}
        vars(forest).update(parameters)
        return forest.fit(X, Y)

    def _predict(self, forest: BaseTrees) -> np.ndarray:
        predict = forest.predict_proba if is_classifier(forest) else forest.predict
        values = predict(self.X_test)
        values = values[:, None] if values.ndim == 1 else values
        if values.shape != self.shape:
            raise ValueError(
                f"Y_test must have the {values.shape[1]} outputs of the learning sets, got "
                f"{self.shape[1]}"
            )
        return values


# ---- estimating ----


def _estimate(sets: list[_LearningSet], Y: np.ndarray, truth: np.ndarray | None) -> np.ndarray:
    """Rows are the components in their order, columns the outputs."""
    means = np.array([s.mean for s in sets])
    v_algo, v_mean, noise = (
        np.mean([getattr(s, name) for s in sets], axis=0) for name in ("v_algo", "v_mean", "noise")
    )
    between = means.var(axis=0, ddof=1).mean(axis=0)  # of learning sets

    def squared_distance(to: np.ndarray) -> np.ndarray:
        return ((to - means.mean(axis=0)) ** 2).mean(axis=0) - between / len(sets)

    residual = bias = np.full(Y.shape[1], np.nan)
    residual_bias = squared_distance(Y)
    if truth is not None:
        residual, bias = ((Y - truth) ** 2).mean(axis=0), squared_distance(truth)
        residual_bias = residual + bias
    v_ls = between - v_mean / sets[0].projections
    return np.array([residual_bias, v_ls, v_algo, v_mean - noise, residual, bias])


def _decompose(sets: list[_LearningSet], Y: np.ndarray, truth: np.ndarray | None) -> BiasVariance:
    parts = _estimate(sets, Y, truth)
    without = [_estimate(sets[:i] + sets[i + 1 :], Y, truth).mean(axis=1) for i in range(len(sets))]
    error = np.sqrt((len(sets) - 1) * np.var(without, axis=0))
    return BiasVariance(
        *map(float, parts.mean(axis=1)),
        per_output=Components(*parts),
        standard_error=Components(*map(float, error)),
    )
