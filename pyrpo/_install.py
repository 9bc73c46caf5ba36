"""Where the package keeps what C needs: the header, the shared library, the pkg-config file."""

from __future__ import annotations

import sys
from importlib.resources import files
from pathlib import Path

_LIBRARY = {"darwin": "librpo.dylib", "win32": "rpo.dll"}.get(sys.platform, "librpo.so")


def _folder_of(*parts: str) -> str:
    """Folder of a file of the package, wherever an editable installation has put it."""
    path = files("pyrpo")
    for part in parts:
        path = path / part
    path = Path(str(path))
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: pyrpo is not installed whole")
    return str(path.parent)


def get_include() -> str:
    """Return the folder of ``rpo.h``, the header of the C library.

    Returns
    -------
    path : str
    """
    return _folder_of("include", "rpo.h")


def get_lib_dir() -> str:
    """Return the folder of the shared library that C programs link to.

    It is the library that the package itself is built of, found by the linker as ``-lrpo``.

    Returns
    -------
    path : str
    """
    return _folder_of("lib", _LIBRARY)


def get_pkgconfig_dir() -> str:
    """Return the folder of ``rpo.pc``, for ``PKG_CONFIG_PATH``."""
    return _folder_of("lib", "pkgconfig", "rpo.pc")


def cflags() -> list[str]:
    """Compiler flags."""
    return [f"-I{get_include()}"]


def libs() -> list[str]:
    """Linker flags, with the folder in which programs find the library when they run."""
    folder = get_lib_dir()
    return [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lrpo"]
