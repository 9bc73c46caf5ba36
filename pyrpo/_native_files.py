"""Model files: named arrays, and what a file says of itself. The part of `_native` for keeping."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pyrpo._native_call import address, check, ffi, lib

FOREST, ARRAYS = lib.RPO_MODEL_FOREST, lib.RPO_MODEL_ARRAYS

_TYPES = {
    np.dtype(name): getattr(lib, f"RPO_TYPE_{kind}")
    for name, kind in (
        *(("u1", "U8"), ("u2", "U16"), ("i2", "I16"), ("i4", "I32"), ("i8", "I64")),
        *(("f2", "F16"), ("f4", "F32"), ("f8", "F64")),
    )
}
_DTYPES = {number: dtype for dtype, number in _TYPES.items()}
MOST_DIMS = 4


def can_store(array: np.ndarray) -> bool:
    """Whether an array can be a section of a file."""
    return array.dtype.newbyteorder("=") in _TYPES and array.ndim <= MOST_DIMS


def file_kind(path: str | os.PathLike) -> int:
    """FOREST or ARRAYS; 0 if it is no model file."""
    with open(path, "rb") as file:
        head = file.read(24)
    return int.from_bytes(head[20:24], "little") if head[:8] == b"RPOMODEL" else 0


def save_arrays(path: str | os.PathLike, arrays: dict[str, np.ndarray], note: bytes) -> None:
    """Write arrays and a note to a file (``rpo_arrays_save``)."""
    structs, keep = ffi.new("rpo_named_array[]", len(arrays)), []
    for struct, (name, array) in zip(structs, arrays.items(), strict=True):
        array = np.asarray(array, dtype=array.dtype.newbyteorder("="), order="C")
        text = ffi.new("char[]", name.encode())
        struct.name, struct.type, struct.dims = text, _TYPES[array.dtype], array.ndim
        struct.shape = list(array.shape) + [1] * (MOST_DIMS - array.ndim)
        struct.data = address(array)
        keep += [text, array]
    check(lib.rpo_arrays_save, structs, len(arrays), os.fsencode(path), note, len(note))


def load_arrays(path: str | os.PathLike, *, mmap: bool) -> tuple[dict[str, np.ndarray], bytes]:
    """Read the arrays and the note of a file. Mapped ones are views of the file, not writable."""
    pointer = ffi.new("rpo_arrays **")
    check(lib.rpo_arrays_load, os.fsencode(path), int(mmap), pointer)
    handle = ffi.gc(pointer[0], lib.rpo_arrays_free)
    arrays = {}
    for i in range(lib.rpo_arrays_count(handle)):
        struct = ffi.new("rpo_named_array *")
        check(lib.rpo_arrays_get, handle, i, struct)
        name = ffi.string(struct.name).decode(errors="replace")
        view = _view(struct, handle)
        arrays[name] = view if mmap else view.copy()
    size = ffi.new("int64_t *")
    note = lib.rpo_arrays_note(handle, size)
    return arrays, bytes(ffi.buffer(note, size[0])) if size[0] > 0 else b""


def _view(struct: Any, handle: Any) -> np.ndarray:
    """An array that looks into a file's bytes and keeps them alive."""
    shape, dtype = tuple(struct.shape)[: struct.dims], _DTYPES[struct.type]
    count = int(np.prod(shape, dtype=np.int64))
    if count == 0:
        return np.zeros(shape, dtype=dtype)
    data = ffi.gc(ffi.cast("char *", struct.data), lambda _, kept=handle: None)
    array = np.frombuffer(ffi.buffer(data, count * dtype.itemsize), dtype=dtype).reshape(shape)
    array.flags.writeable = False
    return array


@dataclass
class SectionInfo:
    """One section of a file."""

    name: str
    id: int
    dtype: str
    offset: int
    count: int
    good: bool  # its checksum is right

    @property
    def nbytes(self) -> int:
        """Its length."""
        return self.count * np.dtype(self.dtype).itemsize


@dataclass
class FileInfo:
    """Header and table of sections of a file (``rpo_model_inspect``)."""

    kind: int
    version: int
    nbytes: int
    trees: int
    inputs: int
    outputs: int
    rows: int
    sections: list[SectionInfo] = field(default_factory=list)


def inspect_file(path: str | os.PathLike) -> FileInfo:
    """Look into a file; checks all checksums."""
    info, none = ffi.new("rpo_model_info *"), ffi.NULL
    check(lib.rpo_model_inspect, os.fsencode(path), info, none, 0)
    rows = ffi.new("rpo_section_info[]", max(1, info.sections))
    check(lib.rpo_model_inspect, os.fsencode(path), info, rows, info.sections)
    sections = [
        SectionInfo(
            ffi.string(s.name).decode(), s.id, _DTYPES[s.type].name, s.offset, s.count, bool(s.good)
        )
        for s in rows[0 : info.sections]
    ]
    numbers = (info.trees, info.inputs, info.outputs, info.rows)
    return FileInfo(info.kind, info.version, info.bytes, *numbers, sections)
