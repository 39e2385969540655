"""The guides and the pages beside them say what is so: their code runs, and prints what they say it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
GUIDES = sorted([*DOCS.glob("*.md"), *DOCS.glob("guides/*.md")])
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\s*^```text\n(.*?)^```\n)?", flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_the_code_of_every_guide_runs_and_prints_what_the_guide_shows(guide, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # for the files it writes
    text, names = guide.read_text(encoding="utf-8"), {}
    blocks = BLOCK.findall(text)
    assert len(blocks) == text.count("```python")
    for code, shown in blocks:
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, str(guide), "exec"), names)
        assert printed.getvalue() == shown


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_page_that_a_guide_links_to_exists(guide):
    links = re.findall(r"\]\(([^)#]+)\)", guide.read_text(encoding="utf-8"))
    assert not [link for link in links if "://" not in link and not (guide.parent / link).exists()]
