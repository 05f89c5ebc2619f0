"""Generated cases are the same in every run, so that a change is blamed only for what it broke.

`make proof` looks for new ones.
"""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("steady", derandomize=True, database=None)
settings.register_profile("searching", derandomize=False)
settings.load_profile("steady")
