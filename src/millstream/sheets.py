"""`millstream.sheets`: spreadsheets inside other programs."""

from millstream.languages.sheets.embedded import ErrorValue, Sheet, load

__all__ = ["ErrorValue", "Sheet", "load"]
