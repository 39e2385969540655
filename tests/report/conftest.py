from html.parser import HTMLParser

import pytest

from tkmeans import write_report


class Page(HTMLParser):
    """A page as a parser sees it: elements, their text, and the text of all."""

    def __init__(self, markup):
        super().__init__()
        self.elements, self.open, self.words = [], [], []
        self.feed(markup)

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", **dict(attrs)}
        self.elements.append(element)
        if tag not in ("meta", "link", "br"):
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open[-1]["tag"] == tag, f"{self.open[-1]} is closed by {tag}"
        self.open.pop()

    def handle_startendtag(self, tag, attrs):
        self.elements.append({"tag": tag, "text": "", **dict(attrs)})

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data
        if not self.open or self.open[-1]["tag"] not in ("script", "style"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split()).replace("\u202f", "").replace("\u00a0", " ")

    def all(self, tag, **attributes):
        """Elements of a kind with these attributes (class_ for class)."""
        wanted = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items()}
        return [e for e in self.elements if e["tag"] == tag and all(e.get(k) == v for k, v in wanted.items())]


@pytest.fixture
def page(tmp_path):
    """A function that writes a report and reads it back."""

    def read(*args, **options):
        return Page(write_report(tmp_path / "report.html", *args, **options).read_text(encoding="utf-8"))

    return read
