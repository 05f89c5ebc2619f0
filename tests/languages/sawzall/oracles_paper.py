"""More programs as people write them, in the style of the published ones."""

from __future__ import annotations

import base64
import calendar
import math
import random
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from tests.languages.sawzall.oracles import case, summed

_CHANCE = random.Random(29)
_START = datetime(2026, 3, 1, tzinfo=UTC)
TELNET = [
    f"{(_START + timedelta(seconds=_CHANCE.randrange(86400 * 9))).isoformat()[:19]} "
    f"{_CHANCE.choice(['telnet', 'ssh', 'ftp', 'telnetd'])} from host{_CHANCE.randrange(4)} "
    f"bytes={_CHANCE.randrange(5000)}"
    for _ in range(80)
]
PAGES = [
    f"http://{_CHANCE.choice(['www.', ''])}{_CHANCE.choice(['a.com', 'b.org', 'sub.c.net'])}"
    f"/{_CHANCE.choice(['', 'x', 'y/z'])} {_CHANCE.randrange(100) / 8}"
    for _ in range(50)
] + ["nonsense", "ftp://d.com/ 3"]
EVENTS = [
    f"u{_CHANCE.randrange(5)} {1_772_323_200 + 60 * n + _CHANCE.randrange(60)} "
    f"{_CHANCE.choice(['in', 'click', 'out'])}"
    for n in range(70)
]
NUMBERS = [" ".join(str(_CHANCE.randrange(-50, 50)) for _ in range(n % 7)) for n in range(40)]
PLACES = [f"{_CHANCE.uniform(-90, 90):.3f},{_CHANCE.uniform(-180, 180):.3f}" for _ in range(60)]


@case(
    r"""
    # How many telnet sessions each hour of the day and host.
    by_hour: table sum[hour: int] of int;
    by_host: table sum[host: string] of {count: int, size: int};
    line: string = input;
    m: array of string = matchstrs(`^(\d+)-(\d+)-(\d+)T(\d+):\d+:\d+ (\S+) from (\S+) bytes=(\d+)`,
                                   line);
    if (len(m) == 0) return;
    if (m[5] == "telnet") {
      emit by_hour[int(m[4], 10)] <- 1;
      emit by_host[m[6]] <- {1, int(m[7], 10)};
    }
    """,
    TELNET,
)
def telnet_by_hour_and_host(lines: list[str]) -> Iterator[str]:
    hours: Counter[tuple[object, ...]] = Counter()
    hosts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for line in lines:
        when, what, _, host, size = line.split()
        if what == "telnet":
            hours[(int(when[11:13]),)] += 1
            hosts[host][0] += 1
            hosts[host][1] += int(size.split("=")[1])
    yield from summed("by_hour", dict(hours))
    for host in sorted(hosts):
        yield f"by_host[{host}] = {{ {hosts[host][0]}, {hosts[host][1]} }}"


@case(
    r"""
    # The highest page rank of each domain, and the page that has it.
    best: table maximum(1)[domain: string] of page: string weight rank: float;
    ranks: table sum[domain: string] of float;
    domain := function(url: string): string {
      host := saw(url, skip `^http://(?:www\.)?`, `[^/]+`);
      parts := sawzall(host[0], `[^.]+`);  # without a value if there is no host
      return parts[$ - 2] + "." + parts[$ - 1];
    };
    fields := sawzall(string(input), `\S+`);
    d := domain(fields[0]);
    if (!def(d)) return;
    rank := float(fields[1]);
    emit best[d] <- fields[0] weight rank;
    emit ranks[d] <- rank;
    """,
    PAGES,
)
def highest_rank_of_each_domain(lines: list[str]) -> Iterator[str]:
    pages: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for line in lines:
        url = line.split(" ")[0]
        if url.startswith("http://"):
            host = url[7:].removeprefix("www.").split("/")[0]
            pages[".".join(host.split(".")[-2:])].append((float(line.split(" ")[1]), url))
    for domain in sorted(pages):
        rank = max(rank for rank, _ in pages[domain])
        page = min(url for r, url in pages[domain] if r == rank)
        yield f"best[{domain}] = {page}, {rank:g}"
    for domain in sorted(pages):
        yield f"ranks[{domain}] = {math.fsum(r for r, _ in pages[domain]):g}"


@case(
    r"""
    # Days of the week and times of day, by the functions of times.
    daily: table sum[day: int][part: string] of int;
    firsts: table minimum(1) of when: string weight t: int;
    s: string = input;
    f := sawzall(s, `\S+`);
    t: time = time(int(f[1]) * 1000000);
    part := "night";
    switch (hourof(t) / 6) {
      case 1: part = "morning";
      case 2: part = "afternoon";
      case 3: part = "evening";
      default: ;
    }
    emit daily[dayofweek(t)][part] <- 1;
    emit firsts <- format("%s %04d-%02d-%02d", f[0], yearof(t), monthof(t), dayofmonth(t))
      weight int(t) / 1000000;
    """,
    [f"u{n % 3} {1_772_323_200 + n * 7919}" for n in range(60)],
)
def parts_of_days(lines: list[str]) -> Iterator[str]:
    counts: Counter[tuple[object, ...]] = Counter()
    first: tuple[int, str] | None = None
    for line in lines:
        name, stamp = line.split()
        at = datetime.fromtimestamp(int(stamp), UTC)
        part = ["night", "morning", "afternoon", "evening"][at.hour // 6]
        counts[at.isoweekday(), part] += 1
        text = f"{name} {at:%Y-%m-%d}"
        first = min(filter(None, (first, (int(stamp), text))))
    yield from summed("daily", dict(counts))
    assert first is not None
    yield f"firsts[] = {first[1]}, {first[0]}"


@case(
    r"""
    # Whole degrees, as in a heat map; poles are apart.
    map_of: table sum[lat: int][lon: int] of int;
    north: table quantile(5) of lat: float;
    cells: array of string = splitcsvline(input);
    lat := float(cells[0]);
    lon := float(cells[1]);
    emit map_of[int(floor(lat / 30.0)) * 30][int(floor(lon / 60.0)) * 60] <- 1;
    if (lat > 0.0) emit north <- lat;
    """,
    PLACES,
)
def heat_map(lines: list[str]) -> Iterator[str]:
    counts: Counter[tuple[object, ...]] = Counter()
    north = []
    for line in lines:
        lat, lon = map(float, line.split(","))
        counts[math.floor(lat / 30) * 30, math.floor(lon / 60) * 60] += 1
        north += [lat] if lat > 0 else []
    yield from summed("map_of", dict(counts))
    north.sort()
    for n in range(5):
        rank = math.ceil(n / 4 * len(north)) if n else 1
        yield f"north[] = {north[rank - 1]:g}"


@case(
    r"""
    # Quantifiers: is the line sorted, does it have a pair that adds up to zero, is all positive?
    kinds: table sum[kind: string] of int;
    pairs: table collection[n: int] of {i: int, j: int};
    words := sawzall(string(input), `\S+`);
    v: array of int = {};
    for (i := 0; i < len(words); i++) v = v + {int(words[i], 10)};
    static n: int = 0;
    when (i: all int; v[i] > 0) emit kinds["positive"] <- 1;
    when (i: each int; j: some int; i < j && v[i] + v[j] == 0) emit pairs[len(v)] <- {i, j};
    sorted := true;
    when (i: some int; v[i] > v[i + 1]) sorted = false;
    if (sorted) emit kinds["sorted"] <- 1;
    """,
    [*NUMBERS, "1 2 3", "5 -5 5 -5", "0 0"],
)
def quantified_numbers(lines: list[str]) -> Iterator[str]:
    kinds: Counter[tuple[object, ...]] = Counter()
    pairs: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for line in lines:
        v = [int(w) for w in line.split()]
        kinds["positive",] += all(x > 0 for x in v)
        kinds["sorted",] += v == sorted(v)
        for i, x in enumerate(v):
            j = next((j for j in range(i + 1, len(v)) if x + v[j] == 0), None)
            if j is not None:
                pairs[len(v)].append((i, j))
    yield from summed("kinds", {k: n for k, n in kinds.items() if n})
    for size in sorted(pairs):
        for i, j in pairs[size]:
            yield f"pairs[{size}] = {{ {i}, {j} }}"


@case(
    r"""
    # Bases, encodings and marks.
    shown: table collection of string;
    w := string(input);
    n := int(w, 16);
    emit shown <- format("%d %x %o %s %08.3f", n, n, n, string(n, 2), float(n) / 7.0);
    emit shown <- format("%-6s| %q %c %b", w, w, 65 + n % 26, n % 2 == 0);
    emit shown <- string(bytes(w), "hex") + " " + string(tobase64(bytes(w), false));
    emit shown <- format("%s %s", string(uint(n) * 3u), string(n, 36));
    """,
    ["0", "1f", "ff", "BEEF", "7fffffff"],
)
def bases_and_encodings(lines: list[str]) -> Iterator[str]:
    def in_base(n: int, base: int) -> str:
        digits = ""
        while n or not digits:
            n, digit = divmod(n, base)
            digits = "0123456789abcdefghijklmnopqrstuvwxyz"[digit] + digits
        return digits

    texts = []
    for w in lines:
        n = int(w, 16)
        texts += [
            f"{n} {n:x} {n:o} {n:b} {n / 7:08.3f}",
            f'{w:<6}| "{w}" {chr(65 + n % 26)} {str(n % 2 == 0).lower()}',
            f"{w.encode().hex()} {base64.b64encode(w.encode()).decode()}",
            f"{n * 3} {in_base(n, 36)}",
        ]
    yield from (f"shown[] = {text}" for text in sorted(texts))


@case(
    r"""
    # Functions in functions, and in variables; each record has its own.
    results: table collection of {n: int, fib: int, gcd: int, steps: int};
    fib: function(n: int): int { if (n < 2) return n; return fib(n - 1) + fib(n - 2); };
    gcd := function(a: int, b: int): int { if (b == 0) return a; return gcd(b, a % b); };
    n := int(string(input));
    count := 0;
    collatz := function(k: int): int {
      step := function(x: int): int {
        count++;
        if (x % 2 == 0) return x / 2;
        return 3 * x + 1;
      };
      while (k != 1) k = step(k);
      return count;
    };
    emit results <- {n, fib(n % 15), gcd(n, 36), collatz(n)};
    """,
    [str(n) for n in (1, 2, 7, 12, 27, 36, 90)],
)
def functions_in_functions(lines: list[str]) -> Iterator[str]:
    for line in lines:
        n = int(line)
        a, b = 0, 1
        for _ in range(n % 15):
            a, b = b, a + b
        steps, k = 0, n
        while k != 1:
            k, steps = (k // 2 if k % 2 == 0 else 3 * k + 1), steps + 1
        yield f"results[] = {{ {n}, {a}, {math.gcd(n, 36)}, {steps} }}"


@case(
    r"""
    # Sums of maps: how often each user did what, and an average by two sums.
    did: table sum[user: string] of map[string] of int;
    mean: table sum of {n: int, total: float};
    f := sawzall(string(input), `\S+`);
    emit did[f[0]] <- {f[2]: 1, "all": 1};
    emit mean <- {1, float(int(f[1]) % 60)};
    """,
    EVENTS,
)
def sums_of_maps(lines: list[str]) -> Iterator[str]:
    did: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        user, _, what = line.split()
        did[user].update([what, "all"])
    for user in sorted(did):
        inner = ", ".join(f'"{k}": {n}' for k, n in sorted(did[user].items()))
        yield f"did[{user}] = {{ {inner} }}"
    total = sum(int(line.split()[1]) % 60 for line in lines)
    yield f"mean[] = {{ {len(lines)}, {total:g} }}"


@case(
    r"""
    # What has no value is passed over, statement by statement, and counted.
    good: table sum[n: int] of int;
    total: table sum of int;
    v := sawzall(string(input), `-?\d+`);
    emit total <- 1;
    emit good[int(v[0], 10) / int(v[1], 10)] <- int(v[2], 10);
    emit total <- 100;
    """,
    NUMBERS,
    ignore_undefs="true",
)
def statements_without_value(lines: list[str]) -> Iterator[str]:
    good: Counter[tuple[object, ...]] = Counter()
    bad = 0
    for line in lines:
        v = [int(w) for w in line.split()]
        if len(v) < 3:
            bad += 1
            continue
        good[(int(v[0] / v[1]),)] += v[2]
    yield f"_undef_cnt[] = {bad}"
    yield f"_undef_details[program.szl:7:5: the index is out of bounds] = {bad}"
    yield from summed("good", dict(good))
    yield f"total[] = {101 * len(lines)}"


@case(
    r"""
    # Samples that are exact while small: everybody who came, and how often.
    seen: table unique(100) of string;
    few: table set(3)[kind: string] of user: string;
    how_often: table inversehistogram(100) of user: string;
    who: table distinctsample(100) of user: string weight n: int;
    heavy: table top(2) of user: string weight n: int;
    f := sawzall(string(input), `\S+`);
    emit seen <- f[0];
    emit few[f[2]] <- f[0];
    emit how_often <- f[0];
    emit who <- f[0] weight 1;
    emit heavy <- f[0] weight int(f[1]) % 7;
    """,
    [*EVENTS[:40], "only 5 rare", "twice 6 rare", "twice 13 rare"],
)
def samples_while_small(lines: list[str]) -> Iterator[str]:
    users = Counter(line.split()[0] for line in lines)
    yield f"seen[] = {len(users)}"
    few: dict[str, set[str]] = defaultdict(set)
    heavy: Counter[str] = Counter()
    for line in lines:
        user, stamp, what = line.split()
        few[what].add(user)
        heavy[user] += int(stamp) % 7
    for what in sorted(few):
        if len(few[what]) <= 3:
            for user in sorted(few[what]):
                yield f"few[{what}] = {user}"
    times = Counter(users.values())
    for often in sorted(times):
        yield f"how_often[] = {often}, {times[often]}"
    for user in sorted(users):
        yield f"who[] = {user}, {users[user]}"
    for user, weight in sorted(heavy.items(), key=lambda one: (-one[1], one[0]))[:2]:
        yield f"heavy[] = {user}, {weight}, 0"


@case(
    r"""
    # Static tables of names, tuples by name, and months that are cut off.
    static names: map[int] of string = {1: "Jan", 2: "Feb", 3: "Mar"};
    static holidays := {"2026-01-01", "2026-03-08"};
    months: table sum[name: string] of int;
    free: table sum[day: string] of int;
    d: {year: int, month: int, day: int};
    m := matchstrs(`^(\d{4})-(\d\d)-(\d\d)$`, string(input));
    assert(len(m) == 4, "no date: " + string(input));
    d = {int(m[1], 10), int(m[2], 10), int(m[3], 10)};
    if (haskey(names, d.month)) emit months[names[d.month]] <- d.day;
    else emit months["other"] <- d.day;
    when (i: some int; holidays[i] == m[0]) emit free[m[0]] <- 1;
    """,
    ["2026-01-01", "2026-02-14", "2026-03-08", "2026-03-08", "2026-12-31", "tomorrow"],
    rejected=1,
)
def static_names(lines: list[str]) -> Iterator[str]:
    months: Counter[tuple[object, ...]] = Counter()
    free: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        if line == "tomorrow":
            continue
        month, day = int(line[5:7]), int(line[8:])
        months[calendar.month_abbr[month] if month < 4 else "other",] += day
        if line in ("2026-01-01", "2026-03-08"):
            free[line,] += 1
    yield from summed("months", dict(months))
    yield from summed("free", dict(free))


@case(
    r"""
    # Messages in and out: what is not there has its default.
    type Hit = proto {id: int = 7 @ 1, name: string = "none" @ 2, tags: array of int = {} @ 3};
    back: table collection of {id: int, name: string, tags: int, there: bool};
    f := sawzall(string(input), `\S+`);
    h: Hit = {};
    if (len(f) > 0) h.id = int(f[0], 10);
    if (len(f) > 1) h.name = f[1];
    for (i := 2; i < len(f); i++) h.tags = h.tags + {int(f[i], 10)};
    raw := bytes(h);
    g: Hit = raw;
    emit back <- {g.id, g.name, len(g.tags), inproto(g.name)};
    """,
    ["", "5", "300 x", "1 y 1 2 3", "-4 z 99999"],
)
def messages_there_and_back(lines: list[str]) -> Iterator[str]:
    rows = []
    for line in lines:
        f = line.split()
        number, name = int(f[0]) if f else 7, f[1] if len(f) > 1 else "none"
        rows.append((number, name, max(0, len(f) - 2), str(len(f) > 1).lower()))
    for number, name, tags, there in sorted(rows):
        yield f'back[] = {{ {number}, "{name}", {tags}, {there} }}'


@case(
    r"""
    # Variance by sums, the way of the paper's first program.
    count: table sum of int;
    total: table sum of float;
    sum_of_squares: table sum of float;
    v := sawzall(string(input), `\S+`);
    for (i: int = 0; i < len(v); i++) {
      x: float = v[i];
      emit count <- 1;
      emit total <- x;
      emit sum_of_squares <- x * x;
    }
    """,
    NUMBERS,
)
def the_first_program(lines: list[str]) -> Iterator[str]:
    v = [float(w) for line in lines for w in line.split()]
    yield f"count[] = {len(v)}"
    yield f"total[] = {math.fsum(v):g}"
    yield f"sum_of_squares[] = {math.fsum(x * x for x in v):g}"
    assert statistics.pvariance(v) > 0


@case(
    r"""
    # Texts turned round, counted by their letters, replaced and split.
    letters: table sum[c: string] of int;
    out: table collection of string;
    w := lowercase(string(input));
    seen: map[string] of int = {:};
    for (i := 0; i < len(w); i++) {
      c := w[i:i + 1];
      if (!match(`[a-z]`, c)) continue;
      seen[c] = lookup(seen, c, 0) + 1;
    }
    k := sort(keys(seen));
    for (i := 0; i < len(k); i++) emit letters[k[i]] <- seen[k[i]];
    r := "";
    for (i := len(w) - 1; i >= 0; i--) r = r + w[i:i + 1];
    emit out <- strreplace(r, "e", "_", true) + format("|%d", strfind("a", w));
    """,
    ["Sawzall", "Pike and others", "", "eee", "12 a 34"],
)
def letters_of_texts(lines: list[str]) -> Iterator[str]:
    letters: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        letters.update((c,) for c in line.lower() if re.match("[a-z]", c))
    yield from summed("letters", dict(letters))
    texts = [(line.lower()[::-1].replace("e", "_"), line.lower().find("a")) for line in lines]
    yield from sorted(f"out[] = {text}|{at}" for text, at in texts)
