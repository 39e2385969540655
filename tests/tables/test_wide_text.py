"""Text with very many columns or very long cells, and what is refused with the cell or the sign that is wrong."""

import numpy as np
import pytest
from support.table_files import written

from tkmeans.tables import Reading, TableError, choose, read_table


@pytest.mark.thorough
def test_a_table_with_a_hundred_thousand_columns_is_read(tmp_path):
    names = ",".join(f"column_{j}" for j in range(100_000))
    table = read_table(written(tmp_path / "wide.csv", f"{names}\n" + ("1.5," * 99_999 + "2.5\n") * 2))
    assert np.concatenate([*table.batches(table.names[-2:], 10)]).tolist() == [[1.5, 2.5]] * 2


def test_a_cell_too_long_to_be_one_is_said_to_be_so(tmp_path):
    with pytest.raises(TableError, match="the cell is too long"):
        read_table(written(tmp_path / "long.csv", 'a,b\n1,"' + "y" * 200_000 + '"\n')).load()


def test_a_delimiter_of_two_signs_is_refused(tmp_path):
    with pytest.raises(TableError, match="delimiter='ab' is not one sign"):
        read_table(written(tmp_path / "plain.csv", "a,b\n1,2\n"), Reading(delimiter="ab"))


def test_all_columns_with_words_among_their_numbers_are_named_at_once(tmp_path):
    lines = "".join(f"{i},{i},{i % 7}\n" for i in range(20))
    path = written(tmp_path / "words.csv", f"a,b,c\n1,x,3\n4,5,oops\n{lines}")
    with pytest.raises(TableError, match=r"column 'b'(.|\n)*column 'c'"):
        choose(read_table(path), ["a", "b", "c"])
