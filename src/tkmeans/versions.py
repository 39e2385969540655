"""Versions of the engine and of dependencies, for bug reports (`show_versions`)."""

import platform
from importlib.metadata import PackageNotFoundError, version

from joblib import cpu_count

from tkmeans import engines

_DEPENDENCIES = ("numpy", "scipy", "scikit-learn", "joblib", "pandas", "polars", "pyarrow", "matplotlib")


def show_versions() -> None:
    """Print the engine, its instruction set, the threads at hand and the versions of dependencies.

    Examples
    --------
    >>> import tkmeans
    >>> tkmeans.show_versions()  # doctest: +ELLIPSIS
    tkmeans       ...
    """
    lines = versions()
    width = max(map(len, lines)) + 2
    print("\n".join(f"{name:<{width}}{value}" for name, value in lines.items()))


def versions() -> dict[str, str]:
    """The engine and the versions, by name."""
    engine = engines.select("auto")
    instruction_set = engine.instruction_set() if engine.NAME == "native" else "as NumPy's"
    lines = {"tkmeans": _version("tkmeans"), "engine": f"{engine.NAME} ({instruction_set})"}
    lines |= {"threads": f"up to {cpu_count()} with n_jobs=-1"}
    lines |= {"python": f"{platform.python_version()} ({platform.system()} {platform.machine()})"}
    return lines | {name: _version(name) for name in _DEPENDENCIES}


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
