"""Writes the C source of the binding from the public header: ``_build_ffi.py rpo.h out.c``."""

import re
import sys
from pathlib import Path

from cffi import FFI

# What the header cannot declare: Python's side of the callbacks.
CALLBACKS = """
extern "Python" int32_t pyrpo_progress(void *user, int64_t done, int64_t total);
extern "Python" int32_t pyrpo_loss(void *user, int64_t count, const int32_t *row, const float *f,
                                   float *g, float *h);
"""


def declarations(header: str) -> str:
    """Strip what cffi does not read: comments, the preprocessor, the C++ guard, RPO_API."""
    text = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    text = re.sub(r"#ifdef __cplusplus.*?#endif", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    return text.replace("RPO_API ", "")


def main(header: str, out: str) -> None:
    """Write the source."""
    ffi = FFI()
    ffi.cdef(declarations(Path(header).read_text()) + CALLBACKS)
    ffi.set_source("pyrpo._rpo", '#include "rpo.h"', py_limited_api=True)
    ffi.emit_c_code(out)


if __name__ == "__main__":
    main(*sys.argv[1:])
