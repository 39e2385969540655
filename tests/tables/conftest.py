"""What tests of tables share."""

import pytest


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "folder"
