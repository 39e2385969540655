"""How bytes become text and numbers: wide characters, compression, byte orders, and what is no text."""

import gzip

import numpy as np
import pytest
from support.command_tables import are_parted, groups, lines, positive_groups


@pytest.mark.parametrize("encoding", ["utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("more", ["", "é", "中文", "😁"])
@pytest.mark.parametrize("given", [(), ("--encoding",)])
def test_text_of_wide_characters_needs_no_mark(run, table, encoding, more, given):
    file = table(f"a,b,c{more}", *(f"{a},{b},{more}" for a, b in positive_groups(60, digits=3)), encoding=encoding)
    given = [*given, encoding[:6]] if given else []
    assert are_parted(run("fit", file, "-k", 2, "--json", *given).document["labels"])


def test_an_encoding_in_which_no_part_of_a_text_can_be_read_is_refused(run, table):
    file = table("a,b", *(f"{a},-{b}" for a, b in positive_groups(60, digits=3)))
    assert "no encoding is called 'punycode'" in run("fit", file, "-k", 2, "--encoding", "punycode", code=2).output


@pytest.mark.parametrize("data", [bytes(4000), np.arange(1000.0).tobytes(), np.arange(1000).tobytes()])
def test_bytes_with_many_zeros_are_no_text(run, tmp_path, data):
    (tmp_path / "table.csv").write_bytes(data)
    assert "neither text nor" in run("fit", tmp_path / "table.csv", "-k", 2, code=1).output


def test_a_compressed_file_is_read_as_text(run, table, tmp_path):
    file = table("a,b", *lines(groups(60)))
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert "Read as text compressed by gzip." in run("fit", tmp_path / "t.csv.gz", "-k", 2).stderr


def test_fields_of_the_other_byte_order_are_read(run, tmp_path):
    X = groups()
    np.save(tmp_path / "t.npy", np.rec.fromarrays([X[:, 0].astype(">f8"), X[:, 1].astype(">f4")], names="a,b"))
    assert are_parted(run("fit", tmp_path / "t.npy", "-k", 2, "--json").document["labels"])
