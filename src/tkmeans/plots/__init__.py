"""Plots of clusters and fits, in the manner of scikit-learn's Displays; they need matplotlib (extra `plots`).

Nothing here knows our estimators: whatever has centres, labels or weights can be drawn.
"""

from tkmeans.plots.clusters_display import ClustersDisplay
from tkmeans.plots.diagnostic_displays import (
    ConvergenceDisplay,
    RobustnessDisplay,
    RobustWeightsDisplay,
    SelectionDisplay,
    StabilityDisplay,
)

__all__ = ["ClustersDisplay", "ConvergenceDisplay", "RobustWeightsDisplay", "RobustnessDisplay"]
__all__ += ["SelectionDisplay", "StabilityDisplay"]
