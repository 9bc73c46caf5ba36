"""Fast trees and forests for very many outputs."""

from __future__ import annotations

from pyrpo import _native
from pyrpo._keeping import inspect_model, load
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

__version__ = _native.version

__all__ = [
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "LabelEmbeddingClassifier",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "inspect_model",
    "load",
]
