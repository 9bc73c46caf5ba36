"""Fast trees and forests for very many outputs."""

from __future__ import annotations

from typing import Any

from pyrpo import _note
from pyrpo._install import get_include, get_lib_dir
from pyrpo._native import Model
from pyrpo._native_call import FormatError, version
from pyrpo.boosting import GradientBoostingClassifier, GradientBoostingRegressor
from pyrpo.forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from pyrpo.label_embedding import LabelEmbeddingClassifier
from pyrpo.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)

__version__ = version

_ESTIMATORS = {
    cls.__name__: cls
    for cls in (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        GradientBoostingClassifier,
        GradientBoostingRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
}

__all__ = [*_ESTIMATORS, "LabelEmbeddingClassifier", "get_include", "get_lib_dir", "load"]


def load(path) -> Any:
    """Read an estimator from a file its ``save`` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    estimator : fitted estimator
    """
    model = Model.load(path)
    try:
        estimator = _note.read(model.note, _ESTIMATORS)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise FormatError(
            f"{path} holds a model, but no estimator saved by pyrpo ({error})"
        ) from error
    estimator._model = model
    return estimator
