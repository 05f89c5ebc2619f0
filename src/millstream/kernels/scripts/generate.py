"""From a script to one Python function: expressions stay expressions, statements statements.

Names of a script never become names of the function: variables are `v` and a number. A variable
without a value is one that is not bound, an index that is not there is an error of Python's own;
what they mean is told from the line at which they came up. An array or a map that is changed in
place is held as a list or a dictionary of its own, and copied where all of it is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.calculus.scripts import (
    Apply,
    Assert,
    Assign,
    Block,
    Choose,
    Declare,
    Do,
    Emit,
    Function,
    If,
    Inline,
    Lambda,
    Leave,
    Loop,
    Place,
    Quantifier,
    Result,
    Return,
    Saw,
    Scope,
    Script,
    Statement,
    Undefine,
    Var,
    nodes_in,
)
from millstream.kernels.scripts.counting_loops import Counting, CountingLoop
from millstream.kernels.scripts.expressions import NotGenerated
from millstream.kernels.scripts.runtime import names_of
from millstream.kernels.scripts.whens import WhenWriter
from millstream.values.records.running import Runtime
from millstream.values.records.types import ArrayOf, MapOf, resolved


@dataclass
class Generated:
    """The text of a function, and the place in the script of each of its lines."""

    text: str
    places: dict[int, str]
    names: dict[str, Any]
    runtime: Runtime


def generated(script: Script, columns: tuple[str, ...], *, by_table: bool = False) -> Generated:
    """The function of a script, or `NotGenerated` with the reason."""
    if script.passes_over:
        raise NotGenerated("it passes over statements that have no value")
    return Writer(script, columns, by_table=by_table).whole()


@dataclass
class _Around:
    """What `continue` and `break` leave: a loop, or a switch inside of it."""

    is_loop: bool
    after: Block = ()
    #: The condition that a loop tests after a round.
    until: Any = None
    #: The name of what tells that a switch was left to go on with the loop.
    flag: str | None = None


@dataclass
class _Place:
    """Mutable: the Python function that is being written."""

    level: int
    #: Whether it is a `?{`, whose results are what it returns.
    is_inline: bool = False
    around: list[_Around] = field(default_factory=list)


class Writer(WhenWriter):
    """Mutable: writes the statements of a script, one after the other."""

    def __init__(self, script: Script, columns: tuple[str, ...], *, by_table: bool) -> None:
        super().__init__(script, columns)
        #: Whether what is emitted goes to a list for each table, with the number of its row.
        self.by_table = by_table
        self.inside: list[_Place] = []
        #: Which loops count, if their rounds may be taken all at once.
        self.counting: Counting | None = None
        self.held = frozenset(_held(script))

    def whole(self) -> Generated:
        number = "r, " if self.by_table else ""
        self.begin(f"def run({number}v{self.script.record.number}, row):")
        self.block(self.script.body)
        self.line("return")
        return self.done()

    def begin(self, head: str) -> None:
        """What is static, then the beginning of the function."""
        self.names |= names_of(self.script)
        for statement in self.script.statics:
            self.statement(statement)
        self.line(head)
        self.inside.append(_Place(0))
        self.indent += 1

    def done(self) -> Generated:
        text = "\n".join(self.lines) + "\n"
        return Generated(text, self.places, self.names, self.library.runtime)

    # --- statements ---

    def statement(self, statement: Statement) -> None:
        before = self.span
        self.span = getattr(statement, "span", None) or before
        getattr(self, f"do_{type(statement).__name__.lower()}")(statement)
        self.span = before

    # --- plain statements ---

    def do_declare(self, declare: Declare) -> None:
        name = self.var(declare.var)
        if declare.value is None:
            self.unset(name)
            return
        value = self.kept(declare.var, self.value(declare.value))
        if self.is_sure(declare.value):
            self.line(f"{name} = {value}")
            return
        self.line("try:")
        self.line(f"  {name} = {value}")
        self.line("except UNDEFINED:")
        self.indent += 1
        self.unset(name)
        self.indent -= 1

    def unset(self, name: str) -> None:
        self.line(f"{name} = None")
        self.line(f"del {name}")

    def do_assign(self, assign: Assign) -> None:
        self.assign(assign.target, self.value(assign.value))

    def assign(self, place: Place, value: str) -> None:
        name = self.var(place.var)
        if not place.path:
            self.line(f"{name} = {self.kept(place.var, value)}")
            return
        new = self.temporary()
        self.line(f"{new} = {value}")
        bases = [name]
        indexes: list[str] = []
        for number, step in enumerate(place.path):
            base = bases[-1]
            indexes.append(self.step(step, base))
            if number + 1 < len(place.path):
                inner = self.temporary()
                self.line(f"{inner} = {self.part_of(step, base, indexes[-1])}")
                bases.append(inner)
        for step, base, index in reversed(list(zip(place.path, bases, indexes, strict=True))):
            if base == name and place.var.number in self.held and step.high is None:
                is_map = isinstance(resolved(step.inside), MapOf)
                at = index if is_map else f"{index} if {index} >= 0 else OUT"
                self.line(f"{name}[{at}] = {new}")
                return
            is_list = base == name and place.var.number in self.held
            made = self.changed(step, f"tuple({base})" if is_list else base, index, new)
            self.line(f"{new} = {made}")
        self.line(f"{name} = {self.kept(place.var, new)}")

    def do_undefine(self, undefine: Undefine) -> None:
        if undefine.is_field:
            raise NotGenerated("it clears a field of a message")
        self.unset(self.var(undefine.target.var))

    def do_do(self, statement: Do) -> None:
        self.line(self.value(statement.value))

    def do_assert(self, assertion: Assert) -> None:
        condition = self.value(assertion.condition)
        said = "" if assertion.message is None else f', ": " + {self.value(assertion.message)}'
        self.line(f"if not {condition}: failed({self.place()}{said})")

    def place(self) -> str:
        return self.constant("" if self.span is None else self.span.place)

    def do_emit(self, emit: Emit) -> None:
        if self.by_table:
            nodes = [*emit.indexes, emit.value, *([] if emit.weight is None else [emit.weight])]
            self.line(f"emit{emit.table}((r, {', '.join(map(self.value, nodes))}))")
            return
        indexes = "".join(f"{self.value(i)}, " for i in emit.indexes)
        weight = "None" if emit.weight is None else self.value(emit.weight)
        self.line(f"emit(({emit.table}, ({indexes}), {self.value(emit.value)}, {weight}))")

    def do_return(self, statement: Return) -> None:
        if statement.value is None:
            self.line("return")
        elif self.is_sure(statement.value):
            self.line(f"return {self.value(statement.value)}")
        else:
            value = self.value(statement.value)
            self.line("try:")
            self.line(f"  r = {value}")
            self.line("except UNDEFINED as e:")
            self.line("  return nothing(e)")
            self.line("return r")

    def do_result(self, result: Result) -> None:
        self.line(f"return {self.value(result.value)}")

    def do_scope(self, scope: Scope) -> None:
        if scope.body:
            self.block(scope.body)

    # --- control ---

    def do_if(self, statement: If) -> None:
        self.line(f"if {self.value(statement.condition)}:")
        self.nested(statement.then)
        if statement.otherwise:
            self.line("else:")
            self.nested(statement.otherwise)

    def do_loop(self, loop: Loop) -> None:
        counted = None if self.counting is None else self.counting.counted(loop)
        if counted is not None and counted.var.number in self.sure:
            self.counted_loop(loop, counted)
            return
        around = _Around(True, loop.after)
        self.open("for _ in rounds():")
        self.indent += 1
        if loop.tests_first and loop.condition is not None:
            self.line(f"if not {self.value(loop.condition)}: break")
        elif loop.condition is not None:
            around.until = loop.condition
        self.inside[-1].around.append(around)
        self.block(loop.body)
        self.inside[-1].around.pop()
        self.round_over(around)
        self.indent -= 1
        self.line("else:")
        self.line(f"  endless({self.place()})")
        self.blocks -= 1

    def counted_loop(self, loop: Loop, counted: CountingLoop) -> None:
        """A loop over a range; its variable ends as it would have been counted."""
        name, stop = self.var(counted.var), self.temporary()
        self.line(f"{stop} = {self.value(counted.bound)}{' + 1' * counted.takes_bound}")
        self.open(f"for {name} in counted({name}, {stop}):")
        self.inside[-1].around.append(_Around(True))
        before = self.naturals
        if counted.is_natural:
            self.naturals |= {counted.var.number}
        self.nested(loop.body)
        self.naturals = before
        self.inside[-1].around.pop()
        self.line("else:")
        self.line(f"  if {name} < {stop}: {name} = {stop}")
        self.blocks -= 1

    def round_over(self, around: _Around) -> None:
        if around.after:
            self.block(around.after)
        if around.until is not None:
            self.line(f"if not {self.value(around.until)}: break")

    def do_leave(self, leave: Leave) -> None:
        arounds = self.inside[-1].around
        if leave.word == "break":
            self.line("break")
            return
        inner = arounds[-1]
        if inner.is_loop:
            self.round_over(inner)
            self.line("continue")
        else:
            assert inner.flag is not None
            self.line(f"{inner.flag} = True")
            self.line("break")

    def do_choose(self, choose: Choose) -> None:
        tag = self.var(choose.tag)
        self.line(f"{tag} = {self.value(choose.value)}")
        cases = [(labels, _without_last_break(block)) for labels, block in choose.cases]
        otherwise = _without_last_break(choose.otherwise)
        leaves = any(map(_leaves, (*(b for _, b in cases), otherwise)))
        flag = self.temporary() if leaves else None
        if leaves:
            self.line(f"{flag} = False")
            self.open("for _ in ONCE:")
            self.indent += 1
            self.inside[-1].around.append(_Around(False, flag=flag))
        word = "if"
        for labels, block in cases:
            tests = " or ".join(self.label(tag, label) for label in labels)
            self.line(f"{word} {tests or 'False'}:")
            self.nested(block)
            word = "elif"
        if cases:
            self.line("else:")
            self.nested(otherwise)
        else:
            self.block(otherwise)
        if leaves:
            self.indent -= 1
            self.blocks -= 1
            self.inside[-1].around.pop()
            self.go_on(flag)

    def go_on(self, flag: str | None) -> None:
        """After a switch that was left to go on with the loop around it."""
        arounds = self.inside[-1].around
        if not arounds:
            return
        self.line(f"if {flag}:")
        self.indent += 1
        self.do_leave(Leave("continue"))
        self.indent -= 1

    def label(self, tag: str, label: Any) -> str:
        value = self.value(label)
        return f"{tag} == {value}" if self.is_sure(label) else f"equals(lambda: {value}, {tag})"

    # --- functions ---

    def function(self, function: Function) -> str:
        """Write a function before the statement that mentions it; its name."""
        name = f"f{function.number}"
        parameters = ", ".join(self.var(p) for p in function.parameters)
        self.defined_as(
            f"def {name}({parameters}):", _Place(function.level), function.body, function
        )
        shown = self.constant(function.name or "")
        self.line(f"{name}.__name__ = {shown}")
        return name

    def inline(self, inline: Inline) -> str:
        self.inlines += 1
        name = f"q{self.inlines}"
        level = self.inside[-1].level if self.inside else -1
        self.defined_as(f"def {name}():", _Place(level, is_inline=True), inline.body, inline)
        return f"{name}()"

    def defined_as(self, head: str, place: _Place, body: Block, node: Any) -> None:
        before, self.blocks = self.blocks, 0
        self.line(head)
        self.inside.append(place)
        self.indent += 1
        for line in self.outer_names(body, node):
            self.line(line)
        if isinstance(node, Function):
            for var in node.parameters:
                if var.number in self.held:
                    self.line(f"{self.var(var)} = {self.kept(var, self.var(var))}")
        counts = isinstance(node, Function) and _calls(body)
        if counts:
            self.line("enter()")
        self.line("try:")
        self.indent += 1
        self.block(body)
        if place.is_inline:
            self.line('absent("this came to no result")')
        elif isinstance(node, Function) and node.type.result is not None:  # type: ignore[union-attr]
            self.line("return NO_RETURN")
        self.indent -= 1
        self.line("except UNDEFINED as e:")
        self.line("  rejected(e)")
        if counts:
            self.line("finally:")
            self.line("  leave()")
        self.indent -= 1
        self.inside.pop()
        self.blocks = before

    def outer_names(self, body: Block, node: Any) -> Iterator[str]:
        """The variables of functions around it that it assigns to."""
        declared: set[int] = set()
        assigned: dict[int, Var] = {}
        if isinstance(node, Function):
            declared |= {p.number for p in node.parameters}
        for one in _own(body):
            match one:
                case Declare(var):
                    declared.add(var.number)
                case Choose(tag):
                    declared.add(tag.number)
                case Quantifier(_, var):
                    declared.add(var.number)
                case Assign(target) | Undefine(target):
                    assigned[target.var.number] = target.var
                case Saw(rests=rests):
                    assigned |= {rest.var.number: rest.var for rest, _ in rests}
                case _:
                    continue
        outer = [v for n, v in assigned.items() if n not in declared]
        for word, wanted in (("nonlocal", False), ("global", True)):
            names = sorted(self.var(v) for v in outer if (v.level < 0) == wanted)
            if names:
                yield f"{word} {', '.join(names)}"


def _own(body: Any) -> Iterator[Any]:
    """The nodes of a function that are not those of functions inside of it."""
    skipped: set[int] = set()
    for node in nodes_in(body):
        if id(node) in skipped:
            continue
        if isinstance(node, (Lambda, Inline)):
            inner = node.function.body if isinstance(node, Lambda) else node.body
            skipped.update(id(n) for n in nodes_in(inner))
        yield node


def _calls(body: Block) -> bool:
    return any(isinstance(n, Apply) for n in nodes_in(body))


def _without_last_break(block: Block) -> Block:
    last = block[-1] if block else None
    return block[:-1] if isinstance(last, Leave) and last.word == "break" else block


def _leaves(block: Block) -> bool:
    """Whether a `break` in a block leaves the switch it stands in."""
    for one in block:
        match one:
            case Leave("break"):
                return True
            case If(_, then, otherwise):
                if _leaves(then) or _leaves(otherwise):
                    return True
            case Scope(body):
                if _leaves(body):
                    return True
            case _:
                continue
    return False


def _held(script: Script) -> Iterator[int]:
    """The variables that are changed in place."""
    for node in nodes_in((script.statics, script.body)):
        if isinstance(node, Assign) and node.target.path:
            type_ = resolved(node.target.var.type)
            first = node.target.path[0]
            is_part = first.index is not None and first.high is None
            if is_part and isinstance(type_, (ArrayOf, MapOf)):
                yield node.target.var.number


__all__ = ["Generated", "NotGenerated", "Writer", "generated"]
