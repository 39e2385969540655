"""The skeleton of a new model in the documentation runs, and agrees with its oracles."""

import runpy
from pathlib import Path

SKELETON = Path(__file__).resolve().parents[1] / "docs" / "development" / "new_model.py"


def test_the_skeleton_of_a_new_model_agrees_with_scikit_learn_and_scipy():
    runpy.run_path(str(SKELETON), run_name="__main__")
