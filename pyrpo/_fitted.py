"""What every estimator that holds a model of the library shares: checks, progress, keeping."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from inspect import signature
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin
from sklearn.utils.validation import check_is_fitted

from pyrpo import _note
from pyrpo._inputs import check_X


class Fitted(MultiOutputMixin, BaseEstimator):
    """An estimator whose ``_model`` answers for it once it is fitted."""

    _indicator: bool | None = None  # of classifiers: whether y was a label indicator
    n_jobs: int | None = None  # parameters of ensembles only
    _attributes: tuple[str, ...] = ("n_features_in_", "n_outputs_", "feature_importances_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def _forget(self) -> dict[str, Any]:
        """Drop and return what an earlier fit left."""
        hidden = ("_model", "_tree", "_indicator", "_lost")
        names = [n for n in vars(self) if n in hidden or (n[-1] == "_" and n[0] != "_")]
        return {name: self.__dict__.pop(name) for name in names}

    def _check_complete(self, earlier: dict[str, Any]) -> None:
        """Before more is grown: what the model's file could not hold must have been set again."""
        for name in earlier.get("_lost", ()):
            value, default = getattr(self, name), signature(type(self)).parameters[name].default
            if value is default or (isinstance(value, str) and value == default):
                raise ValueError(
                    f"warm_start cannot go on with {name}={value!r}: the model was fitted with "
                    f"another {name}, which its file could not hold; set it again"
                )

    def _bar(self, total: int, unit: str):
        """A tqdm bar if verbose: yields what is told how much is done, or None."""
        wanted = getattr(self, "verbose", 0)  # single trees have no such parameter
        return _bar(type(self).__name__, total, unit) if wanted else nullcontext()

    def _call(self, method: str, X: Any, *args: Any) -> Any:
        """Ask the model about the rows of X."""
        check_is_fitted(self)
        X = check_X(self, X, reset=False)
        return getattr(self._model, method)(X, *args, n_jobs=self.n_jobs)

    @property
    def feature_importances_(self) -> np.ndarray:
        """Mean decrease in impurity of each feature; they sum to 1.

        The impurity is the variance of what trees are grown on: projected outputs under a
        projection (`importances` of trees and forests is in that of the outputs themselves),
        projected gradients in boosting.
        """
        check_is_fitted(self)
        return self._model.importances()

    def save(self, path) -> None:
        """Write the fitted estimator to a file that `pyrpo.load` and the C library read.

        Parameters
        ----------
        path : path-like
            An existing file is replaced, at once: it is the old or the new one at any moment.
            Parameters that JSON cannot hold (random states, callables) are not saved and have
            their default after loading; predictions do not depend on them, and `warm_start` goes
            on only when they have been set again.
        """
        check_is_fitted(self)
        self._model.save(path, _note.write(self))


@contextmanager
def _bar(name: str, total: int, unit: str):
    from tqdm.auto import tqdm

    with tqdm(total=total, desc=name, unit=unit) as bar:
        yield lambda done, of=None: bar.update(done - bar.n)
