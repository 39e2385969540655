"""Pictures of what was found, in the habit of scikit-learn's Displays; they need matplotlib (extra `plots`).

Nothing here knows our estimators: whatever has centres, labels or weights can be drawn.
"""

from tkmeans.plots.clusters import ClustersDisplay
from tkmeans.plots.convergence import ConvergenceDisplay
from tkmeans.plots.loss import LossDisplay
from tkmeans.plots.selection import SelectionDisplay
from tkmeans.plots.stability import StabilityDisplay
from tkmeans.plots.weights import RobustWeightsDisplay

__all__ = [
    "ClustersDisplay",
    "ConvergenceDisplay",
    "LossDisplay",
    "RobustWeightsDisplay",
    "SelectionDisplay",
    "StabilityDisplay",
]
