"""The estimator's part of a model file: class, parameters and fitted attributes, as JSON.

Beside trees the JSON holds all that a fitted forest is. Of other models it holds the names of
arrays, which are sections of the file (`Store`). Nothing in it is code: classes are those of
`_classes`.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse
from sklearn import linear_model
from sklearn.base import BaseEstimator

from pyrpo import _growth, projection
from pyrpo._native import Model
from pyrpo._native_files import can_store

KEPT = ("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "threshold_",
        "_indicator", "_y_ndim", "_single", "_seed", "tuning_", "convergence_", "_link", "_lost",
        "n_estimators_", "learning_rate_", "train_score_", "validation_score_")  # fmt: skip

RECORDS = (_growth.Tuning, _growth.Convergence)

OWN_PROJECTIONS = tuple(getattr(projection, name) for name in projection.__all__)

# scikit-learn's own whose predictions need these attributes and nothing else.
LINEAR = {cls.__name__: cls for cls in (linear_model.LinearRegression, linear_model.Ridge)}
_LINEAR_KEPT = ("coef_", "intercept_", "n_features_in_", "feature_names_in_")


@cache
def _classes() -> dict[str, type]:
    """What a file may hold, by name."""
    from pyrpo import boosting, embedding, forest, label_embedding, tree
    from pyrpo._least_squares import Ridge
    from pyrpo.decoder import LogisticDecoder
    from pyrpo.feature_map import RandomFourierFeatures

    trees = [
        *(tree.DecisionTreeClassifier, tree.DecisionTreeRegressor),
        *(forest.RandomForestClassifier, forest.RandomForestRegressor),
        *(forest.ExtraTreesClassifier, forest.ExtraTreesRegressor),
        *(boosting.GradientBoostingClassifier, boosting.GradientBoostingRegressor),
    ]
    others = [
        *(getattr(embedding, name) for name in embedding.__all__),
        *(label_embedding.LabelEmbeddingClassifier, LogisticDecoder, RandomFourierFeatures, Ridge),
    ]
    return {cls.__name__: cls for cls in trees + others}


class Store:
    """Arrays on their way into a file, or out of it; None: there is no room for them."""

    def __init__(self, arrays: dict[str, np.ndarray] | None = None) -> None:
        self.arrays = arrays

    def put(self, name: str, array: np.ndarray) -> dict[str, str] | None:
        """Keep an array; what the JSON says instead of it.

        The name is for people: keys 1 and "1" have the same, so the second gets a mark.
        """
        if self.arrays is None or not can_store(array):
            return None
        name = name.replace("\0", " ") or "array"
        while name in self.arrays:
            name += "'"
        self.arrays[name] = array
        return {"stored": name}

    def get(self, name: str) -> np.ndarray:
        """The array."""
        if self.arrays is None or name not in self.arrays:
            raise ValueError(f"there is no array {name!r}")
        return self.arrays[name]


# ---- writing ----


def _pack(value: Any, store: Store, at: str = "") -> Any:
    if isinstance(value, np.ndarray):
        if value.dtype == bool and (kept := store.put(at, value.astype(np.uint8))) is not None:
            return kept | {"bool": True}
        if (kept := store.put(at, value)) is not None:
            return kept
        return {"array": [_pack(v, store) for v in value.tolist()], "dtype": value.dtype.str}
    if isinstance(value, np.generic):
        return _pack(value.item(), store)
    if isinstance(value, dict):
        return {"dict": [[_pack(k, store), _pack(v, store, f"{at}.{k}")] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return [_pack(v, store, f"{at}.{i}") for i, v in enumerate(value)]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, RECORDS):
        return {"record": type(value).__name__, "fields": _pack(vars(value), store)}
    if type(value) in OWN_PROJECTIONS:
        return {"projection": type(value).__name__, "params": _pack(value.get_params(), store)}
    if sparse.issparse(value) and value.format == "csr" and store.arrays is not None:
        parts = {part: getattr(value, part) for part in ("data", "indices", "indptr")}
        return {"csr": list(value.shape), "parts": _pack(parts, store, at)}
    if isinstance(value, BaseEstimator) and store.arrays is not None:
        return {"object": _pack_object(value, store, at)}
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _pack_object(estimator: Any, store: Store, at: str = "") -> dict[str, Any]:
    """Class, parameters, fitted attributes; of trees their file as an array of bytes."""
    name = type(estimator).__name__
    ours, linear = type(estimator) is _classes().get(name), type(estimator) is LINEAR.get(name)
    if not ours and not linear:
        raise TypeError(
            f"{at or 'the estimator'}: a {name} cannot be saved without its code; pickle the model"
        )
    params = estimator.get_params(deep=False)
    own = {k: v for k, v in vars(estimator).items() if k not in params}
    trees = own.get("_model")
    nested = trees is not None and store.arrays is not None
    if nested and not isinstance(trees, Model):
        raise TypeError(f"{at}: a {name} with base_estimator cannot be saved; pickle the model")
    if linear:
        own = {k: v for k, v in own.items() if k in _LINEAR_KEPT}
    packed = _packed(params, store, at, needed=False)
    if not linear and issubclass(type(estimator), _with_trees()):
        own = {k: v for k, v in own.items() if k in KEPT}
        lost = params.keys() - packed.keys() - {"random_state"} | set(own.pop("_lost", ()))
        own |= {"_lost": sorted(lost)} if lost else {}
    content = {
        "estimator": name,
        "params": packed,
        "fitted": _packed(own, store, at, needed=True),
    }
    if nested:
        content["trees"] = store.put(f"{at}._model", trees.dump())
    return content | ({"sklearn": True} if linear else {})


def _with_trees() -> tuple[type, ...]:
    return tuple(cls for cls in _classes().values() if hasattr(cls, "apply"))


def _packed(values: dict[str, Any], store: Store, at: str, *, needed: bool) -> dict[str, Any]:
    """What can be packed; parameters that cannot get their default on loading."""
    packed, before = {}, dict(store.arrays or {})
    for name, value in values.items():
        try:
            packed[name] = _pack(value, store, f"{at}.{name}".lstrip("."))
            before = dict(store.arrays or {})
        except TypeError as error:
            if needed:
                raise TypeError(f"{name} cannot be saved: {error}") from error
            if store.arrays is not None:
                store.arrays = dict(before)
    return packed


def write(estimator: Any) -> bytes:
    """The note of a fitted estimator of trees."""
    return json.dumps(_pack_object(estimator, Store())).encode()


def write_arrays(estimator: Any) -> tuple[dict[str, np.ndarray], bytes]:
    """Arrays and note of any other fitted estimator."""
    store = Store({})
    note = json.dumps(_pack_object(estimator, store)).encode()
    return store.arrays, note


# ---- reading ----


def _unpack(value: Any, store: Store) -> Any:
    if isinstance(value, list):
        return [_unpack(v, store) for v in value]
    if not isinstance(value, dict):
        return value
    if "stored" in value:
        array = store.get(value["stored"])
        return array.astype(bool) if "bool" in value else array
    if "array" in value:
        return np.array(_unpack(value["array"], store), dtype=value["dtype"])
    if "dict" in value:
        return {_unpack(k, store): _unpack(v, store) for k, v in value["dict"]}
    if "record" in value:
        kinds = {kind.__name__: kind for kind in RECORDS}
        if value["record"] not in kinds:
            raise ValueError(f"unknown record {value['record']!r}")
        return kinds[value["record"]](**_unpack(value["fields"], store))
    if "csr" in value:
        parts = _unpack(value["parts"], store)
        matrix = sparse.csr_array(
            (parts["data"], parts["indices"], parts["indptr"]), shape=tuple(value["csr"])
        )
        matrix.check_format(full_check=True)
        return matrix
    if "object" in value:
        return _unpack_object(value["object"], store)
    if value["projection"] not in projection.__all__:
        raise ValueError(f"unknown projection {value['projection']!r}")
    return getattr(projection, value["projection"])(**_unpack(value["params"], store))


def _unpack_object(content: dict[str, Any], store: Store, model: Model | None = None) -> Any:
    cls = (LINEAR if content.get("sklearn") else _classes())[content["estimator"]]
    estimator = cls(**{name: _unpack(v, store) for name, v in content["params"].items()})
    trees = issubclass(cls, _with_trees())
    if trees and model is None and "trees" in content:
        model = Model.parse(_unpack(content["trees"], store))
    for name, value in content["fitted"].items():
        known = name in KEPT if trees else not hasattr(cls, name) and not name.startswith("__")
        if known:
            setattr(estimator, name, _unpack(value, store))
    if trees and model is not None:
        estimator._model = model
    return estimator


def read(note: bytes, model: Model) -> Any:
    """The estimator of a note and its trees."""
    content = json.loads(note.decode())
    if content["estimator"] not in {cls.__name__ for cls in _with_trees()}:
        raise ValueError(f"{content['estimator']} has no trees")
    return _unpack_object(content, Store(), model)


def read_arrays(arrays: dict[str, np.ndarray], note: bytes) -> Any:
    """The estimator of arrays and a note."""
    return _unpack_object(json.loads(note.decode()), Store(arrays))
