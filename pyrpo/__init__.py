"""Fast trees and forests for very many outputs."""

from __future__ import annotations

from pyrpo._install import get_include, get_lib_dir
from pyrpo._keeping import inspect_model, load
from pyrpo._native_call import version
from pyrpo.boosting import GradientBoostingClassifier, GradientBoostingRegressor
from pyrpo.forest import (
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
    join_forests,
)
from pyrpo.label_embedding import LabelEmbeddingClassifier
from pyrpo.tree import (
    DecisionTreeClassifier,
    DecisionTreeRegressor,
)

__version__ = version

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
    "get_include",
    "get_lib_dir",
    "inspect_model",
    "join_forests",
    "load",
]
