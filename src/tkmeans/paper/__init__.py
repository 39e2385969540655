"""The paper's experiments: what was published, what the released code does, what is right."""

from importlib.resources import files


def text_of(name: str) -> str:
    """A file of text that lies beside this one."""
    return files("tkmeans.paper").joinpath(name).read_text(encoding="utf-8")
