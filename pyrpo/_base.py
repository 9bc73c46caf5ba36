"""What trees and forests share: fitting, reading out, keeping."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from pyrpo._fitted import Fitted
from pyrpo._growth import Growth, Setting
from pyrpo._inputs import (
    Outputs,
    check_same_rows,
    check_weight,
    check_X,
    check_y_given,
    classification_outputs,
    regression_outputs,
)
from pyrpo._native import Model
from pyrpo._options import (
    bin_count,
    check_criterion,
    label_threshold,
    seed_of,
    tree_options,
)
from pyrpo._readout import Classifier, Regressor


class BaseTrees(Fitted):
    """Trees on the library's engine; subclasses say how many and how randomised."""

    _criteria: tuple[str, ...] = ()
    shared_projection = True

    # ---- what subclasses differ in ----

    def _read_y(self, y: Any, sample_weight: Any) -> Outputs:
        raise NotImplementedError

    def _ensemble_options(self, outputs: Outputs) -> dict[str, float]:
        raise NotImplementedError

    def _check_readout(self, outputs: Outputs) -> None:
        """Refuse wrong parameters of what is done after growing."""

    def _result(self, growth: Growth) -> Model:
        """What was grown, with the rows in the leaves that are to be there."""
        return growth.result()

    def _finish(self, X: Any, outputs: Outputs) -> None:
        """Do what is done after growing."""

    def _growth(self, outputs: Outputs) -> type[Growth]:
        return Growth

    def _max_features(self) -> Any:
        return self.max_features

    # ---- fitting ----

    def fit(self, X, y, sample_weight=None):
        """Grow the trees. A call that fails leaves the estimator as it was.

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
        fitted = copy(self)
        fitted._fit(X, y, sample_weight)
        self.__dict__ = fitted.__dict__
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Fit a copy, which is thrown away when anything fails: all checks first, then the work."""
        check_y_given(self, y)
        earlier = self._forget()
        if getattr(self, "warm_start", False):
            self._check_complete(earlier)
        X = check_X(self, X, reset=True)
        outputs = self._read_y(y, sample_weight)
        check_same_rows(X, outputs.Y)
        check_criterion(self, self._criteria)
        options = tree_options(self, *X.shape) | self._ensemble_options(outputs)
        options |= {
            "impurity_scale": outputs.impurity_scale,
            "label_ratio": int(outputs.fallback is not None),
        }
        bins = bin_count(self.max_bins)
        self._check_readout(outputs)
        if not self._resume(earlier, options):
            return
        growth = self._growth(outputs)(
            options, X, bins, outputs, shared=bool(self.shared_projection), n_jobs=self.n_jobs
        )
        with self._bar(growth.wanted, "tree") as growth.progress:
            self._grow(growth, earlier)
            if growth.progress is not None:
                growth.progress(growth.grown, growth.wanted)
        self._model = self._result(growth)
        self._join(earlier)
        self._finish(X, outputs)

    def _plain(self, options: dict[str, float]) -> Setting:
        """What the parameters say, with nothing left to choose."""
        return Setting(self.projection, self.n_components, int(options["max_features"]))

    def _grow(self, growth: Growth, earlier: dict[str, Any]) -> None:
        """Grow all the trees."""
        growth.grow(self._plain(growth.options), growth.wanted)

    def _resume(self, earlier: dict[str, Any], options: dict[str, float]) -> bool:
        """Set the seed; False: an earlier fit has all the trees already."""
        self._seed = seed_of(self.random_state)
        options["seed"] = self._seed
        return True

    def _join(self, earlier: dict[str, Any]) -> None:
        """Put the new trees behind those of an earlier fit."""

    # ---- reading out ----

    def weights(self, X, X_fit=None, sample_weight=None) -> sparse.csr_array:
        """Weights of the training samples in the prediction of each row of X.

        Predictions are these weights times the training outputs: row i holds the w_j(x_i), which
        sum to 1.

        Models whose leaves are many keep the training samples of each. Where a table of the leaves'
        values is smaller (few, large leaves) they are found again from the training data: the
        trees are applied to `X_fit`, and bootstrap samples drawn as they were. The result is the
        same.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        X_fit : array or sparse matrix of shape (n_training_samples, n_features), default=None
            The X of `fit`, where the model keeps a table; not read where it does not. Data that do
            not agree with the leaves are refused.
        sample_weight : array of shape (n_training_samples,) or (n_training_samples, n_outputs), \
                default=None
            The weights of `fit`, with `X_fit`; times those of the classes if there is a
            `class_weight`.

        Returns
        -------
        W : csr_array of shape (n_samples, n_training_samples)
        """
        check_is_fitted(self)
        if self._model.has_rows:
            return self._call("weights", X)
        return self._call("weights", X, self._leaf_rows(X_fit, sample_weight))

    def _leaf_rows(self, X_fit: Any, sample_weight: Any) -> Any:
        """Training samples of the leaves, found again."""
        n, outputs = self._model.n_rows, self._model.n_outputs
        if X_fit is None:
            raise ValueError(
                "X_fit is None, but the leaves of this model are kept as a table of values, the "
                "smaller form: their training samples are found again from X_fit, the X of fit"
            )
        if self._weighs_samples():
            raise ValueError(
                "class_weight='balanced_subsample' weighs each tree's samples by their classes, "
                "which X_fit does not tell: weights need a model that keeps training samples"
            )
        try:
            X_fit = check_X(self, X_fit, reset=False)
        except ValueError as error:
            raise ValueError(f"X_fit: {error}") from error
        if X_fit.shape[0] != n:
            raise ValueError(f"X_fit has {X_fit.shape[0]} rows, the model was fitted to {n}")
        weight = check_weight(sample_weight, n, outputs)
        if weight is not None and weight.ndim == 2:
            weight = weight.mean(axis=1)
        try:
            return self._model.leaf_rows(X_fit, weight, self.n_jobs)
        except ValueError as error:
            raise ValueError(
                f"X_fit and sample_weight are not those of fit (with class_weight, sample_weight "
                f"must have its factor): {error}"
            ) from error

    def _weighs_samples(self) -> bool:
        """Whether each tree's sample has weights of its own, which are not drawn again."""
        kind = getattr(self, "class_weight", None)
        return isinstance(kind, str) and kind == "balanced_subsample"

    def importances(self, X, y, sample_weight=None) -> np.ndarray:
        """Mean decrease in variance of the outputs `y`, projected or not; they sum to 1.

        The training data go down the trees again, each tree's sample as it was drawn. Where all
        trees are grown on the outputs themselves, and with the y of `fit`, these are
        `feature_importances_`.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_training_samples, n_features)
            The X of `fit`. Data that do not agree with the leaves are refused.
        y : array of shape (n_training_samples,), or array or sparse matrix of shape \
                (n_training_samples, n_outputs)
            The y of `fit`; or some of its columns, or other outputs, to ask about these.
        sample_weight : array of shape (n_training_samples,) or (n_training_samples, n_outputs), \
                default=None
            The weights of `fit`.

        Returns
        -------
        importances : ndarray of shape (n_features_in_,)
        """
        check_is_fitted(self)
        if self._weighs_samples():
            raise ValueError(
                "class_weight='balanced_subsample' weighs each tree's samples by their classes and "
                "importances cannot draw them again"
            )
        X = check_X(self, X, reset=False)
        outputs = copy(self)._read_y(y, sample_weight)
        for name, rows in (("X", X.shape[0]), ("y", outputs.Y.shape[0])):
            if rows != self._model.n_rows:
                raise ValueError(
                    f"{name} has {rows} rows, the model was fitted to {self._model.n_rows}"
                )
        return self._model.importances_on(X, outputs.views()[0], outputs.weight, self.n_jobs)

    # ---- keeping ----

    def drop_labels(self):
        """The same model without its training labels, for models that travel.

        Fully grown trees keep the training samples of each leaf, and the training labels with
        them: that is smaller than a table of the leaves' values. Here it is replaced by such a
        table. Predictions are the same to rounding; `weights` then needs `X_fit`, as it does of all
        models that keep a table. Out-of-bag predictions of the samples are left out, too.

        Returns
        -------
        model : estimator of the same class
            Where the leaves are a table already, a copy.
        """
        check_is_fitted(self)
        other = copy(self)
        for name in ("oob_prediction_", "oob_decision_function_", "_tree"):
            other.__dict__.pop(name, None)
        other._model = self._model.drop_labels(self.n_jobs)
        return other


class TreesRegressor(Regressor, BaseTrees):
    """Regression: leaves hold means of the outputs."""

    _criteria = ("squared_error", "variance")

    def _read_y(self, y, sample_weight):
        outputs, self._y_ndim = regression_outputs(y, sample_weight, self.output_scale)
        self.n_outputs_ = outputs.Y.shape[1]
        return outputs


class TreesClassifier(Classifier, BaseTrees):
    """Classification: 1-D classes or label indicators; leaves hold their frequencies."""

    _criteria = ("gini",)

    def _read_y(self, y, sample_weight):
        outputs, self.classes_, self._indicator = classification_outputs(
            y, sample_weight, self._class_weight(), self.output_scale
        )
        self.n_outputs_ = outputs.Y.shape[1] if self._indicator else 1
        return outputs

    def _class_weight(self) -> Any:
        """Class weights that are known before growing."""
        if isinstance(self.class_weight, str) and self.class_weight == "balanced_subsample":
            raise ValueError(
                "class_weight='balanced_subsample' is for forests, whose trees have subsamples; "
                "trees take 'balanced'"
            )
        return self.class_weight

    def _check_readout(self, outputs):
        super()._check_readout(outputs)
        self.threshold_ = label_threshold(self.threshold, outputs.Y.shape[1])

    @property
    def n_classes_(self) -> int | list[int]:
        """Number of classes; of each label, 2, when fitted to an indicator."""
        check_is_fitted(self)
        return [2] * self.n_outputs_ if self._indicator else len(self.classes_)
