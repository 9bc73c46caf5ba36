"""The examples of README.md do what they say."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def block(language):
    """First code block of a language."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.search(rf"```{language}\n(.*?)```", text, re.DOTALL).group(1)


def test_python_example(capsys):
    code = block("python")
    assert len([line for line in code.splitlines() if line]) <= 10
    names = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["labels"].shape == names["scores"].shape == (500, 5)
    assert names["p"].shape == (500, 1000)
    # Frequencies alone rank with a precision of 0.12.
    assert float(capsys.readouterr().out) > 0.3


def test_c_example_is_the_one_that_is_run():
    example = ROOT / "examples" / "c" / "forest.c"
    if not example.exists():
        pytest.skip("examples are not here")
    missing = [line for line in block("c").splitlines() if line not in example.read_text()]
    assert missing == []


def test_links_lead_somewhere():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (ROOT / link).exists()] == []
