"""Every public name says what it is, with an example that runs, and stands in the reference."""

import dataclasses
import importlib
import inspect
import re
from pathlib import Path

import pytest

MODULES = ["tkmeans", "tkmeans.baselines", "tkmeans.plots", "tkmeans.metrics", "tkmeans.datasets"]
PUBLIC = [(module, name) for module in MODULES for name in importlib.import_module(module).__all__]
# scikit-learn's own, and two tuples of names: the reference says what they are
ELSEWHERE = {"adjusted_rand_score", "REAL", "SYNTHETIC"}
REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "api" / "index.rst"


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda word: word)
def test_every_public_name_has_a_docstring_with_an_example(module, name):
    if name in ELSEWHERE:
        pytest.skip("not a class or function of ours")
    thing = getattr(importlib.import_module(module), name)
    assert ">>>" in inspect.getdoc(thing)


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda word: word)
def test_every_public_name_is_in_the_reference_under_its_module(module, name):
    text = REFERENCE.read_text(encoding="utf-8")
    sections = re.split(r"^\.\. currentmodule:: (\S+)$", text, flags=re.MULTILINE)
    listed = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert re.search(rf"\b{name}\b", listed[module])


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda word: word)
def test_every_public_method_has_a_docstring(module, name):
    thing = getattr(importlib.import_module(module), name)
    if inspect.isclass(thing):
        methods = inspect.getmembers(thing, lambda member: inspect.isfunction(member) or isinstance(member, property))
        assert [method for method, value in methods if method[0] != "_" and not inspect.getdoc(value)] == []


def _sections(thing):
    """The sections of a docstring by their headings."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}\s*$", inspect.getdoc(thing) or "", flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def _described(section):
    """The names that a section describes, alone or several on a line."""
    lines = re.findall(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: :.*)?$", section, flags=re.MULTILINE)
    return {name.strip("* ") for line in lines for name in line.split(",")}


def _callables(thing):
    """A public function; or a class and its public methods, those of scikit-learn apart."""
    if not (inspect.isclass(thing) and issubclass(thing, (Exception, tuple))):  # which take what their base takes
        yield thing
    if inspect.isclass(thing):
        members = (getattr(thing, name) for name in dir(thing) if name[0] != "_")
        functions = (inspect.unwrap(member) for member in members if callable(member) and not inspect.isclass(member))
        yield from (each for each in functions if getattr(each, "__module__", "").startswith("tkmeans"))


@pytest.mark.parametrize(("module", "name"), PUBLIC, ids=lambda word: word)
def test_every_parameter_and_every_returned_value_of_a_public_name_is_described(module, name):
    thing = getattr(importlib.import_module(module), name)
    if name in ELSEWHERE:
        pytest.skip("not a class or function of ours")
    for each in _callables(thing):
        found, signature = _sections(each), inspect.signature(each)
        described = _described(found.get("Parameters", ""))
        if dataclasses.is_dataclass(each):  # a record that we make: what it holds are its attributes
            described |= _described(found.get("Attributes", ""))
        assert [own for own in signature.parameters if own not in {"self", "cls"} | described] == [], each
        if not inspect.isclass(each) and signature.return_annotation not in (None, "None"):
            assert {"Returns", "Yields"} & set(found), each
