"""What statements read that others declare: which names these are, and how they are taken in."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from millstream.calculus.types import Schema
from millstream.queries import ast


def mentioned(statements: Sequence[ast.Statement]) -> dict[str, ast.Word]:
    """What is read anywhere, subqueries included, with its first place.

    The views of a WITH are names for its query only, and not among them.
    """
    words: dict[str, ast.Word] = {}
    for word in _words(tuple(statements), frozenset()):
        words.setdefault(word.name, word)
    return words


def declared_outside(
    word: ast.Word, schema: Schema, *, is_relation: bool, is_read_once: bool = False
) -> ast.Declaration:
    """The declaration of what is known from elsewhere, with the place where it is read."""
    columns = tuple(ast.Declared(ast.Word(f.name, word.span), f.type) for f in schema)
    return ast.Declaration(word, is_relation, columns, is_read_once=is_read_once)


def _words(part: object, local: frozenset[str]) -> Iterator[ast.Word]:
    match part:
        case ast.Named():
            if part.name.name not in local:
                yield part.name
        case ast.With():
            for view in part.views:
                yield from _words(view.query, local)
                local |= {view.name.name}
            yield from _words(part.query, local)
        case tuple():
            for one in part:
                yield from _words(one, local)
        case _ if dataclasses.is_dataclass(part):
            for field in dataclasses.fields(part):
                if field.name != "span":
                    yield from _words(getattr(part, field.name), local)
