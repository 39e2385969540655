"""The report on a clustering: one HTML file that needs nothing else."""

from tkmeans.report.report_page import write_report

__all__ = ["write_report"]
