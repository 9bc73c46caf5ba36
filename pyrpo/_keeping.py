"""Model files as users see them: `load`, `inspect_model`, and ``save`` of what is no forest."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from sklearn.utils.validation import check_is_fitted

from pyrpo import _native_files, _note
from pyrpo._native import Model
from pyrpo._native_call import FormatError

# What notes that no `save` has written lead to.
_BROKEN = (
    AttributeError,
    LookupError,
    MemoryError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)

_KINDS = {_native_files.FOREST: "forest", _native_files.ARRAYS: "arrays"}


class SavesArrays:
    """``save`` of estimators that consist of arrays."""

    def save(self, path) -> None:
        """Write the fitted estimator to a file that `pyrpo.load` reads.

        Nothing in the file is code: parts that are not ours, other than scikit-learn's
        ``LinearRegression`` and ``Ridge``, are refused by name; such models are pickled.

        Parameters
        ----------
        path : path-like
            An existing file is replaced, at once: it is the old or the new one at any moment.
            Parameters that cannot be written (random states, callables, splitters) are not saved
            and have their default after loading; predictions do not depend on them.
        """
        check_is_fitted(self)
        _native_files.save_arrays(path, *_note.write_arrays(self))


def load(path, *, mmap: bool = False) -> Any:
    """Read an estimator from a file its ``save`` wrote.

    Parameters
    ----------
    path : path-like
    mmap : bool, default=False
        Map the file into memory instead of reading it: large models are open at once, and
        processes share them. Its checksums are not checked then; indices are, wherever they are
        used (`ValueError`). The file must not be changed in place meanwhile; saving another model
        under its name is harmless. Arrays of such estimators cannot be written to.

    Returns
    -------
    estimator : fitted estimator
    """
    try:
        if _native_files.file_kind(path) == _native_files.ARRAYS:
            return _note.read_arrays(*_native_files.load_arrays(path, mmap=mmap))
        model = Model.load(path, mmap=mmap)
        return _note.read(model.note, model)
    except FormatError:
        raise
    except _BROKEN as error:
        raise FormatError(
            f"{path} holds a model, but no estimator saved by pyrpo ({error})"
        ) from error


@dataclass
class ModelInfo:
    """What a model file says of itself; as text, a table.

    Attributes
    ----------
    kind : "forest" or "arrays"
    version : int
        Of the format.
    nbytes : int
    trees, inputs, outputs, rows : int
        Of forests (also boosted ones); else 0.
    estimator : str or None
        Class of the estimator, where one was saved.
    params : dict
        Its parameters, as the file has them.
    sections : list
        With ``name``, ``dtype``, ``count``, ``nbytes``, ``offset``, and ``good``: whether the
        checksum is right.
    """

    kind: str
    version: int
    nbytes: int
    trees: int
    inputs: int
    outputs: int
    rows: int
    estimator: str | None
    params: dict[str, Any]
    sections: list[_native_files.SectionInfo] = field(default_factory=list)

    @property
    def damaged(self) -> list[str]:
        """Names of the sections whose checksum is wrong."""
        return [s.name for s in self.sections if not s.good]

    def __str__(self) -> str:
        lines = [f"{self.kind}, format {self.version}, {self.nbytes:,} bytes"]
        if self.kind == "forest":
            lines.append(
                f"{self.trees} trees, {self.inputs} inputs, {self.outputs} outputs, "
                f"{self.rows} training rows"
            )
        if self.estimator is not None:
            lines.append(f"saved by {self.estimator}")
        lines.append(f"{'section':<28} {'type':<8} {'numbers':>14} {'bytes':>16}  checksum")
        lines += [
            f"{s.name:<28} {s.dtype:<8} {s.count:>14,} {s.nbytes:>16,}  "
            + ("right" if s.good else "WRONG")
            for s in self.sections
        ]
        return "\n".join(lines)


def inspect_model(path) -> ModelInfo:
    """Say what is in a model file, without loading it: sizes, sections, state of checksums.

    Parameters
    ----------
    path : path-like

    Returns
    -------
    info : ModelInfo
        ``print`` it for a table.
    """
    file = _native_files.inspect_file(path)
    content: dict[str, Any] = {}
    names: list[str] = []
    for section in file.sections:
        if section.name in ("note", "names"):
            with open(path, "rb") as f:
                f.seek(section.offset)
                raw = f.read(section.nbytes)
            if section.name == "names":
                names = raw.decode(errors="replace").split("\0")
                continue
            try:
                content = json.loads(raw)
            except (ValueError, RecursionError):
                continue
    for section, name in zip((s for s in file.sections if s.name == "array"), names, strict=False):
        section.name = name
    content = content if isinstance(content, dict) else {}
    return ModelInfo(
        _KINDS.get(file.kind, str(file.kind)),
        *(file.version, file.nbytes, file.trees, file.inputs, file.outputs, file.rows),
        content.get("estimator"),
        content.get("params", {}),
        file.sections,
    )
