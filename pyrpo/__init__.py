"""Fast trees and forests for very many outputs."""

from __future__ import annotations

import json
from typing import Any

from pyrpo import _base, _native
from pyrpo.forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from pyrpo.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
    ExtraTreeClassifier,
    ExtraTreeRegressor,
)

__version__ = _native.version

_ESTIMATORS = {
    cls.__name__: cls
    for cls in (
        DecisionTreeClassifier,
        DecisionTreeRegressor,
        ExtraTreeClassifier,
        ExtraTreeRegressor,
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
}

__all__ = [*_ESTIMATORS, "load"]


def load(path) -> Any:
    """Read an estimator from a file its ``save`` wrote.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    estimator : fitted estimator
    """
    model = _native.Model.load(path)
    try:
        note = json.loads(model.note.decode())
        estimator = _ESTIMATORS[note["estimator"]](**note["params"])
    except (KeyError, TypeError, ValueError) as error:
        raise _native.FormatError(
            f"{path} holds a model, but no estimator saved by pyrpo ({error})"
        ) from error
    for name, value in note["fitted"].items():
        if name in _base._KEPT:
            setattr(estimator, name, _base.unpack(value))
    estimator._model = model
    return estimator
