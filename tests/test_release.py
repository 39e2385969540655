"""What a release needs agrees with itself: versions, changelog, recipe, citation, and the commands of the workflows."""

import json
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = {file.name: yaml.safe_load(file.read_text()) for file in (ROOT / ".github/workflows").glob("*.yml")}
RECIPE = yaml.safe_load((ROOT / "recipe/recipe.yaml").read_text())
# What a workflow may run beside nox and the repository's tools: it installs nox, and makes the release.
PLUMBING = ("python -m pip install nox", "gh release create ")


def tool(*arguments, root=ROOT):
    return subprocess.run([sys.executable, *arguments], cwd=root, capture_output=True, text=True)


def steps():
    for name, workflow in WORKFLOWS.items():
        for job in workflow["jobs"].values():
            for step in job["steps"]:
                yield name, job, step


def test_every_command_of_a_workflow_is_a_session_of_nox_or_a_tool_of_the_repository():
    sessions = set(re.findall(r"(?m)^@nox\.session.*\ndef (\w+)", (ROOT / "noxfile.py").read_text()))
    commands = [(job, step["run"]) for _, job, step in steps() if "run" in step]
    assert len(commands) > 10
    for job, command in commands:
        if command.startswith("nox -s "):
            asked = command.removeprefix("nox -s ")
            asked = job["strategy"]["matrix"]["session"] if asked == "${{ matrix.session }}" else [asked]
            assert set(asked) <= sessions
        elif command.startswith("tools/"):
            assert (ROOT / command.split()[0]).stat().st_mode & 0o111
        else:
            assert command.startswith(PLUMBING)


def test_actions_of_others_are_pinned_to_a_commit_with_the_version_beside_it():
    lines = [line for file in (ROOT / ".github/workflows").glob("*.yml") for line in file.read_text().splitlines()]
    uses = [line for line in lines if "uses:" in line]
    assert uses
    assert [line for line in uses if not re.search(r"uses: [\w-]+/[\w.-]+@[0-9a-f]{40} # v[\d.]+$", line)] == []


def test_every_python_that_the_classifiers_name_is_tested():
    named = {name.rpartition(" ")[2] for name in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", name)}
    assert named == set(WORKFLOWS["tests.yml"]["jobs"]["tests"]["strategy"]["matrix"]["python"])
    assert f">={min(named, key=lambda version: int(version[2:]))}" == PROJECT["requires-python"]


def test_only_a_pushed_tag_publishes_and_only_after_all_wheels_were_tried():
    publish = WORKFLOWS["release.yml"]["jobs"]["publish"]
    assert publish["if"] == "github.event_name == 'push' && github.ref_type == 'tag'"
    assert set(publish["needs"]) == set(WORKFLOWS["release.yml"]["jobs"]) - {"publish", "announce"}
    assert publish["permissions"] == {"id-token": "write"}


def test_the_recipe_needs_what_the_project_needs():
    def spaced(needs):
        return {re.sub(r"(>=)", r" \1", need) for need in needs}

    requirements = RECIPE["requirements"]
    run = spaced(PROJECT["dependencies"] + PROJECT["optional-dependencies"]["cli"])
    assert set(requirements["run"]) == run | {"python " + PROJECT["requires-python"]}
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert spaced(build) <= set(requirements["host"])
    assert RECIPE["about"]["summary"] == PROJECT["description"]
    assert RECIPE["build"]["python"]["entry_points"] == [f"tkmeans = {PROJECT['scripts']['tkmeans']}"]


def test_every_fragment_of_the_changelog_has_a_type_that_the_changelog_knows():
    types = {
        each["directory"] for each in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["towncrier"]["type"]
    }
    for fragment in (ROOT / "changelog.d").glob("*.md"):
        if fragment.name != "README.md":
            assert fragment.name.split(".")[1:] in [[kind, "md"] for kind in types]
            assert fragment.read_text().strip()


def test_the_notes_of_a_release_are_its_section_of_the_changelog():
    changelog = (ROOT / "CHANGELOG.md").read_text()
    notes = tool("tools/release", "notes", "v0.1.0").stdout
    assert notes.startswith("- `TKMeans` and `FastTKMeans`")
    assert notes.strip() == changelog.split("\n## 0.1.0\n")[1].split("\n## ")[0].strip()
    assert tool("tools/release", "notes", "v99.0.0").returncode == 2


@pytest.fixture
def copy(tmp_path):
    """Of the files that a release changes."""
    for name in ("pyproject.toml", "CITATION.cff", "CHANGELOG.md", "recipe/recipe.yaml", "src/tkmeans/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for folder in ("tools", "changelog.d"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "changelog.d" / "+example.fixed.md").write_text("An example is mended.\n")
    return tmp_path


def test_a_release_that_was_prepared_passes_its_check_and_one_that_was_not_fails(copy):
    before = tool("tools/release", "check", "v7.8.9", root=copy)
    assert before.returncode == 1
    assert "pyproject.toml says" in before.stdout
    assert tool("tools/release", "prepare", "7.8.9", root=copy).returncode == 0
    after = tool("tools/release", "check", "v7.8.9", root=copy)
    assert (after.returncode, after.stdout) == (0, "v7.8.9 is ready\n")
    notes = tool("tools/release", "notes", "v7.8.9", root=copy).stdout
    assert "- An example is mended." in notes
    assert tool("tools/release", "notes", "v0.1.0", root=copy).stdout == tool("tools/release", "notes", "0.1.0").stdout
    assert tool("tools/release", "check", "v7.8.8", root=copy).returncode == 1


def test_all_files_name_one_version():
    versions = {
        PROJECT["version"],
        yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"],
        RECIPE["context"]["version"],
        re.search(r'__version__ = "(.*)"', (ROOT / "src/tkmeans/__init__.py").read_text())[1],
    }
    assert len(versions) == 1


# ---- the site of the documentation ---------------------------------------------------------


def site_of(tmp_path, *versions, address="/"):
    """What tools/site lists of folders with built documentation."""
    for version in versions:
        (tmp_path / version).mkdir()
        (tmp_path / version / "objects.inv").touch()
    (tmp_path / "drafts").mkdir()  # is no version
    listing = runpy.run_path(str(ROOT / "tools/site"))
    listing["write_lists"](tmp_path, address)
    return json.loads((tmp_path / "versions.json").read_text())


def test_the_menu_of_versions_has_the_newest_first_and_prefers_the_newest_release(tmp_path):
    found = site_of(tmp_path, "0.9.0", "0.10.0", "1.0.0rc1", "0.2.0", address="https://example.org/")
    assert [entry["version"] for entry in found] == ["1.0.0rc1", "0.10.0", "0.9.0", "0.2.0"]
    assert [entry["version"] for entry in found if entry["preferred"]] == ["0.10.0"]
    assert found[1]["url"] == "https://example.org/0.10.0/"
    assert 'url=0.10.0/index.html"' in (tmp_path / "index.html").read_text()


def test_a_release_is_newer_than_its_candidates(tmp_path):
    assert [entry["version"] for entry in site_of(tmp_path, "1.0.0rc2", "1.0.0", "1.0.0rc1")] == [
        "1.0.0",
        "1.0.0rc2",
        "1.0.0rc1",
    ]
