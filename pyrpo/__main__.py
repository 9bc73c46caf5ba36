"""How C programs link the library, what is installed, what a model file holds."""

from __future__ import annotations

import argparse
import shlex
import sys

from pyrpo import __version__, _install, _native_call, inspect_model


def _config(args: argparse.Namespace) -> int:
    words: list[str] = []
    if args.version:
        words.append(__version__)
    if args.pkgconfigdir:
        words.append(_install.get_pkgconfig_dir())
    if args.cflags:
        words += _install.cflags()
    if args.libs:
        words += _install.libs()
    if not words:
        args.parser.print_help()
        return 2
    print(shlex.join(words))
    return 0


def _info(args: argparse.Namespace) -> int:
    openmp = "with" if _native_call.has_openmp() else "without"
    print(f"version: {__version__}")
    print(f"instruction set: {_native_call.instruction_set()}")
    print(f"threads: {_native_call.threads(-1)} ({openmp} OpenMP)")
    print(f"include: {_install.get_include()}")
    print(f"library: {_install.get_lib_dir()}")
    return 0


def _inspect(args: argparse.Namespace) -> int:
    try:
        info = inspect_model(args.file)
    except OSError as error:
        print(error, file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"{args.file}: {error}", file=sys.stderr)
        return 1
    print(info)
    return 1 if info.damaged else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pyrpo",
        description="pyrpo: what is installed, how C programs link its library, model files.",
    )
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="command")
    config = commands.add_parser("config", help="flags to compile and link C programs by")
    config.add_argument("--cflags", action="store_true", help="flags of the compiler")
    config.add_argument("--libs", action="store_true", help="flags of the linker")
    config.add_argument("--version", action="store_true", help="version of the library")
    config.add_argument("--pkgconfigdir", action="store_true", help="for PKG_CONFIG_PATH")
    config.set_defaults(run=_config, parser=config)
    info = commands.add_parser("info", help="version, instruction set, threads, places")
    info.set_defaults(run=_info)
    inspect = commands.add_parser(
        "inspect", help="what is in a model file, and whether it is whole"
    )
    inspect.add_argument("file")
    inspect.set_defaults(run=_inspect)
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run a command; return the exit status."""
    parser = _parser()
    args = parser.parse_args(argv)
    if args.run is None:
        parser.print_help()
        return 0
    return args.run(args)


if __name__ == "__main__":
    sys.exit(main())
