"""What has no value: a bad index, a missing key, a division by zero, a failed conversion."""

from __future__ import annotations


class Undefined(Exception):
    """The expression has no value; the message says why, in words for the user.

    Who evaluates decides what becomes of it: a variable without a value, a condition that does
    not hold, or a record that is rejected with this reason.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
