import subprocess
import sys

import pytest

from tkmeans import engines
from tkmeans.engines import reference

WITHOUT_THE_EXTENSION = """
import sys, warnings
sys.modules["tkmeans.engines.native._native"] = None
from tkmeans import TKMeans, engines
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for _ in range(3):
        print(TKMeans(1).fit([[0.0], [1.0]]).cluster_centers_.shape)
print(engines.select("auto").NAME, len(caught), caught[0].message)
try:
    TKMeans(1, engine="native").fit([[0.0], [1.0]])
except ImportError as error:
    print(error)
"""


def test_the_engine_auto_is_the_native_one():
    assert engines.select("auto").NAME == "native"
    assert engines.select("native").NAME == "native"
    assert engines.select("reference") is reference


@pytest.mark.parametrize(
    "words", ["reference 1 tkmeans runs on its reference engine", 'engine="native" is not built here']
)
def test_without_the_native_extension_the_reference_engine_is_used_with_one_warning(words):
    out = subprocess.run([sys.executable, "-c", WITHOUT_THE_EXTENSION], capture_output=True, text=True, check=True)
    assert words in out.stdout
