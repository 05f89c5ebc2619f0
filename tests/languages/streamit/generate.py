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


# --- rates that change, and messages --------------------------------------------------------


@st.composite
def changing(draw: Draw, type_: str) -> str:
    """A filter whose firings take and give as many items as others say."""
    maker = _Maker(draw, type_, ["state", "x"], 0)
    count = "x & 3" if type_ == "int" else "(int)(abs(x)) & 3"
    taken = draw(st.sampled_from(["x = x + pop();", "x = peek(0) - pop();", "x = x - peek(i);"]))
    more = draw(st.sampled_from([f"push({maker.expression(1)});", "push(x); push(state);"]))
    kinds = {
        "pop [1, *] push 1": f"for (int i = 0; i < n; i++) {{ {taken} }} push(x);",
        "pop * push *": f"for (int i = 0; i < n; i++) {{ {taken} {more} }}",
        "pop 1 push [0, 6]": f"for (int i = 0; i < n; i++) {{ {more} }}",
        "pop 1 push [0, 2]": f"if (x > {maker.number()}) {{ {more} }}",
    }
    rates = draw(st.sampled_from(sorted(kinds)))
    body = kinds[rates].replace("peek(i)", "peek(0)" if rates.startswith("pop 1") else "peek(i)")
    keep = draw(st.sampled_from(["", f"state = {maker.expression(1)};"]))
    return (f"{type_}->{type_} filter {{ {type_} state = {maker.number()}; "
            f"work {rates} {{ {type_} x = pop(); int n = {count}; {body} {keep} }} }}")  # fmt: skip


@st.composite
def changing_programs(draw: Draw) -> tuple[str, list[float]]:
    """A pipeline in which rates change, and items for it."""
    type_ = draw(st.sampled_from(["int", "float"]))
    parts = [draw(changing(type_))]
    for _ in range(draw(st.integers(0, 2))):
        plain = draw(st.booleans())
        part = draw(streams(type_, 1)).text if plain else draw(changing(type_))
        parts.insert(draw(st.integers(0, len(parts))), part)
    added = " ".join(f"add {part};" for part in parts)
    return f"{type_}->{type_} pipeline P {{ {added} }}", draw(_items(type_))


@st.composite
def messaging_programs(draw: Draw) -> tuple[str, list[float]]:
    """A pipeline in which one filter tells another something, and items for it."""
    type_ = draw(st.sampled_from(["int", "float"]))
    listener, teller = (_Maker(draw, type_, names, 1) for names in (["kept"], ["kept", "by"]))
    up, rates = draw(st.booleans()), [draw(st.integers(1, 3)) for _ in range(4)]
    least = draw(st.integers(1 if up else 0, 4))
    latency = draw(st.sampled_from(["", "[*]", f"[{least}:{least + 1}]"])) if not up else (
        f"[{least}:{least}]")  # fmt: skip
    named = f"""{type_}->{type_} filter Listener {{
        {type_} kept = {listener.number()};
        work pop {rates[0]} push {rates[1]} {{
            for (int i = 0; i < {rates[1]}; i++) push({listener.expression(1)} + kept + i);
            for (int i = 0; i < {rates[0]}; i++) pop();
        }}
        handler hear({type_} by) {{ kept = {teller.expression(1).replace("peek(0)", "by")}; }}
    }}
    {type_}->{type_} filter Teller(portal<Listener> p) {{
        {type_} kept; int n;
        work pop {rates[2]} push {rates[3]} {{
            n++;
            kept = {listener.expression(1)};
            if (n % {draw(st.integers(1, 3))} == 0) p.hear(peek(0)) {latency};
            for (int i = 0; i < {rates[3]}; i++) push(peek(0) - i);
            for (int i = 0; i < {rates[2]}; i++) pop();
        }}
    }}"""
    ends = ["add Listener to p;", "add Teller(p);"]
    between = [f"add {part.text};" for part in draw(st.lists(filters(type_), max_size=2))]
    first, last = ends if up else reversed(ends)
    around = [f"add {draw(filters(type_)).text};" if draw(st.booleans()) else "" for _ in range(2)]
    added = " ".join([around[0], first, *between, last, around[1]])
    text = f"{named} {type_}->{type_} pipeline P {{ portal<Listener> p; {added} }}"
    return text.replace("iter()", "3"), draw(_items(type_))


# --- programs -------------------------------------------------------------------------------


def _items(type_: str) -> st.SearchStrategy[list[float]]:
    number: st.SearchStrategy[float] = (
        st.integers(-100, 100)
        if type_ == "int"
        else st.floats(-100, 100, width=32, allow_subnormal=False)
    )
    return st.lists(number, min_size=5, max_size=30)


@st.composite
def programs(draw: Draw) -> tuple[str, list[float]]:
    """A text, and items for it."""
    type_ = draw(st.sampled_from(["int", "float"]))
    written = draw(streams(type_, 2))
    return f"{type_}->{type_} pipeline P {{ add {written.text}; }}", draw(_items(type_))
