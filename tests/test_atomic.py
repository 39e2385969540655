"""Files that are there whole or not at all."""

import os
import stat
import sys

import pytest

from tkmeans.atomic import replacing


def test_a_new_file_replaces_the_old_one_only_when_it_is_complete(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    with replacing(path) as file:
        file.write(b"new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_while_replacing_a_file_leaves_no_file(tmp_path, fault):
    def fail():
        with replacing(tmp_path / "file") as file:
            file.write(b"half")
            raise fault

    with pytest.raises(fault):
        fail()
    assert not any(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="permissions and links of POSIX")
def test_replacing_a_file_keeps_permissions_and_links(tmp_path):
    path, link = tmp_path / "file", tmp_path / "link"
    with replacing(path) as file:
        file.write(b"new")
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask
    path.chmod(0o640)
    link.symlink_to(path)
    with replacing(link) as file:
        file.write(b"newer")
    assert link.is_symlink()
    assert path.read_text() == "newer"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="no devices here")
def test_replacing_a_device_writes_to_it():
    with replacing("/dev/null") as file:
        file.write(b"gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
