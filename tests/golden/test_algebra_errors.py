"""What the algebra says of bad input, word for word, as one page to be read.

`make golden` writes it anew; read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from millstream.errors import MillstreamError
from tests.languages.algebra.faults import FAULTS

GOLDEN = Path(__file__).parent / "algebra_errors.txt"


def told(name: str) -> str:
    with pytest.raises(MillstreamError) as caught:
        FAULTS[name]()
    return f"--- {name}\n{caught.value}\n"


def test_golden_errors_of_the_algebra() -> None:
    page = "\n".join(map(told, FAULTS))
    if os.environ.get("MILLSTREAM_UPDATE_GOLDEN"):
        GOLDEN.write_text(page)
    assert GOLDEN.read_text() == page
