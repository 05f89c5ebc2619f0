"""What the bodies of composites add: each place is a site, to which its arguments are pushed."""

from __future__ import annotations

from collections.abc import Sequence

from millstream.calculus.procedures import (
    Assign,
    Operand,
    Push,
    RecordOf,
    Shape,
)
from millstream.calculus.terms import Place
from millstream.errors import suggest
from millstream.languages.streamit import ast
from millstream.languages.streamit.lower_calls import CallLowering
from millstream.languages.streamit.lowering import (
    FIRST_SITE,
    Captured,
    Site,
)
from millstream.languages.streamit.making import Lowered
from millstream.languages.streamit.scope import (
    IDENTITY,
    READER,
    WRITER,
    Names,
    Program,
    mentioned,
    names_in,
)
from millstream.values.types import INT32

_LEVEL = "only the body of a pipeline, a splitjoin or a feedbackloop can"
#: What the body of each of them can say.
_WORDS = {
    "pipeline": ("add",),
    "splitjoin": ("split", "add", "join"),
    "feedbackloop": ("join", "body", "loop", "split", "enqueue"),
}


class PartLowering(CallLowering):
    """Mutable: lowers what the body of a composite adds, places in its text in their order."""

    def __init__(
        self, program: Program, names: Names, taken: Shape | None, stream: ast.Stream
    ) -> None:
        super().__init__(program, names, taken)
        self.stream = stream
        self.sites: list[Site] = []

    def add(self, statement: ast.AddStream | ast.Split | ast.Enqueue) -> None:
        word = "enqueue" if isinstance(statement, ast.Enqueue) else statement.role
        if isinstance(self.stream.body, ast.Filter):
            self.fail(f"{_LEVEL} {word}", statement.span)
        kind = self.stream.body.kind
        if word not in _WORDS[kind]:
            said = ", ".join(f"`{one}`" for one in _WORDS[kind])
            self.fail(f"a {kind} has no `{word}`", statement.span, f"what it can say is {said}")
        captured: Captured = ()
        values: list[Lowered] = []
        match statement:
            case ast.AddStream(_, ast.Instance(name, _, arguments, span)):
                known = (*self.program.streams, IDENTITY, READER, WRITER)
                if name not in known:
                    self.fail(f'unknown stream "{name}"', span, suggest(name, known))
                values = self.operands(arguments)
            case ast.AddStream(_, stream):
                captured = self.seen_by(stream)
                values = [self.held(variable) for _, variable in captured]
            case ast.Split(_, _, weights):
                values = [self.converted(v, INT32, statement.span) for v in self.operands(weights)]
            case ast.Enqueue(value):
                values = [self.value(value)]
        if isinstance(statement, ast.AddStream):
            values += self.operands(statement.portals)
        number = FIRST_SITE + len(self.sites)
        self.made.append(Push(self.together(values), number, statement.span))
        self.sites.append(Site(statement, captured))

    def seen_by(self, stream: ast.Instance | ast.Stream) -> Captured:
        """The variables that stand in an anonymous stream, and those their sizes read."""
        visible = self.names.visible()
        seen = {name: visible[name] for name in sorted(mentioned(stream) & visible.keys())}
        sizes = set().union(*(names_in(variable.shape) for variable in seen.values()))
        known = {variable.name for variable in seen.values()}
        by_own_name = {variable.name: variable for variable in visible.values()}
        around = {name: by_own_name[name] for name in sorted(sizes - known)}
        return (*around.items(), *seen.items())

    def together(self, values: Sequence[Lowered]) -> Operand:
        """Arguments as one record."""
        parts = tuple((str(n), value.shape) for n, value in enumerate(values))
        variable = self.fresh(RecordOf(parts))
        for number, value in enumerate(values):
            self.made.append(Assign(Place(variable.name, (str(number),)), value.operand))
        return Place(variable.name)
