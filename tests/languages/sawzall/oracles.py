"""Programs as people write them, each beside what plain Python makes of the same lines."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

Oracle = Callable[[list[str]], Iterator[str]]


@dataclass(frozen=True)
class Case:
    """A program, lines for it, and what is printed, by another way; `names` are options."""

    program: str
    lines: list[str]
    oracle: Oracle
    names: tuple[tuple[str, str], ...] = ()
    rejected: int = 0


CASES: dict[str, Case] = {}


def case(
    program: str, lines: list[str], *, rejected: int = 0, **names: str
) -> Callable[[Oracle], Oracle]:
    def kept(oracle: Oracle) -> Oracle:
        options = tuple((name.replace("_", "-"), text) for name, text in names.items())
        CASES[oracle.__name__] = Case(program, lines, oracle, options, rejected)
        return oracle

    return kept


def summed(name: str, counts: dict[tuple[object, ...], object]) -> Iterator[str]:
    """A table as it is printed, in the order of its indexes."""
    for key in sorted(counts):
        yield f"{name}{''.join(f'[{k}]' for k in key) or '[]'} = {counts[key]}"


# --- what programs read -----------------------------------------------------------------------

_CHANCE = random.Random(11)
_WORDS = ["map", "reduce", "emit", "table", "the", "of", "Sawzall", "log", "a"]
TEXT = [" ".join(_CHANCE.choices(_WORDS, k=_CHANCE.randrange(9))) for _ in range(60)]
ACCESS = [
    f'10.0.{_CHANCE.randrange(3)}.{_CHANCE.randrange(256)} - - '
    f'[{_CHANCE.randrange(1, 29):02}/Feb/2026:{_CHANCE.randrange(24):02}:15:00 +0000] '
    f'"{_CHANCE.choice(["GET", "POST"])} /{_CHANCE.choice(["", "a", "b/c"])}?q={n} HTTP/1.1" '
    f'{_CHANCE.choice([200, 200, 302, 404, 500])} {_CHANCE.choice(["-", "0", "17", "4096"])}'
    for n in range(80)
]  # fmt: skip
QUERIES = [
    json.dumps({"user": _CHANCE.randrange(9), "query": _CHANCE.choice(_WORDS), "ms": n * 7 % 101})
    for n in range(70)
]
PAIRS = [
    " ".join(f"k{_CHANCE.randrange(4)}={_CHANCE.randrange(-9, 99)}" for _ in range(n % 5))
    for n in range(40)
]
NUMBERS = ["3", "-4", "0x1f", "017", "", "seven", "2.5", "9223372036854775807", "1e3", "0", "12 "]


# --- the programs -------------------------------------------------------------------------------


@case(
    """
    count: table sum[word: string] of int;
    longest: table maximum(2) of word: string weight length: int;
    words: array of string = sawzall(string(input), `[A-Za-z]+`);
    for (i: int = 0; i < len(words); i++) {
      emit count[lowercase(words[i])] <- 1;
      if (len(words[i]) > 5) emit longest <- words[i] weight len(words[i]);
    }
    """,
    TEXT,
)
def words(lines: list[str]) -> Iterator[str]:
    counts = Counter(word.lower() for line in lines for word in line.split())
    yield from summed("count", {(w,): n for w, n in counts.items()})
    large = sorted((-len(w), w) for line in lines for w in line.split() if len(w) > 5)
    yield from (f"longest[] = {w}, {-n}" for n, w in large[:2])


@case(
    r"""
    type Hit = {host: string, when: time, method: string, page: string, code: int, size: int};
    hits: table sum[network: string][class: int] of {count: int, bytes: int};
    pages: table top(3) of page: string;
    busy: table sum[hour: int] of int;
    parse := function(line: string): Hit {
      m := matchstrs(`^(\S+) - - \[(\d+)/(\w+)/(\d+):(\S+) \S+\] "(\w+) ([^ ?]+)\S* [^"]*" `
                     + `(\d+) (\d+|-)$`, line);
      when_: time = m[3] + " " + m[2] + " " + m[5] + " " + m[4];
      size := 0;
      if (m[9] != "-") size = int(m[9]);
      return {m[1], when_, m[6], m[7], int(m[8]), size};
    };
    h := parse(string(input));
    network := saw(h.host, `^\d+\.\d+\.\d+`)[0];
    emit hits[network][h.code / 100] <- {1, h.size};
    emit pages <- h.page;
    emit busy[hourof(h.when, "Asia/Tokyo")] <- 1;
    """,
    ACCESS,
)
def access_log(lines: list[str]) -> Iterator[str]:
    hits: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    pages: Counter[str] = Counter()
    busy: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        host, _, _, when, _, _, page, _, code, size = line.split(" ")
        cell = hits[host.rsplit(".", 1)[0], int(code) // 100]
        cell[0] += 1
        cell[1] += 0 if size == "-" else int(size)
        pages[page.split("?")[0]] += 1
        at = datetime.strptime(when[1:], "%d/%b/%Y:%H:%M:%S").replace(tzinfo=UTC)
        busy[at.astimezone(ZoneInfo("Asia/Tokyo")).hour,] += 1
    yield from summed("hits", {k: f"{{ {a}, {b} }}" for k, (a, b) in hits.items()})
    best = sorted(pages.items(), key=lambda item: (-item[1], item[0]))[:3]
    yield from (f"pages[] = {page}, {n}, 0" for page, n in best)
    yield from summed("busy", dict(busy))


@case(
    """
    r: {user: int, query: string, ms: int} = input;
    slow: table maximum(3)[user: int] of query: string weight ms: int;
    fast: table minimum(1) of query: string weight ms: int;
    users: table unique(1000) of user: int;
    asked: table set(20)[user: int] of query: string;
    times: table quantile(3) of ms: int;
    emit slow[r.user] <- r.query weight r.ms;
    emit fast <- r.query weight r.ms;
    emit users <- r.user;
    emit asked[r.user] <- r.query;
    emit times <- r.ms;
    """,
    QUERIES,
)
def query_log(lines: list[str]) -> Iterator[str]:
    rows = [json.loads(line) for line in lines]
    by_user: dict[int, list[tuple[int, str]]] = defaultdict(list)
    for row in rows:
        by_user[row["user"]].append((row["ms"], row["query"]))
    for user in sorted(by_user):
        largest = sorted(by_user[user], key=lambda item: (-item[0], item[1]))[:3]
        yield from (f"slow[{user}] = {query}, {ms}" for ms, query in largest)
    least = min((row["ms"], row["query"]) for row in rows)
    yield f"fast[] = {least[1]}, {least[0]}"
    yield f"users[] = {len(by_user)}"
    for user in sorted(by_user):
        yield from (f"asked[{user}] = {q}" for q in sorted({q for _, q in by_user[user]}))
    times = sorted(row["ms"] for row in rows)
    middle = times[math.ceil(len(times) / 2) - 1]
    yield from (f"times[] = {t}" for t in (times[0], middle, times[-1]))


@case(
    """
    total: table sum[key: string] of int;
    m: map[string] of int = {:};
    kv := sawzall(string(input), `[a-z0-9]+`, skip `=`, `-?[0-9]+`);
    for (i := 0; i + 1 < len(kv); i = i + 2)
      m[kv[i]] = lookup(m, kv[i], 0) + int(kv[i + 1]);
    ks := sort(keys(m));
    line := "";
    when (i: each int; m[ks[i]] > 0) {
      emit total[ks[i]] <- m[ks[i]];
      line = line + ks[i] + ";";
    }
    if (len(line) > 0) emit stdout <- line;
    when (i: some int; j: all int; m[ks[i]] >= m[ks[j]])
      emit total["most " + ks[i]] <- 1;
    """,
    PAIRS,
)
def maps_and_when(lines: list[str]) -> Iterator[str]:
    total: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        found: Counter[str] = Counter()
        for key, value in re.findall(r"(\w+)=(-?\d+)", line):
            found[key] += int(value)
        positive = [key for key in sorted(found) if found[key] > 0]
        for key in positive:
            total[key,] += found[key]
        if positive:
            yield "".join(f"{key};" for key in positive)
        largest = [k for k in sorted(found) if found[k] == max(found.values())]
        if largest:
            total[f"most {largest[0]}",] += 1
    yield from summed("total", dict(total))


def _as_c(text: str) -> int | None:
    """The number that C's rules read in a whole text."""
    match = re.fullmatch(r"([+-]?)(0x[0-9a-f]+|0[0-7]*|[1-9][0-9]*)", text)
    if match is None:
        return None
    sign, digits = match.groups()
    base = 16 if digits.startswith("0x") else 8 if digits.startswith("0") else 10
    return int(sign + digits, base)


@case(
    """
    n: table sum of int;
    good: table collection of int;
    i: int = string(input);
    emit n <- 1;
    emit good <- i;
    emit n <- 1;
    """,
    NUMBERS,
    rejected=5,
)
def rejected_whole(lines: list[str]) -> Iterator[str]:
    values = [v for v in map(_as_c, lines) if v is not None]
    yield f"n[] = {2 * len(values)}"
    yield from (f"good[] = {v}" for v in sorted(values))


@case(
    """
    n: table sum of int;
    good: table collection of int;
    i: int = string(input);
    emit n <- 1;
    emit good <- i;
    emit n <- 1;
    """,
    NUMBERS,
    ignore_undefs="true",
)
def passed_over(lines: list[str]) -> Iterator[str]:
    values = [v for v in map(_as_c, lines) if v is not None]
    yield f"_undef_cnt[] = {len(lines) - len(values)}"
    yield f'_undef_details[program.szl:6:5: "i" has no value] = {len(lines) - len(values)}'
    yield f"n[] = {2 * len(lines)}"
    yield from (f"good[] = {v}" for v in sorted(values))


@case(
    """
    fib := function(n: int): int { if (n < 2) return n; return fib(n - 1) + fib(n - 2); };
    apply := function(f: function(n: int): int, n: int): int { return f(f(n)); };
    n: int = string(input);
    if (!def(n) || n < 0 || n > 15) return;
    twice := function(k: int): int {
      inner := function(j: int): int { return j + n; };
      return inner(k) * 2;
    };
    emit stdout <- format("%d %d %d", fib(n), apply(twice, 1), ?{
      s := 0;
      for (i := 0; i <= n; i++) { if (i % 3 == 0) continue; s = s + i; }
      result s;
    });
    """,
    [str(n) for n in range(-2, 20)],
)
def functions(lines: list[str]) -> Iterator[str]:
    def fib(n: int) -> int:
        return n if n < 2 else fib(n - 1) + fib(n - 2)

    for n in (int(line) for line in lines if 0 <= int(line) <= 15):
        yield f"{fib(n)} {((1 + n) * 2 + n) * 2} {sum(i for i in range(n + 1) if i % 3)}"


@case(
    """
    static days: array of string = {"", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"};
    static zone: string = "America/New_York";
    days_: table sum[day: string] of int;
    t: time = int(string(input)) * 1000000;
    emit days_[days[dayofweek(t, zone)]] <- 1;
    emit stdout <- format("%t %s", trunctomonth(t), string(addday(t, 40, zone), zone));
    emit stdout <- format("%d-%02d-%02d %d %02d:%02d:%02d", yearof(t), monthof(t), dayofmonth(t),
                          dayofyear(t), hourof(t), minuteof(t), secondof(t));
    """,
    [str(n * 3_000_017 + 1_700_000_000) for n in range(30)],
)
def times(lines: list[str]) -> Iterator[str]:
    zone = ZoneInfo("America/New_York")
    days: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        at = datetime.fromtimestamp(int(line), UTC)
        there = at.astimezone(zone)
        days[f"{there:%a}",] += 1
        month = at.replace(day=1, hour=0, minute=0, second=0)
        later = (there.replace(tzinfo=None) + timedelta(days=40)).replace(tzinfo=zone)
        yield (
            f"{month:%a %b} {month.day:2} {month:%H:%M:%S} UTC {month.year} "
            f"{later:%a %b} {later.day:2} {later:%H:%M:%S} {later:%Z %Y}"
        )
        yield (
            f"{at.year}-{at.month:02}-{at.day:02} {at.timetuple().tm_yday} "
            f"{at.hour:02}:{at.minute:02}:{at.second:02}"
        )
    yield from summed("days_", dict(days))


@case(
    """
    type Row = {name: string, tags: array of string, size: float};
    by: table sum[name: string][tags: int] of {rows: int, size: float};
    all_: table collection[name: string] of row: Row;
    cells := splitcsvline(input);
    r: Row = {string(cells[0]), sawzall(string(cells[1]), `[^|]+`), string(cells[2])};
    r.name = uppercase(r.name[0:1]) + r.name[1:$];
    emit by[r.name][len(r.tags)] <- {1, r.size};
    if (len(r.tags) > 2) emit all_[r.name] <- r;
    """,
    ["x,a|b,1.5", '"x",a|b|c,2', 'yy,"a",0.25', '"x, y",,4', "x,q|r,8", "bad", 'yy,"p|q|r|s",1'],
    rejected=1,
)
def tuples(lines: list[str]) -> Iterator[str]:
    sums: dict[tuple[object, ...], list[float]] = defaultdict(lambda: [0, 0.0])
    rows: list[tuple[str, list[str], float]] = []
    for name, tags, size in (r for r in csv.reader(io.StringIO("\n".join(lines))) if len(r) == 3):
        named, parts = name[:1].upper() + name[1:], [t for t in tags.split("|") if t]
        sums[named, len(parts)][0] += 1
        sums[named, len(parts)][1] += float(size)
        if len(parts) > 2:
            rows.append((named, parts, float(size)))
    yield from summed("by", {k: f"{{ {n}, {s:g} }}" for k, (n, s) in sums.items()})
    for named, parts, amount in sorted(rows):
        shown = ", ".join(f'"{p}"' for p in parts)
        yield f'all_[{named}] = {{ "{named}", {{ {shown} }}, {amount:g} }}'


@case(
    """
    kinds: table sum[kind: string] of int;
    s := string(input);
    n: int = s;
    f: float = s;
    kind: string = "text";
    if (def(n)) kind = "int"; else if (def(f)) kind = "float";
    switch (kind) {
      case "int":
        switch (n % 3) {
          case 0: kind = "int 0";
          case 1, -1: kind = "int 1";
          default: kind = "int 2";
        }
      case "float", "double": if (f > 2.0) break; kind = "small";
      default: assert(len(s) > 0, "an empty line");
    }
    emit kinds[kind] <- 1;
    """,
    NUMBERS,
    rejected=1,
)
def switches(lines: list[str]) -> Iterator[str]:
    kinds: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        value = _as_c(line)
        if value is not None:
            kinds[f"int {(0, 1, 2)[abs(value) % 3]}",] += 1
        elif re.fullmatch(r"[\d.]+(e\d+)?", line):
            kinds["float" if float(line) > 2 else "small",] += 1
        elif line:
            kinds["text",] += 1
    yield from summed("kinds", dict(kinds))


@case(
    """
    b := bytes(string(input));
    emit stdout <- string(b, "hex") + " " + string(tobase64(b, false)) + " " + string(len(b));
    emit stdout <- string(string(b, "latin-1") == string(input));
    s := string(input);
    emit stdout <- format("%s|%10.3s|%-6s|%q", s, s, string(len(input)), s);
    x: int = len(input) * 1000;
    f := float(x);
    emit stdout <- format("%d %5d %-5d| %05d %x %X %o %c %g %.2f %e %b",
                          x, x, x, x, x, x, x, 'é', f, f, f, x > 0);
    emit stdout <- string(bytes(x, "varint"), "hex") + " "
      + string(bytes(x, "fixed32-little"), "hex") + " " + string(bytes(x, "fixed64-big"), "hex")
      + " " + string(int(bytes(-x, "zigzag"), "zigzag"));
    emit stdout <- string(x, 2) + " " + string(x, 16) + " " + string(int(string(x, 36), 36)) + " "
      + string(uint(-x));
    """,
    ["", "abc", "naïve", "日本", 'say "hi"'],
)
def formats(lines: list[str]) -> Iterator[str]:
    import base64

    for line in lines:
        raw = line.encode()
        n = len(raw) * 1000
        quoted = '"' + line.replace('"', '\\"') + '"'
        yield f"{raw.hex()} {base64.b64encode(raw).decode()} {len(raw)}"
        yield "true" if line.isascii() else "false"
        yield f"{line}|{line[:3]:>10}|{len(raw)!s:<6}|{quoted}"
        yield (
            f"{n} {n:5} {n:<5}| {n:05} {n:x} {n:X} {n:o} é {n:g} {n:.2f} {n:e} "
            + ("true" if n else "false")
        )
        low, rest = n & 127, n >> 7
        varint = bytes([low]) if not rest else bytes([low | 128, rest])
        yield (f"{varint.hex()} {n.to_bytes(4, 'little').hex()} {n.to_bytes(8, 'big').hex()} {-n}")
        yield f"{n:b} {n:x} {n} {-n % 2**64}"


@case(
    """
    origins: table sum;
    targets: table sum;
    rec: input;
    f := function(r: bytes): string { return saw(string(r), `^\\S+`)[0]; };
    emit origins[f(rec)] ← 1;
    emit targets[len(string(rec))] ← 1.5;
    """,
    ["a b", "b", "a c", "long line"],
)
def core_syntax(lines: list[str]) -> Iterator[str]:
    firsts = Counter(line.split()[0] for line in lines)
    sizes = Counter(len(line) for line in lines)
    yield from summed("origins", {(k,): n for k, n in firsts.items()})
    yield from summed("targets", {(k,): f"{1.5 * n:g}" for k, n in sizes.items()})


@case(
    """
    type Point = proto {
      x: int @ 1: sint32, y: float @ 2: float, label: string = "none" @ 5, more: array of int @ 9
    };
    seen: table sum[label: string] of int;
    parts := saw(string(input), `-?\\d+`, skip ` `, `-?[0-9.]+`, skip ` ?`, `.*`);
    p: Point = {int(parts[0]), float(parts[1]), parts[2], {1, int(parts[0])}};
    if (parts[2] == "") clearproto(p.label);
    raw := bytes(p);
    q: Point = raw;
    emit seen[q.label] <- 1;
    emit stdout <- string(raw, "hex") + " " + string(inproto(q.label)) + " " + string(q.more);
    """,
    ["1 0.5 a", "-3 2 ", "7 -1.25 b", "64 0 a"],
)
def protos(lines: list[str]) -> Iterator[str]:
    import struct

    seen: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        x, y, label = line.split(" ")
        n = int(x)
        raw = bytes([8]) + _varint(2 * n if n >= 0 else -2 * n - 1)
        raw += b"\x15" + struct.pack("<f", float(y))
        if label:
            raw += b"\x2a" + _varint(len(label)) + label.encode()
        raw += b"\x48\x01\x48" + _varint(n % 2**64)
        seen[label or "none",] += 1
        yield f"{raw.hex()} {'true' if label else 'false'} {{ 1, {n} }}"
    yield from summed("seen", dict(seen))


def _varint(number: int) -> bytes:
    low, rest = number & 127, number >> 7
    return bytes([low]) if not rest else bytes([low | 128]) + _varint(rest)


@case(
    r"""
    left: string;
    a := sawn(2, string(input), `\w+`, skip ` *`, rest left);
    emit stdout <- string(a) + "|" + left;
    m := matchposns(`(\w+) (\w+)?`, string(input));
    emit stdout <- string(m);
    k: array of string = saw(string(input), submatch `^(\w)(\w*)`, regex(int));
    emit stdout <- string(k);
    s := string(input);
    emit stdout <- strreplace(s, "ma", "<>", true) + string(strfind("e", s))
      + string(strrfind("e", s));
    """,
    ["map reduce", "emit", "", "of 12 the 34", "a -5 b"],
)
def cutting(lines: list[str]) -> Iterator[str]:
    def shown(items: list[object]) -> str:
        inside = ", ".join(f'"{i}"' if isinstance(i, str) else str(i) for i in items)
        return f"{{ {inside} }}" if items else "{}"

    for line in lines:
        found, at = [], 0
        for _ in range(2):
            match = re.compile(r"\w+").search(line, at)
            if match is None:
                break
            found.append(match[0])
            at = re.compile(r" *").search(line, match.end()).end()  # type: ignore[union-attr]
        yield f"{shown(list(found))}|{line[at:]}"
        match = re.search(r"(\w+) (\w+)?", line)
        spans = [] if match is None else [p for n in range(3) for p in match.span(n)]
        yield shown(list(spans))
        first = re.match(r"(\w)(\w*)", line)
        cuts: list[object] = [] if first is None else [first[1], first[2]]
        number = first and re.search(r"[-+]?\d+", line[first.end() :])
        yield shown(cuts + ([number[0]] if number else []))
        yield line.replace("ma", "<>") + f"{line.find('e')}{line.rfind('e')}"


@case(
    """
    sizes: table sum[k: string][even: bool] of {n: int, m: map[string] of int};
    heavy: table top(2)[k: string] of word: string weight w: float;
    rare: table inversehistogram(100) of word: string;
    drawn: table distinctsample(100) of word: string weight w: int;
    w := sawzall(string(input), `\\w+`);
    for (i := 0; i < len(w); i++) {
      emit sizes[w[i][0:1]][len(w[i]) % 2 == 0] <- {1, {w[i]: i}};
      emit heavy[w[i][0:1]] <- w[i] weight float(len(w[i])) / 2.0;
      emit rare <- w[i];
      emit drawn <- w[i] weight i;
    }
    """,
    TEXT[:20],
)
def many_tables(lines: list[str]) -> Iterator[str]:
    sums: dict[tuple[str, bool], tuple[list[int], Counter[str]]] = {}
    heavy: dict[str, Counter[str]] = defaultdict(Counter)
    words_: Counter[str] = Counter()
    weights: Counter[str] = Counter()
    for line in lines:
        for place, word in enumerate(line.split()):
            count, inside = sums.setdefault((word[0], len(word) % 2 == 0), ([0], Counter()))
            count[0] += 1
            inside[word] += place
            heavy[word[0]][word] += len(word)
            words_[word] += 1
            weights[word] += place
    for (k, even), (count, inside) in sorted(sums.items()):
        parts = ", ".join(f'"{w}": {inside[w]}' for w in sorted(inside))
        yield f"sizes[{k}][{str(even).lower()}] = {{ {count[0]}, {{ {parts} }} }}"
    for k in sorted(heavy):
        best = sorted(heavy[k].items(), key=lambda item: (-item[1], item[0]))[:2]
        yield from (f"heavy[{k}] = {word}, {n / 2:g}, 0" for word, n in best)
    often = Counter(words_.values())
    yield from (f"rare[] = {n}, {often[n]}" for n in sorted(often))
    yield from (f"drawn[] = {w}, {weights[w]}" for w in sorted(weights))


@case(
    """
    u: uint = string(input);
    if (!def(u)) { emit stdout <- "none"; return; }
    emit stdout <- format("%u %u %u %d", u + 1u, u * u, u >> 3u, int(u));
    i := int(u);
    emit stdout <- format("%d %d %d %d %d %d",
                          i / 7, i % 7, -i / 7, -i % 7, i << 3, ~i & 255 | 1 ^ 6);
    emit stdout <- string(i > 5 && u < 100u || i == 0) + string(float(i) / 0.0)
      + string(abs(-i) + max(i, 3) - min(2, i));
    a: array of int = {i, i + 1, i + 2};
    a[1:2] = {7, 8, 9};
    a[$ - 1]++;
    emit stdout <- string(a) + string(a[1:$]) + string(a[-5:99]) + string(sortx(a))
      + string(len(a + a));
    """,
    ["0", "1", "12", "18446744073709551615", "x", "-1"],
)
def arithmetic(lines: list[str]) -> Iterator[str]:
    mask = 2**64 - 1

    def signed(n: int) -> int:
        return (n + 2**63 & mask) - 2**63

    def quotient(a: int, b: int) -> int:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)

    def array(items: list[int]) -> str:
        return "{ " + ", ".join(map(str, items)) + " }"

    for line in lines:
        if not re.fullmatch(r"\d+", line):
            yield "none"
            continue
        u = int(line)
        i = signed(u)
        yield f"{u + 1 & mask} {u * u & mask} {u >> 3} {i}"
        minus = signed(-i)
        yield (
            f"{quotient(i, 7)} {i - quotient(i, 7) * 7} {quotient(minus, 7)} "
            f"{minus - quotient(minus, 7) * 7} {signed(i << 3)} {(~i & 255 | 1) ^ 6}"
        )
        size = abs(signed(-i))
        truth = (i > 5 and u < 100) or i == 0
        divided = "nan" if i == 0 else "inf" if i > 0 else "-inf"
        yield f"{str(truth).lower()}{divided}{size + max(i, 3) - min(2, i)}"
        a = [i, 7, 8, 9, i + 3]
        order = sorted(range(5), key=lambda n: (a[n], n))
        yield array(a) + array(a[1:]) + array(a) + array(order) + "10"
