"""Programs by chance: filters of any rates in pipelines, split-joins and loops that balance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from hypothesis import strategies as st

Draw = st.DrawFn


@dataclass(frozen=True)
class Written:
    """A stream without a name, and how many items come out of it for one that goes in."""

    text: str
    gain: Fraction


@dataclass
class _Maker:
    """Mutable: draws expressions over what a filter can see."""

    draw: Draw
    type: str
    names: list[str]
    peeks: int

    def number(self) -> str:
        if self.type == "int":
            return str(self.draw(st.integers(-9, 9)))
        return str(self.draw(st.sampled_from([0.5, -1.25, 3.0, 0.1, 1e-3, 7.5])))

    def leaf(self) -> str:
        kind = self.draw(st.integers(0, 3))
        if kind == 0 and self.peeks:
            return f"peek({self.draw(st.integers(0, self.peeks - 1))})"
        if kind == 1 and self.names:
            return self.draw(st.sampled_from(self.names))
        return "iter()" if kind == 2 else f"({self.number()})"

    def expression(self, depth: int) -> str:
        if depth == 0:
            return self.leaf()
        left, right = self.expression(depth - 1), self.expression(depth - 1)
        kinds = ["+", "-", "*", "?", "min", "cast"]
        kinds += ["&", "|", "^", "<<", ">>", "%"] if self.type == "int" else ["sin", "abs", "/"]
        kind = self.draw(st.sampled_from(kinds))
        match kind:
            case "?":
                return f"({left} < {right} ? {left} : {right})"
            case "min":
                return f"max({left}, {right})"
            case "cast" if self.type == "int":
                return f"(int)((float)({left}) * 0.5)"
            case "cast":
                return f"(float)((int)min(1000.0, max(-1000.0, {left})))"
            case "%":
                return f"(({left}) % 7)"
            case "/":
                return f"({left} / ({right} * {right} + 1))"
            case "sin" | "abs":
                return f"{kind}({left})"
            case ">>" | "<<":
                return f"({left} {kind} ({right} & 7))"
            case _:
                return f"({left} {kind} {right})"


@st.composite
def filters(draw: Draw, type_: str) -> Written:
    pop, push = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    peek = pop + draw(st.integers(0, 2))
    maker = _Maker(draw, type_, ["state", "local"], peek)
    lines = [f"{type_} local = {maker.expression(1).replace('local', 'state')};"]
    if draw(st.booleans()):
        lines.append(f"state = {maker.expression(2)};")
    if draw(st.booleans()):
        lines.append(f"for (int i = 0; i < {peek}; i++) local = local * 2 - peek(i);")
    if draw(st.booleans()):
        lines.append(f"if (local > {maker.expression(1)}) {{ local = {maker.expression(1)}; }}"
                     f" else state = state - local;")  # fmt: skip
    pushes = [f"push({maker.expression(2)});" for _ in range(push)]
    pops = ["pop();"] * pop
    if draw(st.booleans()):  # an item is taken in the middle of an expression
        maker.peeks = peek - 1
        pushes[-1] = f"push({maker.leaf()} + pop());"
        pops.pop()
    prework = ""
    if draw(st.integers(0, 3)) == 0:
        prework = f"prework push {push} pop 0 {{ {f'push({maker.number()});' * push} }}"
    body = " ".join([*lines, *pushes, *pops])
    work = f"work push {push} pop {pop} peek {peek} {{ {body} }}"
    fields = f"{type_} state = {maker.number()};"
    return Written(f"{type_}->{type_} filter {{ {fields} {prework} {work} }}", Fraction(push, pop))


@st.composite
def pipelines(draw: Draw, type_: str, depth: int) -> Written:
    parts = draw(st.lists(streams(type_, depth - 1), min_size=1, max_size=3))
    gain = math.prod((part.gain for part in parts), start=Fraction(1))
    return Written("pipeline { " + " ".join(f"add {p.text};" for p in parts) + " }", gain)


@st.composite
def split_joins(draw: Draw, type_: str, depth: int) -> Written:
    parts = draw(st.lists(streams(type_, depth - 1), min_size=2, max_size=3))
    added = " ".join(f"add {part.text};" for part in parts)
    if draw(st.booleans()):
        common = math.lcm(*(part.gain.denominator for part in parts))
        joins = [int(part.gain * common) for part in parts]
        split, gain = "duplicate", Fraction(sum(joins), common)
    else:
        times = [draw(st.integers(1, 2)) for _ in parts]
        splits = [part.gain.denominator * k for part, k in zip(parts, times, strict=True)]
        joins = [part.gain.numerator * k for part, k in zip(parts, times, strict=True)]
        split = f"roundrobin({', '.join(map(str, splits))})"
        gain = Fraction(sum(joins), sum(splits))
    joined = ", ".join(map(str, joins))
    return Written(f"splitjoin {{ split {split}; {added} join roundrobin({joined}); }}", gain)


@st.composite
def loops(draw: Draw, type_: str) -> Written:
    maker = _Maker(draw, type_, ["state"], 2)
    lines = f"state = {maker.expression(1)}; push({maker.expression(2)}); pop(); pop();"
    body = f"{type_}->{type_} filter {{ {type_} state; work push 1 pop 2 {{ {lines} }} }}"
    enqueued = " ".join(f"enqueue {maker.number()};" for _ in range(draw(st.integers(1, 4))))
    text = f"feedbackloop {{ join roundrobin(1, 1); body {body}; split duplicate; {enqueued} }}"
    return Written(text, Fraction(1))


def streams(type_: str, depth: int) -> st.SearchStrategy[Written]:
    if depth == 0:
        return filters(type_)
    return st.one_of(
        filters(type_), pipelines(type_, depth), split_joins(type_, depth), loops(type_)
    )


@st.composite
def programs(draw: Draw) -> tuple[str, list[float]]:
    """A text, and items for it."""
    type_ = draw(st.sampled_from(["int", "float"]))
    written = draw(streams(type_, 2))
    number = (st.integers(-100, 100) if type_ == "int"
              else st.floats(-100, 100, width=32, allow_subnormal=False))  # fmt: skip
    items: list[float] = draw(st.lists(number, min_size=5, max_size=30))
    return f"{type_}->{type_} pipeline P {{ add {written.text}; }}", items
