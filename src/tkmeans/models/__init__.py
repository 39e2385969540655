"""What differs between methods: how distances become memberships, and the M-step."""

from tkmeans.models.fast import Fast
from tkmeans.models.mixture import StudentMixture
from tkmeans.models.protocols import Model
from tkmeans.models.stepwise import Stepwise, Tracked
from tkmeans.models.student import Student

__all__ = ["Fast", "Model", "Stepwise", "Student", "StudentMixture", "Tracked"]
