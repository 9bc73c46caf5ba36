"""The C library inside the package: found, complete, usable by a C compiler."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pyrpo
from pyrpo import __main__ as command
from pyrpo import _install, _native

ROOT = Path(__file__).parents[2]
FOREST = ROOT / "examples" / "c" / "forest.c"
HEADER = Path(pyrpo.get_include()) / "rpo.h"
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def test_files_are_there():
    assert HEADER.is_file()
    assert list(Path(pyrpo.get_lib_dir()).glob("*rpo*"))
    assert (Path(_install.get_pkgconfig_dir()) / "rpo.pc").is_file()


def test_a_file_that_is_missing_is_told():
    with pytest.raises(FileNotFoundError, match=r"nothing\.h"):
        _install._folder_of("include", "nothing.h")


def config(folder, *options):
    """Printed in a folder that has no sources for Python to take the package from."""
    words = [sys.executable, "-m", "pyrpo", "config", *options]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout.strip()


def build_and_run(tmp_path, flags, source=FOREST):
    if COMPILER is None or not source.exists():
        pytest.skip("no C compiler, or no examples, here")
    program = tmp_path / "program"
    subprocess.run([COMPILER, str(source), *flags, "-o", str(program)], check=True)
    words = [str(program), str(tmp_path / "forest.rpo")]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    if source == FOREST:
        assert printed.startswith("50 trees")
        assert (tmp_path / "forest.rpo").exists()
    return printed


def test_program_by_config(tmp_path):
    build_and_run(tmp_path, shlex.split(config(tmp_path, "--cflags", "--libs")))


def test_program_by_pkg_config(tmp_path):
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config here")
    words = ["pkg-config", "--cflags", "--libs", "rpo"]
    found = subprocess.run(
        words,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PKG_CONFIG_PATH": config(tmp_path, "--pkgconfigdir")},
    )
    build_and_run(tmp_path, shlex.split(found.stdout))


def test_first_program_of_the_page(tmp_path):
    text = (ROOT / "docs" / "c.md").read_text(encoding="utf-8")
    source = tmp_path / "first.c"
    source.write_text(re.search(r"```c\n(.*?)```", text, re.DOTALL).group(1))
    printed = build_and_run(tmp_path, shlex.split(config(tmp_path, "--cflags", "--libs")), source)
    expected = ["0.00 1.00"] * 2 + ["1.00 1.00"] * 2 + ["0.00 0.00", "1.00 0.00"]
    assert printed.splitlines() == expected


def test_links_of_the_page_lead_somewhere():
    text = (ROOT / "docs" / "c.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / "docs" / link).exists()] == []


def test_commands(capsys):
    assert command.main([]) == 0
    assert "config" in capsys.readouterr().out
    assert command.main(["info"]) == 0
    assert f"version: {pyrpo.__version__}" in capsys.readouterr().out
    assert command.main(["config", "--version"]) == 0
    assert capsys.readouterr().out.strip() == pyrpo.__version__
    assert command.main(["config"]) == 2
    assert "--cflags" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["nonsense"])


def header_options():
    """Name -> default, as the comments of the header tell."""
    found = re.findall(
        r"/\*(?:(?!\*/).)*?Default (\S+?)\. \*/\s*RPO_OPT_(\w+) = (\d+)",
        HEADER.read_text(),
        re.DOTALL,
    )
    return {(int(number), name.lower()): float(default) for default, name, number in found}


def table_options():
    ffi, lib = _native.ffi, _native.lib
    found = {}
    number, name, default = ffi.new("int32_t *"), ffi.new("char **"), ffi.new("double *")
    none = [ffi.NULL] * 4
    while lib.rpo_option_info(len(found), number, name, default, *none) == lib.RPO_OK:
        found[number[0], ffi.string(name[0]).decode()] = default[0]
    return found


def test_header_tells_the_defaults():
    assert header_options() == table_options()


def test_every_function_of_the_header_has_a_comment():
    text = HEADER.read_text()
    bare = []
    for match in re.finditer(r"^RPO_API [^;]*?(\w+)\(", text, re.MULTILINE):
        before = text[: match.start()].rstrip()
        # A comment, or a function that shares one.
        if not before.endswith(("*/", ";")):
            bare.append(match.group(1))
    assert bare == []


def test_inspect(tmp_path, capsys):
    file = tmp_path / "model.rpo"
    X = [[0.0], [1.0], [2.0], [3.0]]
    pyrpo.RandomForestRegressor(2, random_state=0).fit(X, [0.0, 1.0, 2.0, 3.0]).save(file)
    assert command.main(["inspect", str(file)]) == 0
    assert "2 trees" in capsys.readouterr().out
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    assert command.main(["inspect", str(file)]) == 1
    assert "WRONG" in capsys.readouterr().out
    file.write_bytes(b"nothing")
    assert command.main(["inspect", str(file)]) == 1
    assert "not a model" in capsys.readouterr().err
