"""The skeletons of a new model and a new shape in the documentation pass their own tests, wherever they are copied."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SKELETONS = sorted((Path(__file__).resolve().parents[1] / "docs" / "development").glob("new_*.py"))


def test_there_are_skeletons_of_a_model_and_of_a_shape():
    assert [skeleton.stem for skeleton in SKELETONS] == ["new_model", "new_shape"]


@pytest.mark.parametrize("skeleton", SKELETONS, ids=lambda path: path.stem)
def test_a_copy_of_a_skeleton_passes_its_two_tests(skeleton, tmp_path):
    copy = shutil.copy(skeleton, tmp_path / "my_own.py")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", copy],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "2 passed" in ran.stdout, ran.stdout + ran.stderr
