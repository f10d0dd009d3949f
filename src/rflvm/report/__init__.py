"""A fitted model as one HTML page: summary, diagnostics, figures, and an explorer that decodes in the browser."""

from .page import write_report

__all__ = ["write_report"]
