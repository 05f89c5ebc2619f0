"""The pictures of docs/algebra.md, run on both engines and by actors."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream import algebra
from millstream.algebra import Stream, Table
from millstream.calculus.types import START_OF_TIME, Value

DOCUMENT = Path(__file__).parents[3] / "docs" / "algebra.md"
SECOND = 1_000_000

#: The columns of the inputs, by name and number of columns.
COLUMNS: dict[tuple[str, int], dict[str, str]] = {
    ("xs", 1): {"x": "integer"},
    ("ys", 1): {"y": "integer"},
    ("xs", 2): {"k": "text", "x": "integer"},
    ("ys", 2): {"j": "text", "y": "integer"},
    ("ks", 3): {"k": "text", "x": "integer", "deleted": "boolean"},
    ("refs", 2): {"id": "integer", "k": "text"},
    ("control", 1): {"name": "text"},
}


def pictures() -> list[str]:
    return re.findall(r"```timeline\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)


def value(text: str, type_: str) -> Value:
    if text == "_":
        return None
    return {"integer": int, "text": str, "boolean": lambda t: t == "true"}[type_](text)  # type: ignore[no-any-return, operator]


def given(name: str, tokens: list[str]) -> tuple[Stream, list[dict[str, Any]]]:
    first = next(t for t in tokens if t != ".")
    columns = COLUMNS[name, first.count(",") + 1]
    rows = []
    for number, cell in enumerate(tokens, 1):
        for row in () if cell == "." else cell.split("/"):
            values = (value(t, c) for t, c in zip(row.split(","), columns.values(), strict=True))
            rows.append({"_time": number * SECOND, **dict(zip(columns, values, strict=True))})
    return algebra.stream(name, columns), rows


def shown(one: Value) -> str:
    if isinstance(one, bool):
        return "true" if one else "false"
    return "_" if one is None else str(one)


def drawn(rows: list[dict[str, Any]], length: int) -> list[str]:
    """The tokens of an output, one for each second, after one for the beginning of time."""
    tokens: list[list[str]] = [[] for _ in range(length + 1)]
    for row in rows:
        values = {n: v for n, v in row.items() if n not in ("_time", "_weight")}
        sign = "-" if row.get("_weight") == -1 else ""
        is_first = row["_time"] == START_OF_TIME
        place, rest = (0, 0) if is_first else divmod(row["_time"], SECOND)
        assert rest == 0
        tokens[place].append(sign + ",".join(map(shown, values.values())))
    first = [f"^{'/'.join(tokens[0])}"] if tokens[0] else []
    return first + ["/".join(some) or "." for some in tokens[1:]]


class Picture:
    """The inputs, the expression and the expected tokens of a picture."""

    def __init__(self, picture: str) -> None:
        *lines, last = [line for line in picture.splitlines() if line.strip()]
        code = next(line[2:] for line in lines if line.startswith("= "))
        self.tokens = {
            name: tokens
            for name, *tokens in (line.split() for line in lines if not line.startswith("= "))
        }
        self.inputs = {name: given(name, tokens) for name, tokens in self.tokens.items()}
        names: dict[str, Any] = {n: getattr(algebra, n) for n in algebra.__all__}
        self.made = eval(code, names | {n: s for n, (s, _) in self.inputs.items()})  # noqa: S307
        assert isinstance(self.made, (Stream, Table))
        _, *self.expected = last.split()
        self.length = len([t for t in self.expected if not t.startswith("^")])


def expression(picture: str) -> str:
    return picture.split("= ")[1].split("\n", maxsplit=1)[0][:40]


@pytest.mark.parametrize("picture", pictures(), ids=expression)
def test_a_picture_is_what_happens(picture: str) -> None:
    one = Picture(picture)
    job = millstream.compile_flow(out=one.made)
    for engine in ("reference", "local", "actors"):
        finished = job.run({n: rows for n, (_, rows) in one.inputs.items()}, engine=engine)
        assert one.expected == drawn(finished.rows("out"), one.length)


def test_every_operator_has_a_picture() -> None:
    """All that the algebra exports, except what is no operator."""
    code = " ".join(pictures())
    others = {"Group", "Stream", "Table", "average", "call", "if_", "maximum", "minimum",
              "product", "program_of", "relation", "stream", "table"}  # fmt: skip
    missing = [n for n in algebra.__all__ if n not in others and f"{n}(" not in code]
    assert [] == missing
