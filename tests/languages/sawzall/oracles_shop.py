"""Programs on the log of a shop, with dirt in it, beside plain Python."""

from __future__ import annotations

import binascii
import csv
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.languages.sawzall.oracles import case, summed

_CHANCE = random.Random(23)
_ITEMS = ["tea", "Kaffee", "süß", "", "tea pot", "mug,large"]


def _line(n: int) -> str:
    """At, user, item, price, how many; some are wrong, cut off or empty."""
    at = 1_700_000_000 + _CHANCE.randrange(40_000_000)
    price = _CHANCE.choice(["1.25", "10", "-3", "1e2", "free", "0x10", ""])
    whole = [str(at), f"u{_CHANCE.randrange(7)}", _CHANCE.choice(_ITEMS), price,
             _CHANCE.choice(["1", "2", "010", "12x", "3"])]  # fmt: skip
    return "" if n % 29 == 7 else "|".join(whole[: 5 - (n % 13 == 5) * 2])


SHOP = [_line(n) for n in range(150)]
_FIELDS = r"""
    f := sawzall(string(input), `[^|]*\|?`);
    strip := function(s: string): string {
      if (len(s) > 0 && s[$-1] == '|') return s[0:$-1];
      return s;
    };
    field := function(n: int): string { return strip(f[n]); };
"""


def _fields(line: str) -> list[str]:
    return line.split("|") if line else []


def _pieces(line: str) -> list[str]:
    """The fields, each with what ends it; nothing follows the last one."""
    return re.findall(r"[^|]*\||[^|]+", line)


def _int(text: str, base: int = 0) -> int | None:
    """As C reads it."""
    text = text.strip()
    digits = text.lstrip("+-")
    if base == 0:
        base = 16 if digits[:2].lower() == "0x" else 8 if digits[:1] == "0" else 10
    try:
        return int(text, base) if digits and "_" not in text else None
    except ValueError:
        return None


def _float(text: str) -> float | None:
    try:
        return float.fromhex(text) if text.startswith("0x") else float(text)
    except ValueError:
        return None


@case(
    _FIELDS
    + """
    # What can be read is counted; what cannot is counted apart, by the field that it is.
    bad: table sum[string] of int;
    spent: table sum[user: string] of { times: int, items: int };
    user := field(1);
    n: int = field(4);
    price: float = field(3);
    if (!def(user)) { emit bad["user"] <- 1; return; }
    if (!def(n)) { emit bad["n"] <- 1; n = 0; }
    if (!def(price)) emit bad["price"] <- 1;
    emit spent[user] <- { 1, n };
    """,
    SHOP,
)
def fields_that_may_be_missing(lines: list[str]) -> Iterator[str]:
    bad: Counter[tuple[object, ...]] = Counter()
    spent: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    for fields in map(_fields, lines):
        if len(fields) < 2:
            bad["user",] += 1
            continue
        n = _int(fields[4]) if len(fields) > 4 else None
        bad["n",] += n is None
        bad["price",] += len(fields) < 4 or _float(fields[3]) is None
        spent[fields[1],][0] += 1
        spent[fields[1],][1] += n or 0
    yield from summed("bad", dict(bad))
    yield from summed("spent", {k: f"{{ {a}, {b} }}" for k, (a, b) in spent.items()})


@case(
    _FIELDS
    + """
    # By the clocks of two towns; the record without a time is rejected.
    static zones: array of string = { "America/New_York", "Asia/Kolkata" };
    t: time = int(field(0), 10) * 1000000;
    by: table sum[zone: string][day: int][hour: int] of int;
    months: table sum[string] of int;
    for (i := 0; i < len(zones); i++)
      emit by[zones[i]][dayofweek(t, zones[i])][hourof(t, zones[i]) / 6] <- 1;
    emit months[formattime("%Y-%m", trunctomonth(t, zones[0]), zones[0])] <- 1;
    first: table minimum(1) of string weight time;
    emit first <- string(addday(t, 1, zones[0]), zones[0]) weight t;
    """,
    SHOP,
    rejected=sum(not line for line in SHOP),
)
def by_the_clocks_of_two_towns(lines: list[str]) -> Iterator[str]:
    by: Counter[tuple[object, ...]] = Counter()
    months: Counter[tuple[object, ...]] = Counter()
    times = [int(line.split("|")[0]) for line in lines if line]
    for at in times:
        for zone in ("America/New_York", "Asia/Kolkata"):
            there = datetime.fromtimestamp(at, ZoneInfo(zone))
            by[zone, there.isoweekday(), there.hour // 6] += 1
        months[datetime.fromtimestamp(at, ZoneInfo("America/New_York")).strftime("%Y-%m"),] += 1
    yield from summed("by", dict(by))
    yield from summed("months", dict(months))
    day = datetime.fromtimestamp(min(times), ZoneInfo("America/New_York")) + timedelta(days=1)
    first = datetime.fromtimestamp(min(times), UTC)
    yield (
        f"first[] = {day:%a %b} {day.day:2} {day:%H:%M:%S %Z %Y}, "
        f"{first:%a %b} {first.day:2} {first:%H:%M:%S UTC %Y}"
    )


@case(
    _FIELDS
    + """
    # To protocol buffers and back; a field that was not set is not there.
    type Sale = proto { user: string @ 1, item: string @ 2, price: float = 9.5 @ 3,
                        parts: array of { n: int @ 1 } @ 4 };
    s: Sale = { field(1), "", 0.0, {} };
    clearproto(s.price);
    if (def(field(2)) && field(2) != "") s.item = field(2); else clearproto(s.item);
    for (i := 0; i < len(f); i++) s.parts = s.parts + { { len(strip(f[i])) } };
    raw := bytes(s);
    again: Sale = raw;
    assert(bytes(again) == raw);
    size: table sum[bool][bool] of { int, int };
    total := 0;
    when (i: each int; def(again.parts[i])) total += again.parts[i].n;
    emit size[inproto(again.item)][inproto(again.price)] <- { len(raw), total };
    assert(again.price == 9.5, format("%g", again.price));
    """,
    SHOP,
    rejected=sum(not line for line in SHOP),
)
def there_and_back_by_protocol_buffers(lines: list[str]) -> Iterator[str]:
    def part(tag: int, raw: bytes) -> bytes:
        return bytes([tag << 3 | 2, len(raw)]) + raw

    sizes: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    for fields in filter(None, map(_fields, lines)):
        raw = part(1, fields[1].encode())
        has_item = len(fields) > 2 and fields[2] != ""
        raw += part(2, fields[2].encode()) if has_item else b""
        lengths = [len(piece.rstrip("|")) for piece in _pieces("|".join(fields))]
        raw += b"".join(part(4, bytes([8, n])) for n in lengths)
        sizes[str(has_item).lower(), "false"][0] += len(raw)
        sizes[str(has_item).lower(), "false"][1] += sum(lengths)
    yield from summed("size", {k: f"{{ {a}, {b} }}" for k, (a, b) in sizes.items()})


@case(
    _FIELDS
    + """
    # A map of arrays, looked at with every way to quantify.
    by: map[string] of array of int = {:};
    for (i := 0; i < len(f); i++) {
      k := strip(f[i])[0:1];
      if (!haskey(by, k)) by[k] = {};
      by[k] = by[k] + { i, len(f[i]) };
    }
    found: table sum[string] of int;
    when (k: each string; len(by[k]) > 2) emit found["several"] <- 1;
    when (k: some string; by[k][0] == 2) emit found["of item " + k] <- 1;
    when (k: all string; len(by[k]) % 2 == 0) emit found["even"] <- 1;
    when (k: each string; i: some int; by[k][i] > 9) emit found["long"] <- by[k][i];
    when (k: each string; j: each string; by[k][0] < by[j][0] && k > j) emit found["swapped"] <- 1;
    """,
    SHOP,
)
def maps_of_arrays_quantified(lines: list[str]) -> Iterator[str]:
    found: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        by: dict[str, list[int]] = {}
        for i, piece in enumerate(_pieces(line)):
            by.setdefault(piece.rstrip("|")[:1], []).extend([i, len(piece)])
        found["several",] += sum(len(a) > 2 for a in by.values())
        item = next((k for k, a in sorted(by.items()) if a[0] == 2), None)
        if item is not None:
            found["of item " + item,] += 1
        found["even",] += 1
        found["long",] += sum(next((n for n in a if n > 9), 0) for a in by.values())
        found["swapped",] += sum(by[k][0] < by[j][0] and k > j for k in by for j in by)
    yield from summed("found", {k: n for k, n in found.items() if n})


@case(
    _FIELDS
    + """
    # Functions of functions: a list of checks, each with what it was made of; a memory in one.
    type Check = function(s: string): bool;
    longer := function(n: int): Check { return function(s: string): bool { return len(s) > n; }; };
    has := function(p: string): Check { return function(s: string): bool { return match(p, s); }; };
    no := function(c: Check): Check { return function(s: string): bool { return !c(s); }; };
    both := function(a: Check, b: Check): Check {
      return function(s: string): bool { return a(s) && b(s); };
    };
    checks: array of Check = { longer(20), has(`te+a`), no(has(`[0-9]x`)),
                               both(longer(5), no(has("ü"))) };
    counter := function(): function(by: int): int {
      n := 0;
      return function(by: int): int { n += by; return n; };
    };
    sum := counter();
    passed: table sum[int] of int;
    for (i := 0; i < len(checks); i++)
      if (checks[i](string(input))) { emit passed[i] <- 1; sum(1 << i); }
    kinds: table sum[mask: int] of int;
    emit kinds[sum(0)] <- 1;
    """,
    SHOP,
)
def checks_made_of_checks(lines: list[str]) -> Iterator[str]:
    passed: Counter[tuple[object, ...]] = Counter()
    kinds: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        is_x = re.search("[0-9]x", line) is None
        checks = [len(line) > 20, "tea" in line, is_x, len(line) > 5 and "ü" not in line]
        for i, holds in enumerate(checks):
            passed[i,] += holds
        kinds[sum(holds << i for i, holds in enumerate(checks)),] += 1
    yield from summed("passed", dict(passed))
    yield from summed("kinds", dict(kinds))


@case(
    _FIELDS
    + """
    # Checksums of bytes, in hexadecimal and back, and parts that are put elsewhere.
    crc := function(b: bytes): int {
      c := 0xffffffff;
      for (i := 0; i < len(b); i++) {
        c = c ^ b[i];
        for (k := 0; k < 8; k++)
          if (c & 1 == 1) c = c >> 1 ^ 0xedb88320; else c = c >> 1;
      }
      return c ^ 0xffffffff;
    };
    b := input;
    hex := string(b, "hex");
    assert(bytes(hex, "hex") == b);
    at := bytesfind(B"|u", b);
    if (at >= 0) b[at:at+2] = B"<user>";
    sums: table sum of int;
    emit sums <- crc(b);
    ends: table collection of string;
    if (len(hex) % 16 == 0)
      emit ends <- hex[$-4:$] + format(":%x:%o", len(hex), bytesrfind(B"1", b));
    """,
    SHOP,
)
def checksums_of_bytes(lines: list[str]) -> Iterator[str]:
    total = 0
    ends = []
    for line in lines:
        raw = line.encode()
        text = raw.hex()
        raw = raw.replace(b"|u", b"<user>", 1)
        total += binascii.crc32(raw)
        if len(text) % 16 == 0:
            last = raw.rfind(b"1") % 2**64
            ends.append(f"{text[-4:]}:{len(text):x}:{last:o}")
    yield f"sums[] = {total}"
    yield from (f"ends[] = {end}" for end in sorted(ends))


@case(
    """
    # Cells with commas and quotes in them; what they say in other bases.
    cells := splitcsvline(bytes(strreplace(string(input), "|", ",", true)));
    width: table sum[cells: int] of int;
    emit width[len(cells)] <- 1;
    bases: table sum[string] of int;
    static base: array of int = { 2, 8, 10, 16, 36, 0 };
    for (i := 0; i < len(cells); i++)
      for (j := 0; j < len(base); j++) {
        n: int = int(string(cells[i]), base[j]);
        if (!def(n)) continue;
        emit bases[string(base[j]) + ":" + string(n % 1000, 36)] <- 1;
      }
    """,
    SHOP,
)
def cells_in_other_bases(lines: list[str]) -> Iterator[str]:
    width: Counter[tuple[object, ...]] = Counter()
    found: Counter[tuple[object, ...]] = Counter()
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"

    def in_36(n: int) -> str:
        made = ""
        rest = abs(n)
        while rest:
            rest, digit = divmod(rest, 36)
            made = digits[digit] + made
        return ("-" if n < 0 else "") + (made or "0")

    for line in lines:
        cells = next(csv.reader([line.replace("|", ",")]))
        width[len(cells),] += 1
        for cell in cells:
            for base in (2, 8, 10, 16, 36, 0):
                n = _int(cell, base) if cell.isascii() and cell == cell.strip() else None
                if n is not None and -(2**63) <= n < 2**63:
                    found[f"{base}:{in_36(abs(n) % 1000 * (1 if n >= 0 else -1))}",] += 1
    yield from summed("width", dict(width))
    yield from summed("bases", dict(found))


@case(
    _FIELDS
    + r"""
    # What people are called, by words, tuples and what was left of them.
    kind := ?{
      k := "other";
      switch (field(2)) {
        case "tea", "tea pot": k = "tea";
        case "Kaffee": k = "coffee";
        case "": k = "nothing";
        default: if (matchposns(`ü(ß)?`, field(2))[1] == 3) k = "sweet";
      }
      result k;
    };
    sold: table sum[string][int] of int;
    switch ({ kind, len(f) }) {
      case { "tea", 5 }, { "tea", 6 }: emit sold["tea, whole"][0] <- 1;
      case { "nothing", 3 }: emit sold["nothing"][len(f)] <- 1;
      default: emit sold[kind][len(f)] <- 1;
    }
    m := matchstrs(`(?i)\|(k)?([a-z]+)( pot)?\|`, string(input));
    parts: table sum[string] of int;
    if (len(m) > 0) emit parts[format("%q/%s/%q", m[1], uppercase(m[2]), m[3])] <- 1;
    """,
    SHOP,
    rejected=sum(_fields(line)[2:3] in ([], ["mug,large"]) for line in SHOP),
)
def kinds_by_words_and_tuples(lines: list[str]) -> Iterator[str]:
    names = {"tea": "tea", "tea pot": "tea", "Kaffee": "coffee", "": "nothing", "süß": "sweet"}
    sold: Counter[tuple[object, ...]] = Counter()
    parts: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        fields = _fields(line)
        if len(fields) < 3 or fields[2] not in names:
            continue  # what does not match has no places
        count = len(_pieces(line))
        kind = names[fields[2]]
        if kind == "tea" and count in (5, 6):
            sold["tea, whole", 0] += 1
        else:
            sold[kind, count] += 1
        m = re.search(r"\|(k)?([a-z]+)( pot)?\|", line, re.IGNORECASE)
        if m:
            parts[f'"{m[1] or ""}"/{m[2].upper()}/"{m[3] or ""}"',] += 1
    yield from summed("sold", dict(sold))
    yield from summed("parts", dict(parts))


@case(
    _FIELDS
    + """
    # The best by weights of two parts; users by how much they are seen; a set that is too large.
    u := field(1);
    n := int(field(0), 10);
    best: table maximum(2)[user: string] of when_: int weight { size: int, last: int };
    least: table minimum(3) of string weight { string, int };
    many: table set(3)[first: string] of string;
    static kMost := 4;
    tops: table top(kMost) of string weight float;
    spread: table quantile(5) of int;
    emit best[u] <- n weight { len(f), n % 1000 };
    emit least <- format("%05d", n % 100000) weight { u, -n };
    emit many[u[1:2]] <- string(n % 5);
    emit tops <- u weight 0.25 * float(n % 3);
    emit spread <- n % 97;
    """,
    SHOP,
    rejected=sum(not line for line in SHOP),
)
def weights_of_two_parts(lines: list[str]) -> Iterator[str]:
    best: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    least = []
    many: dict[str, set[str]] = defaultdict(set)
    tops: Counter[str] = Counter()
    spread = []
    for line in filter(None, lines):
        u, n = line.split("|")[1], int(line.split("|")[0])
        count = len(_pieces(line))
        best[u].append((count, n % 1000, n))
        least.append((u, -n, f"{n % 100000:05}"))
        many[u[1:2]].add(str(n % 5))
        tops[u] += n % 3
        spread.append(n % 97)
    for u in sorted(best):
        ranked = sorted(best[u], key=lambda b: (-b[0], -b[1], b[2]))[:2]
        yield from (f"best[{u}] = {n}, {{ {size}, {last} }}" for size, last, n in ranked)
    for u, n, text in sorted(least)[:3]:
        yield f'least[] = {text}, {{ "{u}", {n} }}'
    for first in sorted(many):
        if len(many[first]) <= 3:
            yield from (f"many[{first}] = {text}" for text in sorted(many[first]))
    for u, thirds in sorted(tops.items(), key=lambda one: (-one[1], one[0]))[:4]:
        yield f"tops[] = {u}, {thirds / 4:g}, 0"
    spread.sort()
    for k in range(5):
        yield f"spread[] = {spread[-1] if k == 4 else spread[len(spread) * k // 4]}"
