"""Prose and code that people read: plain words, and code that fits a page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
UNWANTED = re.compile(
    r"\b(accus(e|es|ed|ing)|verdicts?|say|says|said|saying|told|habits?|crumbs?)\b|end of the world", re.IGNORECASE
)
TEXT = {".py", ".pyi", ".md", ".rst", ".html", ".js", ".css", ".hpp", ".cpp"}
ELSEWHERE = ("docs/_build", "docs/gallery", "docs/api/generated")
WIDEST = 79


def written(*folders):
    """Files that people read, by their path within the repository."""
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*")) if path.suffix in TEXT]
    names = {path.relative_to(ROOT).as_posix(): path for path in found}
    return {name: path for name, path in names.items() if not name.startswith(ELSEWHERE)}


def lines_of_code(text):
    """The numbers and lines within the fenced blocks of a page."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line.lstrip().startswith("```"):
            inside = not inside
        elif inside:
            yield number, line


def test_unwanted_words_appear_nowhere_in_the_source_the_documentation_and_readme():
    files = written("src", "docs") | {name: ROOT / name for name in ("README.md", "CHANGELOG.md")}
    assert len(files) > 150
    found = [
        f"{name}:{number}: {word[0]}"
        for name, path in files.items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for word in UNWANTED.finditer(line)
    ]
    assert not found


@pytest.mark.parametrize("name", ["README.md", *(name for name in written("docs") if name.endswith(".md"))])
def test_code_in_the_documentation_is_at_most_79_columns_wide(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    assert not [(number, line) for number, line in lines_of_code(text) if len(line) > WIDEST]


def test_the_checks_of_prose_find_what_they_look_for():
    assert UNWANTED.search("A warning says so.")
    assert UNWANTED.search("Rows at the END of the world")
    assert not UNWANTED.search("essay, inhabit, foretold")
    assert [number for number, _ in lines_of_code("a\n```python\nb\n```\nc\n")] == [3]
