"""`millstream.algebra`: the algebra of streams and tables, written in Python."""

from millstream.languages.algebra import *  # noqa: F403
from millstream.languages.algebra import __all__ as __all__  # noqa: PLC0414 - so that mypy knows it
