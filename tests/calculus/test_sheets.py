"""What a sheet in the calculus must obey."""

from __future__ import annotations

import pytest

from millstream.errors import CheckError
from millstream.languages.brook.load import load
from millstream.source import Source


def test_a_cell_that_is_to_give_what_no_cell_holds_is_refused() -> None:
    text = (
        "output out; input in(x integer);"
        '(out, $w) <- Sheet["S!A1 <- 1.x", "output c int32 = S!A1"](in, $w);'
    )
    with pytest.raises(CheckError, match='this output column means nothing: "c int32'):
        load(Source("test.brook", text))
