"""The estimator's part of a model file: class, parameters and fitted attributes, as JSON."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from pyrpo import _growth, projection

KEPT = ("n_features_in_", "feature_names_in_", "n_outputs_", "classes_", "threshold_",
        "_indicator", "_y_ndim", "_seed", "tuning_", "convergence_", "_link",
        "n_estimators_", "train_score_", "validation_score_")  # fmt: skip

RECORDS = (_growth.Tuning, _growth.Convergence)


def _pack(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"array": [_pack(v) for v in value.tolist()], "dtype": value.dtype.str}
    if isinstance(value, np.generic):
        return _pack(value.item())
    if isinstance(value, dict):
        return {"dict": [[_pack(k), _pack(v)] for k, v in value.items()]}
    if isinstance(value, list | tuple):
        return [_pack(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    name = type(value).__name__
    if isinstance(value, RECORDS):
        return {"record": name, "fields": _pack(vars(value))}
    if type(value) is getattr(projection, name, None):
        return {"projection": name, "params": _pack(value.get_params())}
    raise TypeError(f"{name} cannot be written as JSON")


def _unpack(value: Any) -> Any:
    if isinstance(value, list):
        return [_unpack(v) for v in value]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return np.array(_unpack(value["array"]), dtype=value["dtype"])
    if "dict" in value:
        return {_unpack(k): _unpack(v) for k, v in value["dict"]}
    if "record" in value:
        kinds = {kind.__name__: kind for kind in RECORDS}
        if value["record"] not in kinds:
            raise ValueError(f"unknown record {value['record']!r}")
        return kinds[value["record"]](**_unpack(value["fields"]))
    if value["projection"] not in projection.__all__:
        raise ValueError(f"unknown projection {value['projection']!r}")
    return getattr(projection, value["projection"])(**_unpack(value["params"]))


def _packed(values: dict[str, Any]) -> dict[str, Any]:
    """What can be packed; parameters that cannot get their default on loading."""
    packed = {}
    for name, value in values.items():
        try:
            packed[name] = _pack(value)
        except TypeError as error:
            if name in KEPT:
                raise TypeError(f"{name} cannot be saved: {error}") from error
    return packed


def write(estimator: Any) -> bytes:
    """The note of a fitted estimator."""
    fitted = {name: value for name, value in vars(estimator).items() if name in KEPT}
    note = {
        "estimator": type(estimator).__name__,
        "params": _packed(estimator.get_params(deep=False)),
        "fitted": _packed(fitted),
    }
    return json.dumps(note).encode()


def read(note: bytes, classes: dict[str, type]) -> Any:
    """The estimator of a note, still without its model."""
    content = json.loads(note.decode())
    params = {name: _unpack(value) for name, value in content["params"].items()}
    estimator = classes[content["estimator"]](**params)
    for name, value in content["fitted"].items():
        if name in KEPT:
            setattr(estimator, name, _unpack(value))
    return estimator
