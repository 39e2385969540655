"""Categories that are encoded: names and values with other signs in them, and values that a model does not know."""

import numpy as np
import pytest
from support.command_tables import column, groups, lines, positive_groups, said

pytestmark = pytest.mark.usefixtures("own_folder")

PEOPLE = ("name,x,y,w,id", "ann,1,2,1,10", "bob,3,5,2,20", "cy,4,9,1,15", "di,5,1,2,17")
DAYS = ("2020-01-01", "2020-01-02", "2020-05-01")
SAME = {
    "year": (["2007", "2008", "2009"], ["2007.0", "2008.0", "2009.00"], np.array([2007.0, 2008.0, 2009.0])),
    "f": (["true", "false", "true"], ["True", "False", "TRUE"], np.array([True, False, True])),
    "day": ([*DAYS], [f"{day} 00:00" for day in DAYS], np.array(DAYS, "M8[D]")),
}


def test_a_category_may_have_an_equals_sign_in_its_name(run, table):
    rows = [f"{row},q,{'xyz'[i % 3]}" for i, row in enumerate(lines(groups()))]
    for names in ("a,b,s,s=t", "a,b,r,s=t"):
        found = run("fit", table(names, *rows), "-k", 2, "--encode", "s=t", "--json").document
        assert found["columns"] == ["a", "b", "s=t=x", "s=t=y", "s=t=z"]
        for center in (cluster["center"] for cluster in found["clusters"]):
            assert sum(center[f"s=t={value}"] for value in "xyz") == pytest.approx(1)


def test_a_category_that_could_be_of_two_columns_is_refused(run, table):
    rows = [f"{row},{['u', 't=x', 'v'][i % 3]},{'xyz'[i % 3]}" for i, row in enumerate(lines(groups()))]
    assert "'s=t=x' could be" in run("fit", table("a,b,s,s=t", *rows), "-k", 2, "--encode", "s", code=1).stderr
    clash = table("a,b,s,s=u", *(f"{row},{'tu'[i % 2]},{i % 3}" for i, row in enumerate(lines(groups()))))
    assert "'s=u' could be" in run("fit", clash, "-k", 2, "--encode", "s", code=1).stderr


def test_a_category_that_is_encoded_and_named_counts_once(run, table):
    words = ("fit", table(*PEOPLE), "-k", 1, "--columns", "x,name=bob", "--encode", "name", "--json")
    assert sorted(run(*words).document["columns"]) == ["name=ann", "name=bob", "name=cy", "name=di", "x"]


@pytest.mark.parametrize("name", SAME)
def test_a_model_knows_the_values_of_a_category_however_a_file_writes_them(run, table, tmp_path, name):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X, model, out = groups(), tmp_path / "m.json", tmp_path / "o.csv"
    first, second, typed = SAME[name]
    file, other = (
        table(f"a,b,{name}", *(f"{row},{words[i % 3]}" for i, row in enumerate(lines(X))), name=f"{words[0]}.csv")
        for words in (first, second)
    )
    stored = {"a": np.round(X[:, 0], 3), "b": np.round(X[:, 1], 3), name: typed[np.arange(60) % 3]}
    pq.write_table(pa.table(stored), tmp_path / "t.parquet")
    document = run("fit", file, "-k", 3, "--encode", name, "--model", model, "--out", out, "--json").document
    expected, sizes = column(out, "outlier_pvalue"), [cluster["rows"] for cluster in document["clusters"]]
    for each in (other, tmp_path / "t.parquet"):
        assert "no row has" not in run("predict", model, each, "--out", out).stderr
        assert column(out, "outlier_pvalue") == expected
        again = run("fit", each, "-k", 3, "--encode", name, "--json").document
        assert [cluster["rows"] for cluster in again["clusters"]] == sizes


def test_values_of_a_category_that_no_row_has_are_named_in_predict(run, table, tmp_path):
    file = table("a,b,s", *(f"{row},{'uvw'[i % 3]}" for i, row in enumerate(lines(groups()))))
    run("fit", file, "-k", 2, "--encode", "s", "--model", tmp_path / "m.json")
    other = table("a,b,s", *(f"{row},{'uxy'[i % 3]}" for i, row in enumerate(lines(groups()))), name="other.csv")
    assert "No row has s=v, s=w." in run("predict", tmp_path / "m.json", other).stderr


def test_values_that_the_model_does_not_know_are_named(run, table):
    rows = [f"{a},{b},{'SML'[i % 3]},{'xy'[i % 2]}" for i, (a, b) in enumerate(positive_groups())]
    run("fit", table("a,b,size,of", *rows), "-k", 2, "--encode", "size,of", "--model", "m.json")
    assert "does not know" not in said(run("predict", "m.json", "table.csv"))
    file = table("a,b,size,of", *rows, "30,30,XL,x", "30,30,XXL,y", "30,30,,x", name="new.csv")
    assert "The model does not know size=XL, size=XXL." in said(run("predict", "m.json", file))


def test_sentences_about_encoded_numbers_name_their_column(run, table):
    rows = [f"{row},{2 + i % 2}" for i, row in enumerate(lines(groups(60)))]
    rows += [f"{row},4" for row in lines(groups(30) - 40)]
    found = run("fit", table("a,b,grade", *rows), "-k", 3, "--encode", "grade", "--json").document
    assert any("% grade 4" in each["sentence"] for each in found["clusters"])
    assert all("% 3" not in each["sentence"] and "% 4" not in each["sentence"] for each in found["clusters"])


def test_flags_and_labels_describe_clusters_and_make_neither_clusters_nor_outliers(run, table):
    rng = np.random.default_rng(7)
    y = np.repeat([0, 1, 2], 50)
    a, b = (np.array(centers)[y] + rng.normal(size=150) for centers in ([0, 10, 20], [0, 9, 1]))
    flags = np.where(y == 1, 1, rng.random(150) < 0.3).astype(int)
    columns = np.char.mod("%.3f", a), np.char.mod("%.3f", b), flags.astype(str), (y + 1).astype(str)
    rows = map(",".join, zip(*columns, strict=True))
    document = run("fit", table("a,b,member,class", *rows), "-k", 3, "--json").document
    assert document["columns"] == ["a", "b"]
    assert not any(cluster["outliers"] for cluster in document["clusters"])
    assert any("100 % member 1" in cluster["sentence"] for cluster in document["clusters"])
    assert all("100 % class" in cluster["sentence"] for cluster in document["clusters"])
