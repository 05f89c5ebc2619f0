"""Statements that give nothing."""

from __future__ import annotations

from dataclasses import replace

from millstream.calculus.procedures import Body, Choose, Push, Repeat, Scope, Statement


def without_pushes(body: Body) -> Body:
    """A body that gives and prints nothing; what it would give has no effects."""

    def kept(statement: Statement) -> Body:
        match statement:
            case Push():
                return ()
            case Choose(_, then, otherwise):
                inner = without_pushes(then), without_pushes(otherwise)
                return (replace(statement, then=inner[0], otherwise=inner[1]),)
            case Repeat(_, body, after):
                made = replace(statement, body=without_pushes(body), after=without_pushes(after))
                return (made,)
            case Scope(body):
                return (Scope(without_pushes(body)),)
            case _:
                return (statement,)

    return tuple(s for statement in body for s in kept(statement))
