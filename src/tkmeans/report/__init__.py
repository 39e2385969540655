"""What was found, as one HTML file that needs nothing else."""

from tkmeans.report.write import write_report

__all__ = ["write_report"]
