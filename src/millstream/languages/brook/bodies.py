"""The bodies of operators, on their way from clauses to functions: one method each."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from millstream.calculus import functions
from millstream.calculus.check import Scope, check_into
from millstream.calculus.judging import Requirement, Shown
from millstream.calculus.matching import ORDERS
from millstream.calculus.syntax import Apply, Constant, Name, VariableName
from millstream.calculus.terms import Column, Term, canonical
from millstream.calculus.types import (
    BOOLEAN,
    TEXT,
    Row,
    Schema,
)
from millstream.errors import listing, suggest
from millstream.languages.brook.clauses import Clauses, check_names
from millstream.languages.brook.described import cubify, per_key, sheet, work
from millstream.languages.brook.written import (
    Clause,
    Item,
)


class Body(Clauses):
    """The body of one operator, on its way to a function."""

    def function(self) -> functions.Function | None:
        name = self.op.function.name
        shape = SHAPES.get(name)
        if shape is None:
            hint = f"functions are: {listing(SHAPES, 20)}. {suggest(name, SHAPES) or ''}".strip()
            if name in functions.FUNCTIONS:
                hint = "Opaque functions come from the Python API and cannot be written as text"
            self.fail(f'unknown function "{name}"', hint=hint)
            return None
        before = len(self.faults)
        for clause in self.op.clauses:
            if clause.keyword not in shape.clauses:
                word = f"`{clause.keyword}`" if clause.keyword else "a plain list"
                self.fail(f"{name} does not take {word}", clause.span, f"usage: {shape.usage}")
        if len(self.faults) > before:
            return None
        function = shape.build(self)
        return None if len(self.faults) > before else function

    # --- one method per function with a body ---

    def map_(self) -> functions.Function | None:
        if not self.items(None):
            self.fail("Map needs columns", hint=f"usage: {SHAPES['Map'].usage}")
        return functions.Map(self.columns(self.items(None)))

    def filter_(self) -> functions.Function | None:
        condition = self.condition(self.items(None), "[")
        if condition is None:
            if not self.items(None):
                self.fail("Filter needs a condition", hint=f"usage: {SHAPES['Filter'].usage}")
            return None
        return functions.Filter(condition)

    def flat_map(self) -> functions.Function | None:
        branches: list[functions.Branch] = []
        when: Clause | None = None
        for clause in self.op.clauses:
            if clause.keyword == "when":
                when = clause
                continue
            condition = self.condition(when.items, "when") if when else None
            branches.append(functions.Branch(condition, self.columns(clause.items)))
            when = None
        if when is not None:
            self.fail("expected `emit` after this condition", when.span)
        return functions.FlatMap(tuple(branches))

    def fold(self) -> functions.Function | None:
        for word in dict.fromkeys((*self.op.reads, *self.op.writes)):
            if word.name not in self.variables:
                hint = suggest(word.name, self.variables)
                declare = f"declare it: variable ${word.name}(field type = value);"
                self.fail(f'unknown variable "${word.name}"', word.span, hint or declare)
                return None
        emits = [c for c in self.op.clauses if c.keyword == "emit"]
        if len(emits) > 1:
            self.fail("Fold has at most one `emit`", emits[1].span)
        emit = self.columns(emits[0].items) if emits else None
        when = self.condition(self.items("when"), "when")
        updates = tuple(u for i in self.items("set") if (u := self.update(i)) is not None)
        return functions.Fold(self.column_names("by"), when, updates, emit)

    def update(self, item: Item) -> functions.Update | None:
        target = item.target
        if not isinstance(target, VariableName):
            self.fail("expected `$variable.field = expression`", item.span)
            return None
        written = {w.name for w in self.op.writes}
        if target.variable not in written:
            self.fail(
                f"${target.variable} is set here but is not among the operator's outputs",
                target.span,
                f"write (..., ${target.variable}) <- Fold[...]",
            )
            return None
        fields = self.variables.get(target.variable)
        if fields is None or fields.get(target.field) is None:
            known = {n: s for n, s in self.variables.items() if n in written}
            check_into(target, Scope(Schema(), "", known), self.faults)
            return None
        term = self.term(item.value, fields[target.field])
        return None if term is None else functions.Update(target.variable, target.field, term)

    def range_(self) -> functions.Function | None:
        usage = SHAPES["Range"].usage
        length = self.duration(None, usage)
        is_unbounded = any(c.keyword == "unbounded" for c in self.op.clauses)
        if length is None and not is_unbounded and not self.items(None):
            self.fail("Range needs one duration", hint=f"usage: {usage}")
        return functions.Range(length, self.duration("slide", usage))

    def rows(self) -> functions.Function | None:
        counts = self.whole(self.items(None), "a number of rows")
        if len(counts) != 1:
            self.fail("Rows needs a number of rows", hint=f"usage: {SHAPES['Rows'].usage}")
            return None
        within = self.duration("within", SHAPES["Rows"].usage)
        return functions.Rows(counts[0], self.column_names("by"), within)

    def rstream(self) -> functions.Function | None:
        return functions.Rstream(self.durations("every", SHAPES["Rstream"].usage))

    def changes(self) -> functions.Function | None:
        old = self.columns(self.items("emit"))
        if not all(isinstance(c.term, Column) for c in old):
            self.fail("expected columns", hint=f"usage: {SHAPES['Changes'].usage}")
        return functions.Changes(self.column_names("by"), old)

    def latest(self) -> functions.Function | None:
        unless = self.column_names("unless")
        if len(unless) > 1:
            self.fail("Latest looks at one column of `unless`",
                      hint=f"usage: {SHAPES['Latest'].usage}")  # fmt: skip
            return None
        return functions.Latest(self.column_names("by"), unless[0] if unless else None)

    def held(self) -> functions.Function | None:
        names = [i.value for i in self.items(None)]
        if len(names) != 1 or not isinstance(names[0], Name):
            self.fail("Held needs a column of times", hint=f"usage: {SHAPES['Held'].usage}")
            return None
        return functions.Held(names[0].name, self.column_names("by"), self.has("alone"))

    def until(self) -> functions.Function | None:
        names = [i.value for i in self.items(None)]
        if len(names) != 1 or not isinstance(names[0], Name):
            self.fail("Until needs a column of times", hint=f"usage: {SHAPES['Until'].usage}")
            return None
        return functions.Until(names[0].name)

    def join(self) -> functions.Function | None:
        where = self.condition(self.items("where"), "where")
        return functions.Join(self.pairs(), where, self.has("nulls"))

    def lookup(self) -> functions.Function | None:
        names = [i.value for i in self.items(None)]
        if len(names) != 1 or not isinstance(names[0], Name):
            self.fail("Lookup needs a name", hint=f"usage: {SHAPES['Lookup'].usage}")
            return None
        return functions.Lookup(names[0].name, self.pairs(), self.has("nulls"), self.comparison())

    def comparison(self) -> functions.Comparison | None:
        """Which column of the first input must compare how with which of the second."""
        for item in self.items("where"):
            match item.value:
                case Apply(order, (Name(ours), Name(theirs))) if order in ORDERS:
                    return functions.Comparison(ours, order, theirs)
            self.fail(f"expected `left {listing(ORDERS)} right`", item.span,
                      f"usage: {SHAPES['Lookup'].usage}")  # fmt: skip
        return None

    def top(self) -> functions.Function | None:
        counts = self.whole(self.items(None), "a number of rows")
        if len(counts) != 1:
            self.fail("Top needs a number of rows", hint=f"usage: {SHAPES['Top'].usage}")
            return None
        return functions.Top(counts[0], self.column_names("by"), self.column_names("descending"))

    def ordered(self) -> functions.Function | None:
        counts = self.whole(self.items(None), "a number of rows")
        placed = [self.placed(item) for item in self.items("emit")]
        return functions.Ordered(
            self.column_names("by"), self.column_names("on"), self.column_names("descending"),
            tuple(one for one in placed if one is not None), counts[0] if counts else None,
        )  # fmt: skip

    def placed(self, item: Item) -> functions.Placed | None:
        call = item.value
        if not isinstance(item.target, Name) or not isinstance(call, Apply):
            self.fail("expected `name = row_number()` or the like", item.span)
            return None
        given: dict[str, Any] = {}
        args = list(call.args)
        if args and isinstance(args[0], Name):
            given["column"] = args.pop(0).name  # type: ignore[union-attr]
        for arg in args:
            value = arg.value if isinstance(arg, Constant) else None
            if isinstance(value, int) and not isinstance(value, bool):
                given["offset"] = value
            elif isinstance(value, str) and _FRAME.fullmatch(value):
                unit, *ends = value.split()
                start, end = (None if e == "*" else int(e) for e in ends)
                given["frame"] = functions.Frame(unit, start, end)
            elif isinstance(value, str):
                given["between"] = value
            else:
                self.fail("expected a column, a number or a text", call.span)
        return functions.Placed(item.target.name, call.function, **given)

    def aggregate(self) -> functions.Function | None:
        aggregations = [self.aggregation(i) for i in self.items(None)]
        if not aggregations:
            self.fail("Aggregate needs aggregates", hint=f"usage: {SHAPES['Aggregate'].usage}")
        by = self.column_names("by")
        names = [(n, self.op.span) for n in by]
        names += [
            (a.name, i.span) for a, i in zip(aggregations, self.items(None), strict=True) if a
        ]
        check_names(names, self.faults)
        return functions.Aggregate(by, tuple(a for a in aggregations if a is not None))

    def aggregation(self, item: Item) -> functions.Aggregation | None:
        call = item.value
        if not isinstance(item.target, Name) or not isinstance(call, Apply):
            self.fail("expected `name = sum(expression)` or the like", item.span)
            return None
        if call.function not in functions.AGGREGATIONS:
            hint = f"aggregates are: {listing(functions.AGGREGATIONS)}."
            near = suggest(call.function, functions.AGGREGATIONS)
            self.fail(f'unknown aggregate "{call.function}"', call.function_span,
                      f"{hint} {near}" if near else hint)  # fmt: skip
            return None
        if len(call.args) > 1:
            self.fail(f"{call.function} takes one argument", call.span)
            return None
        term = self.term(call.args[0]) if call.args else None
        if call.args and term is None:
            return None
        aggregate = functions.Aggregation(item.target.name, call.function, term)
        try:
            aggregate.result_type()
        except functions.FunctionFault as fault:
            self.fail(str(fault), call.span)
            return None
        return aggregate

    def judge(self) -> functions.Function | None:
        """`when` stands before the requirement it belongs to, what is shown after it."""
        requirements: list[Requirement] = []
        when: Term | None = None
        for clause in self.op.clauses:
            if clause.keyword == "when":
                when = self.condition(clause.items, "when")
            elif clause.keyword == "where":
                requirement = self.requirement(clause, when)
                requirements += [requirement] if requirement is not None else []
                when = None
            elif clause.keyword in ("emit", "on") and requirements:
                part = "shown" if clause.keyword == "emit" else "asked"
                requirements[-1] = replace(requirements[-1], **{part: self.shown(clause)})  # type: ignore[arg-type]
        levels = self.texts("a level of severity, as a text")
        return functions.Judge(self.column_names("by"), tuple(requirements), tuple(levels))

    def requirement(self, clause: Clause, when: Term | None) -> Requirement | None:
        values = [i.value for i in clause.items]
        match values:
            case [Constant(str() as place), Constant(str() as text), holds]:
                term = self.term(holds, BOOLEAN)
                return None if term is None else Requirement(place, text, when, term)
            case [Constant(str() as place), Constant(str() as text), holds,
                  Constant(str() as level)]:  # fmt: skip
                term = self.term(holds, BOOLEAN)
                if term is None:
                    return None
                return Requirement(place, text, when, term, level=level)
            case _:
                self.fail("expected a place, a text and a condition", clause.span,
                          f"usage: {SHAPES['Judge'].usage}")  # fmt: skip
                return None

    def shown(self, clause: Clause) -> tuple[Shown, ...]:
        shown: list[Shown] = []
        values = [i.value for i in clause.items]
        for group in (values[n : n + 3] for n in range(0, len(values), 3)):
            match group:
                case [Constant(str() as label), Constant(str() as unit), value]:
                    term = self.term(value)
                    shown += [Shown(label, unit, term)] if term is not None else []
                case _:
                    self.fail("expected a label, a unit and a value", clause.span)
        return tuple(shown)

    def join_in_turns(self) -> functions.Function | None:
        """Weights, and perhaps what is there from the beginning, as rows for each input."""
        items = self.items(None)
        rows: tuple[tuple[Row, ...], ...] = ()
        if items and isinstance(items[-1].value, Constant) and items[-1].value.type == TEXT:
            rows = self.rows_in(items[-1])
            items = items[:-1]
        return functions.RoundRobinJoin(self.whole(items, "a weight"), rows)

    def rows_in(self, item: Item) -> tuple[tuple[Row, ...], ...]:
        assert isinstance(item.value, Constant)
        try:
            inputs = json.loads(str(item.value.value))
            return tuple(tuple(tuple(map(canonical, row)) for row in rows) for rows in inputs)
        except (ValueError, TypeError):
            hint = 'usage: RoundRobinJoin[1, 1, "[[], [[0.5]]]"]'
            self.fail("expected rows for each input, as JSON", item.span, hint)
            return ()

    def interleave(self) -> functions.Function | None:
        begins, repeats = (self.whole(self.items(k), "an input") for k in (None, "every"))
        return functions.Interleave(begins, repeats)


#: The frame of an aggregate: its unit and its ends, of which `*` is none.
_FRAME = re.compile(r"(rows|range) (\*|-?\d+) (\*|-?\d+)")


@dataclass(frozen=True)
class BodyShape:
    """Which clauses the body of a function has, and how it is built from them."""

    clauses: tuple[str | None, ...]
    usage: str
    build: Callable[[Body], functions.Function | None]


SHAPES: dict[str, BodyShape] = {
    "Map": BodyShape((None,), "Map[name = expression, column, ...]", Body.map_),
    "Filter": BodyShape((None,), "Filter[condition]", Body.filter_),
    "FlatMap": BodyShape(("when", "emit"), "FlatMap[when condition emit a = x; emit a = y]",
                     Body.flat_map),
    "Fold": BodyShape(("by", "when", "set", "emit"),
                  "Fold[by key; when condition; set $v.field = x; emit a = $v.field]", Body.fold),
    "Merge": BodyShape((), "Merge", lambda _: functions.Merge()),
    "Now": BodyShape((), "Now", lambda _: functions.Now()),
    "Range": BodyShape((None, "unbounded", "slide"),
                   "Range[5 min], Range[unbounded] or Range[5 min; slide 1 min]", Body.range_),
    "Until": BodyShape((None,), "Until[end]", Body.until),
    "Rows": BodyShape((None, "by", "within"),
                  "Rows[10], Rows[10 by key] or Rows[10 by key; within 5 min]", Body.rows),
    "Latest": BodyShape(("by", "unless"), "Latest[by key] or Latest[by key; unless deleted]",
                    Body.latest),
    "Held": BodyShape((None, "by", "alone"), "Held[until by key] or Held[until; alone]", Body.held),
    "Join": BodyShape(("on", "where", "nulls"), "Join[on key, left = right; where condition]",
                  Body.join),
    "Lookup": BodyShape((None, "on", "nulls", "where"),
                    "Lookup[found; on key, left = right; where left < right]", Body.lookup),
    "Judge": BodyShape((None, "by", "when", "where", "emit", "on"),
                   'Judge[by key; when condition; where "place", "text", condition]', Body.judge),
    "Top": BodyShape((None, "by", "descending"), "Top[10 by a, b; descending b]", Body.top),
    "Ordered": BodyShape((None, "by", "on", "descending", "emit"),
                     "Ordered[by k; on a; descending a; emit n = row_number(), p = lag(x, 1), "
                     's = sum(x, "rows * 0")]', Body.ordered),
    "Aggregate": BodyShape(("by", None), "Aggregate[by key; total = sum(x), n = count()]",
                       Body.aggregate),
    "Distinct": BodyShape((), "Distinct", lambda _: functions.Distinct()),
    "Except": BodyShape((), "Except", lambda _: functions.Except()),
    "Istream": BodyShape((), "Istream", lambda _: functions.Istream()),
    "Dstream": BodyShape((), "Dstream", lambda _: functions.Dstream()),
    "Changes": BodyShape(("by", "emit"), "Changes[by key; emit was = column]", Body.changes),
    "Rstream": BodyShape(("every",), "Rstream or Rstream[every 1 s]", Body.rstream),
    "Duplicate": BodyShape((), "Duplicate", lambda _: functions.Duplicate()),
    "Sheet": BodyShape((None,), 'Sheet["S!B3 <- 1.price", "S!G3 = S!B3*2", '
                       '"output x number = S!G3"]', sheet),
    "Cubify": BodyShape((None,), 'Cubify["Dimensions = a, b | c", "TimeGrain = Minute", '
                    '"CWindow = 60", "OutputVertices = a"]', cubify),
    "RoundRobinSplit": BodyShape((None,), "RoundRobinSplit[1, 1]",
                             lambda b: functions.RoundRobinSplit(b.weights())),
    "RoundRobinJoin": BodyShape((None,), "RoundRobinJoin[1, 1]", Body.join_in_turns),
    "Interleave": BodyShape((None, "every"), "Interleave[0, 1; every 0, 0, 1]", Body.interleave),
    "Work": BodyShape((None,), 'Work["code F()", "takes single", ..., "rates pop 1 peek 1 push 1"]',
                  work),
    "PerKey": BodyShape(("by", "first", None), 'PerKey[by key; "output out;", '
                        '"input in(x integer);", ...] or PerKey[by key; first 10; ...]', per_key),
}  # fmt: skip
