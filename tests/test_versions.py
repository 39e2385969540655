import re

import numpy
import sklearn

import tkmeans
from tkmeans import engines


def test_show_versions_names_engine_instruction_set_threads_and_dependencies(capsys):
    tkmeans.show_versions()
    said = capsys.readouterr().out
    assert f"engine        {engines.select('auto').NAME} (" in said
    assert re.search(r"threads +up to [1-9]\d* with n_jobs=-1", said)
    assert re.search(rf"numpy +{re.escape(numpy.__version__)}\n", said)
    assert re.search(rf"scikit-learn +{re.escape(sklearn.__version__)}\n", said)
