"""Patterns on columns find what PCRE finds, in linear time."""

from __future__ import annotations

import time
from itertools import islice

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from millstream.kernels.records.pattern_code import pattern_code
from millstream.kernels.records.pattern_search import search, search_on
from millstream.kernels.records.pattern_walk import FOUND, UNKNOWN
from millstream.kernels.records.quick_patterns import cuts_alike, quick_pattern
from millstream.values.records.matching import Take, sawn
from millstream.values.records.patterns import Spans, compiled


def found(pattern: str, texts: list[str]) -> list[Spans | None] | None:
    """The spans in every text, or None if the pattern is left to the libraries."""
    code = pattern_code(pattern)
    if code is None:
        return None
    column = pa.array([*texts, ""], pa.string())
    offsets = np.frombuffer(column.buffers()[1], np.int32)[: len(texts) + 1].astype(np.int64)
    data = np.frombuffer(column.buffers()[2] or b"\0", np.uint8)
    chosen = np.ones(len(texts), np.bool_)
    status, spans = search(code, data, offsets[:-1].copy(), offsets[1:].copy(), chosen)
    assert UNKNOWN not in status.tolist()
    return [
        list(zip(row[::2].tolist(), row[1::2].tolist(), strict=True)) if s == FOUND else None
        for s, row in zip(status, spans, strict=True)
    ]


_ATOMS = st.sampled_from(
    [
        "a",
        "b",
        "c",
        "ab",
        "[ab]+",
        "[abc ]*",
        ".",
        "[ab]",
        "[^a]",
        r"\d",
        r"\w",
        "^",
        "$",
        r"\b",
        "x",
        "bc=",
        r"[^ab]*?",
        r".+?",
        r"\S+",
        "(?:ab|x)",
        r"[=;]",
        r"[a-c1=;x]",
        "abc=x",
        "[aA][bc]=",
    ]
)


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    some = st.lists(inner, min_size=1, max_size=3)
    return (
        some.map("".join)
        | some.map(lambda parts: "(" + "|".join(parts) + ")")
        | some.map(lambda parts: "(?:" + "|".join(parts) + ")")
        | st.builds(
            lambda part, how: f"(?:{part}){how}" if len(part) > 1 else part + how,
            inner,
            st.sampled_from(["*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{1,}?"]),
        )
    )


PATTERNS = st.recursive(_ATOMS, _grown, max_leaves=8)
#: Long ones are looked through 64 bytes at a time for what a match must have.
TEXTS = st.lists(
    st.text(st.sampled_from("aabcx1=; \n"), max_size=9)
    | st.text(st.sampled_from("      abcx=;"), min_size=15, max_size=40)
    | st.lists(st.sampled_from([*"abc1= \n", "bc=", "abc=x", "ab", " " * 50, "a" * 63, "x" * 64]),
               min_size=3, max_size=9).map("".join),
    min_size=1, max_size=6,
)  # fmt: skip


@given(PATTERNS, TEXTS)
@settings(max_examples=300)
def test_columns_and_pcre_agree(pattern: str, texts: list[str]) -> None:
    rows = found(pattern, texts)
    if rows is not None:
        assert [compiled(pattern).spans(text) for text in texts] == rows


@example("(a|\\S+)", ["a" * 15, "aa " + "a" * 63], 1000)  # more pieces than there was room for
@given(PATTERNS, TEXTS, st.integers(0, 4) | st.just(1000))
@settings(max_examples=300)
def test_columns_are_sawn_as_single_texts_are(pattern: str, texts: list[str], times: int) -> None:
    code = pattern_code(pattern)
    if code is None:
        return
    raw = "".join(texts)
    ends = np.cumsum([len(text) for text in texts])
    starts = ends - [len(text) for text in texts]
    data = np.frombuffer(raw.encode() + b"\0", np.uint8)
    counts, spans = search_on(code, data, starts, ends, np.ones(len(texts), np.bool_), times)
    pieces = iter([raw[first:last] for first, last in spans.tolist()])
    made = [tuple(islice(pieces, count)) for count in counts.tolist()]
    assert made == [sawn(times, text, [Take(pattern)])[0] for text in texts]


@given(PATTERNS, st.lists(st.text(st.sampled_from("aabcx1 ü\n"), max_size=9), min_size=1))
@settings(max_examples=300)
def test_patterns_that_are_quick_on_single_texts_find_what_pcre_finds(
    pattern: str, texts: list[str]
) -> None:
    quick = quick_pattern(pattern)
    if quick is None:
        return
    matches = [quick.search(text) for text in texts]
    spans = [m and [m.span(n) for n in range(quick.groups + 1)] for m in matches]
    assert [compiled(pattern).spans(text) for text in texts] == spans
    if cuts_alike(pattern):
        for text in texts:
            pieces = tuple(m[0] for m in quick.finditer(text))
            assert sawn(100, text, [Take(pattern)])[0] == pieces


@pytest.mark.parametrize("pattern", ["[A-Za-z]+", r"^(\S+) (\S+)", r"status=(\d+)", r'"([^"]*)"'])
def test_usual_patterns_are_quick_on_single_texts(pattern: str) -> None:
    assert quick_pattern(pattern) is not None


@pytest.mark.parametrize(
    "pattern", [r"(a+)+$", r"(a|aa)+$", "a*a*b", "(?:a?){30}a{30}b", "(?i)k", ".*a.*b"]
)
def test_what_could_take_long_is_not_for_the_quick_way(pattern: str) -> None:
    assert quick_pattern(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [r'"(GET|POST) ([^ ?"]+)', r"(?i)error|fail", r"[[:alpha:]_][[:alnum:]_]*=(\S+?);",
     r"^(\d{1,3})\.(\d{1,3})", r"\[([^\]]+)\]", r"(?P<key>\w+)\s*=\s*(?P<value>.*)$",
     r"[a-z-]+\x20", r"a{2,3}b", r"\.html?$", r"(\w+)=(.*?);", r"^(.*?) (?:GET|POST) (\S+)",
     r"(?:[a-z]+ )+=", r"[+-]?\d+(?:\.\d+)?", r"\w+$", r"(a|b)*?c", r".*?b$"],
)  # fmt: skip
def test_usual_patterns_are_run_on_columns(pattern: str) -> None:
    texts = ['1.2 "GET /a.htm?x" [x]', "POST error FAIL", "key = value", "_a1=b;c", "aaab aab", ""]
    assert [compiled(pattern).spans(text) for text in texts] == found(pattern, texts)


@pytest.mark.parametrize(
    "pattern", [r"(a)\1", r"a(?=b)", r"a++", r"(?>a)", r"(a*)*", "ü", r"\p{L}", "a{,2}", r"\Qa\E"]
)
def test_others_are_left_to_the_libraries(pattern: str) -> None:
    assert found(pattern, ["a"]) is None


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"a*a*a*a*b", r"(?:a?){30}a{30}b"])
def test_no_text_takes_long(pattern: str) -> None:
    found(pattern, ["a"])
    begun = time.process_time()
    rows = found(pattern, ["a" * 3000 + "!"])
    assert rows in ([None], None)
    assert time.process_time() - begun < 2
