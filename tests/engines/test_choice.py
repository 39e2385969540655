import subprocess
import sys

import numpy as np
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


THE_SAME_FIT = """
import sys
if "without" in sys.argv:
    sys.modules["tkmeans.engines.native._native"] = None
import warnings
warnings.simplefilter("ignore")
from tkmeans import TKMeans, engines
from tkmeans.datasets import make_contaminated
X, y = make_contaminated(n_clusters=6, outlier_fraction=0.1, random_state=0)
model = TKMeans(6, random_state=0).fit(X)
print(engines.select("auto").NAME)
print(*model.cluster_centers_.ravel(), model.scale_, model.dof_, model.cluster_weights_.max())
print(*model.labels_, *model.outliers(X))
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


@pytest.mark.thorough
def test_a_fit_without_the_native_extension_finds_the_same_clusters_and_outliers():
    runs = [
        subprocess.run([sys.executable, "-c", THE_SAME_FIT, option], capture_output=True, text=True, check=True)
        for option in ("with", "without")
    ]
    (engine, numbers, labels), (slow_engine, slow_numbers, slow_labels) = (run.stdout.splitlines() for run in runs)
    assert (engine, slow_engine) == ("native", "reference")
    np.testing.assert_allclose(*(np.array(line.split(), float) for line in (numbers, slow_numbers)), rtol=1e-6)
    assert labels == slow_labels
