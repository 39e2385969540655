"""What the docstrings of many public functions have in common, written once."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_SECTIONS = ("Parameters", "Attributes", "Returns", "Raises", "Warns", "See Also", "Notes", "References", "Examples")
_BETWEEN = re.compile(rf"\n\n(?=(?:{'|'.join(_SECTIONS)})\n---)")
# Entries by a name of their own, which stands before them with an equals sign, or else by their first word.
_FOUND = re.findall(r"(?m)^(?:(\w+) = )?((\w+).*(?:\n .*)*)", Path(__file__).with_suffix(".txt").read_text("utf-8"))
_SHARED = {own or first: entry for own, entry, first in _FOUND}


def documented(*shared: str, returns: str = "") -> Callable[[F], F]:
    """Add to a docstring what shared parameters and attributes are, after its own ones, and what is returned."""
    attributes = [_SHARED[name] for name in shared if name.endswith("_")]
    parameters = [_SHARED[name] for name in shared if not name.endswith("_")]

    def complete(function: F) -> F:
        summary, *found = _BETWEEN.split(inspect.cleandoc(function.__doc__ or ""))
        sections = {section.partition("\n")[0]: section for section in found}
        for name, lines in {"Parameters": parameters, "Attributes": attributes, "Returns": [returns]}.items():
            if any(lines):
                sections[name] = "\n".join([sections.get(name, f"{name}\n{'-' * len(name)}"), *lines])
        function.__doc__ = "\n\n".join([summary, *(sections[name] for name in _SECTIONS if name in sections)])
        return function

    return complete
