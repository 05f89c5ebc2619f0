"""Lines that are cut by the compiled scanner are those that are cut slowly."""

from __future__ import annotations

import io
import random

import pytest

from millstream.calculus.graph import Input
from millstream.calculus.types import TEXT, QueueType, Schema
from millstream.connectors.read_lines import LinesDecoder, lines_decoder
from millstream.connectors.window import FileWindow, decoded

LINE = Input("input", QueueType(Schema.of(line=TEXT)), is_numbered=True)


def lines_of(data: bytes, piece: int, chunk_rows: int) -> list[object]:
    window = FileWindow(io.BytesIO(data).read, "lines", piece)
    chunks = decoded(window, lines_decoder(LINE, chunk_rows)(window))
    return [line for chunk in chunks for (line,) in chunk.batch.rows()]


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_cut_the_same_lines(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    letters = chance.choice(["ab\n", "abcdefghijklmnopqr\n", "a\r\n", "a\n\x80\xff", "\0a\n"])
    size = chance.choice([0, 1, 7, 8, 9, 400])
    data = "".join(chance.choices(letters, k=size)).encode("latin-1")
    piece, rows = chance.choice([5, 16, 1000]), chance.choice([1, 3, 1000])
    quickly = LinesDecoder._quickly
    took = []

    def watched(self: LinesDecoder, data: bytes, start: int, stop: int) -> tuple[object, int]:
        texts, end = quickly(self, data, start, stop)
        took.append(texts is not None)
        return texts, end

    monkeypatch.setattr(LinesDecoder, "_quickly", watched)
    monkeypatch.setattr(FileWindow, "is_small", False)
    found = lines_of(data, piece, rows)
    assert all(took) or letters != "ab\n" or not data.endswith(b"\n")
    monkeypatch.setattr(FileWindow, "is_small", True)
    assert lines_of(data, piece, rows) == found
    text = data.decode("latin-1")
    if "\r" not in text:
        assert found == text.removesuffix("\n").split("\n")[: None if data else 0]
