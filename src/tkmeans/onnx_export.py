"""Fitted round clusters as an ONNX model, for programs without Python."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tkmeans import __version__
from tkmeans.docstrings import documented
from tkmeans.fitted import Clusters
from tkmeans.sources.base import nearest_to_zero
from tkmeans.stats import Params
from tkmeans.tables.file_content import imported

OPSET, IR_VERSION = 18, 9  # of 2022: runtimes of today read them

# The graph: of every node the operator, its inputs and its output.
# log tau = log weight - (dof + observed features)/2 log(1 + slope d2), up to a constant of each row.
NODES = (
    "Cast X x, IsNaN x missing, Where missing zero one observed, Sub x origin moved, Where missing zero moved y, "
    "ReduceSumSquare y features y2, MatMul y c products, MatMul observed c2 squares, Sum y2 products squares rough, "
    "Max rough zero d2, Sqrt d2 d, Cast d distances, Mul d2 slope ratio, Add ratio one base, Log base log_base, "
    "MatMul observed halves of_features, Add of_features of_dof exponent, Mul exponent log_base power, "
    "Add power log_weights log_tau, Softmax log_tau tau, Cast tau probabilities, "
    "Gather log_tau order compared, ArgMax compared place, Gather order place labels"
)


@documented(
    "onnx_*", returns="model : onnx.ModelProto\n    For ``onnx.save`` and onnxruntime. Needs the extra ``onnx``."
)
def to_onnx(model: Any) -> Any:
    """Turn a fitted model into an ONNX model of the same answers.

    Its input ``X`` holds rows in single precision, of shape (n_samples, n_features), with NaN for missing values. Its
    outputs are ``labels`` (as of `predict`), ``distances`` (`transform`) and ``probabilities`` (`predict_proba`), the
    latter two in single precision; what is between is computed in double precision.
    """
    onnx = imported("onnx", "to_onnx needs the package onnx: pip install 'tkmeans[onnx]'")
    TensorProto, helper, numpy_helper = onnx.TensorProto, onnx.helper, onnx.numpy_helper
    if isinstance(model, type) or getattr(model, "_family", None) is not Clusters:
        raise TypeError(f"to_onnx takes a fitted TKMeans, FastTKMeans or MiniBatchTKMeans, got {model!r}")
    check_is_fitted(model)
    if hasattr(model, "cell_bounds_"):
        raise ValueError("to_onnx cannot leave out bad cells, as this model does; fit it with bad_cells=False")
    fitted = model._fitted_model
    centers, scale, dof, weights = fitted.params
    centers = np.asarray(centers, np.float64)
    origin, kernel = nearest_to_zero(centers), fitted.model.kernel(Params(centers, scale, dof, np.log(weights)))
    c = centers - origin
    constants = {"origin": origin, "c": -2 * c.T, "c2": (c**2).T, "slope": kernel.slope, "one": 1.0, "zero": 0.0}
    constants |= {"halves": np.full((c.shape[1], 1), -0.5), "of_dof": -dof / 2, "log_weights": np.log(weights)}
    (K, p), single = centers.shape, TensorProto.FLOAT
    options = {"x": {"to": TensorProto.DOUBLE}, "distances": {"to": single}, "probabilities": {"to": single}}
    options |= {"tau": {"axis": 1}, "compared": {"axis": 1}, "place": {"axis": 1, "keepdims": 0}}
    words = map(str.split, NODES.split(", "))
    nodes = [helper.make_node(name, inputs, [output], **options.get(output, {})) for name, *inputs, output in words]
    numbers = [numpy_helper.from_array(np.asarray(value, np.float64), name) for name, value in constants.items()]
    whole = {"features": np.array([1]), "order": fitted.posterior.order}  # the axis; of equals the first, as predict
    numbers += [numpy_helper.from_array(value, name) for name, value in whole.items()]
    info = helper.make_tensor_value_info
    given = [info("labels", TensorProto.INT64, ["n"])]
    given += [info(name, single, ["n", K]) for name in ("distances", "probabilities")]
    graph = helper.make_graph(nodes, type(model).__name__, [info("X", single, ["n", p])], given, numbers)
    made_by = {"producer_name": "tkmeans", "producer_version": __version__, "ir_version": IR_VERSION}
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], **made_by)
    onnx.checker.check_model(made)
    return made
