"""The parts of public docstrings that stand in docstrings.txt: what many have in common, once, and long examples."""

import fnmatch
import inspect
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Warns", "See Also", "Notes", "References", "Examples")
_BETWEEN = re.compile(rf"\n\n(?=(?:{'|'.join(_SECTIONS)})\n---)")
_ENTRIES = re.split(r"\n(?=\S)", Path(__file__).with_suffix(".txt").read_text(encoding="utf-8").rstrip())
_EXAMPLES = {name: text for each in _ENTRIES for name, text in re.findall(r"^\[example (\S+)\]\n(.*)", each, re.DOTALL)}
_NAMED = (re.findall(r"^(?:\[(\w+)\] )?(\**(\w+).*)", entry, re.DOTALL) for entry in _ENTRIES)
_SHARED = {name or first: entry for found in _NAMED for name, entry, first in found}  # by name, in brackets or first


def documented(*shared: str, returns: str = "") -> Callable[[F], F]:
    """Add to a docstring what shared parameters (a final * stands for any ending) are, and what is returned."""
    names = [each for name in shared for each in (fnmatch.filter(_SHARED, name) if "*" in name else [name])]
    attributes = [_SHARED[name] for name in names if name.endswith("_")]
    parameters = [_SHARED[name] for name in names if not name.endswith("_")]
    added = {"Parameters": parameters, "Attributes": attributes, "Returns": [_SHARED.get(returns, returns)]}

    def complete(function: F) -> F:
        summary, *found = _BETWEEN.split(inspect.cleandoc(function.__doc__ or ""))
        sections = {section.partition("\n")[0]: section for section in found}
        for name, lines in added.items():
            if any(lines):
                sections[name] = "\n".join([sections.get(name, f"{name}\n{'-' * len(name)}"), *lines])
        if example := _EXAMPLES.get(function.__qualname__):
            sections["Examples"] = f"Examples\n--------\n{textwrap.dedent(example)}"
        function.__doc__ = "\n\n".join([summary, *(sections[name] for name in _SECTIONS if name in sections)])
        return function

    return complete
