"""Programs on logs of several kinds, each beside what plain Python makes of the same lines."""

from __future__ import annotations

import json
import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime

from tests.languages.sawzall.oracles import case, summed

_CHANCE = random.Random(23)

MAILS = [
    f"<{_CHANCE.choice(['ann', 'bob', 'c.d', 'eve+x'])}@{_CHANCE.choice(['a.org', 'b.com'])}> "
    f"{_CHANCE.choice(['Received', 'received', 'Bounced', 'deferred', '?'])} "
    f"size={_CHANCE.choice(['12', '0x40', '1000', 'big'])}"
    for _ in range(60)
]
PLACES = [
    f"10.{_CHANCE.randrange(4)}.{_CHANCE.randrange(4)}.1 {1_700_000_000 + n * 97} "
    f"{_CHANCE.randrange(500)}"
    for n in range(50)
] + ["localhost 0 0", "10.1.2.3 soon 4"]
TRAFFIC = [
    json.dumps({"host": f"h{_CHANCE.randrange(5)}", "bytes": _CHANCE.randrange(9000),
                "ok": _CHANCE.random() < 0.8, "took": _CHANCE.randrange(64) / 8})
    for _ in range(80)
]  # fmt: skip
POINTS = [f"{_CHANCE.randrange(-40, 41) / 4} {_CHANCE.randrange(-40, 41) / 4}" for _ in range(40)]
DOCS = [
    f"http://{_CHANCE.choice(['a.com', 'b.org', 'c.net'])}/{n} {_CHANCE.randrange(20)} "
    + " ".join(_CHANCE.sample(["a.com", "b.org", "c.net", "d.de"], _CHANCE.randrange(4)))
    for n in range(30)
]


@case(
    """
    # What became of mails, by where they came from.
    type Mail = {user: string, domain: string, what: string, size: int};
    done: table sum[what: string] of {mails: int, size: int};
    senders: table top(2)[domain: string] of user: string;
    strange: table collection of line: string;
    line := string(input);
    parts := matchstrs(`<([^@>]+)@([^>]+)> (\\S+) size=(\\S+)`, line);
    m: Mail = {parts[1], parts[2], lowercase(parts[3]), parts[4]};
    if (!def(m.size)) { emit strange <- line; return; }
    switch (m.what) {
      case "received", "bounced": emit done[m.what] <- {1, m.size};
      case "deferred":
        if (m.size > 100) break;
        emit done["kept for later"] <- {1, m.size};
      default: emit done["unknown"] <- {1, 0};
    }
    emit senders[m.domain] <- m.user;
    """,
    MAILS,
)
def mails(lines: list[str]) -> Iterator[str]:
    done: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    senders: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        address, what, size = line.split(" ")
        if size == "size=big":  # then the tuple has no value, and so has no part of it
            continue
        user, domain = address[1:-1].split("@")
        bytes_ = int(size[5:], 0)
        what = what.lower()
        if what in ("received", "bounced"):
            key, amount = what, bytes_
        elif what == "deferred":
            key, amount = ("" if bytes_ > 100 else "kept for later"), bytes_
        else:
            key, amount = "unknown", 0
        if key:
            done[key,][0] += 1
            done[key,][1] += amount
        senders[domain][user] += 1
    yield from summed("done", {k: f"{{ {n}, {s} }}" for k, (n, s) in done.items()})
    for domain in sorted(senders):
        best = sorted(senders[domain].items(), key=lambda item: (-item[1], item[0]))[:2]
        yield from (f"senders[{domain}] = {user}, {n}, 0" for user, n in best)
    yield from (f"strange[] = {line}" for line in sorted(lines) if line.endswith("big"))


@case(
    """
    # Requests by a square of the map and five minutes, as a rolling picture needs them.
    static RESOLUTION: int = 5;
    type location = {lat: float, lon: float};
    datum: table sum[t: time][lat: int][lon: int] of int;
    locationinfo: function(ip: string): location {
      parts: array of string = saw(ip, `^10\\.`, `[0-9]+`, skip `\\.`, `[0-9]+`);
      return {float(parts[1]) * 1.5, -float(parts[2])};
    };
    fields := sawzall(string(input), `[^ ]+`);
    loc: location = locationinfo(fields[0]);
    if (def(loc)) {
      t: time = int(fields[1]) * int(SEC);
      m: int = minuteof(t);
      m = m - m % RESOLUTION;
      t = trunctohour(t) + time(m * int(MINUTE));
      emit datum[t][int(loc.lat)][int(loc.lon)] <- int(fields[2]);
    }
    """,
    PLACES,
    rejected=1,
)
def squares_of_a_map(lines: list[str]) -> Iterator[str]:
    sums: Counter[tuple[int, int, int]] = Counter()
    for line in lines:
        host, second, amount = line.split(" ")
        if host == "localhost" or not second.isdigit():
            continue
        lat, lon = (int(part) for part in host.split(".")[1:3])
        sums[int(second) // 300 * 300, int(lat * 1.5), -lon] += int(amount)
    for key in sorted(sums):
        at = datetime.fromtimestamp(key[0], UTC)
        shown = f"{at:%a %b} {at.day:2} {at:%H:%M:%S} UTC {at.year}"
        yield f"datum[{shown}][{key[1]}][{key[2]}] = {sums[key]}"


@case(
    """
    # Mean and variance need nothing but three sums; the rest is what people ask first.
    r: {host: string, bytes: int, ok: bool, took: float} = input;
    count: table sum[host: string] of int;
    total: table sum[host: string] of float;
    sum_of_squares: table sum[host: string] of float;
    failed: table sum of {int, int};
    slowest: table maximum(2)[ok: bool] of {string, int} weight took: float;
    sizes: table quantile(5) of int;
    emit count[r.host] <- 1;
    emit total[r.host] <- r.took;
    emit sum_of_squares[r.host] <- r.took * r.took;
    if (!r.ok) emit failed <- {1, r.bytes}; else emit failed <- {0, 0};
    emit slowest[r.ok] <- {r.host, r.bytes} weight r.took;
    emit sizes <- r.bytes;
    """,
    TRAFFIC,
)
def three_sums(lines: list[str]) -> Iterator[str]:
    rows = [json.loads(line) for line in lines]
    hosts = sorted({row["host"] for row in rows})
    for name, of in (
        ("count", lambda _: 1), ("total", lambda t: t), ("sum_of_squares", lambda t: t * t),
    ):  # fmt: skip
        for host in hosts:
            amount = sum(of(row["took"]) for row in rows if row["host"] == host)
            yield f"{name}[{host}] = {amount:g}"
    bad = [row for row in rows if not row["ok"]]
    yield f"failed[] = {{ {len(bad)}, {sum(row['bytes'] for row in bad)} }}"
    for ok in (False, True):
        some = [(row["took"], row["host"], row["bytes"]) for row in rows if row["ok"] is ok]
        best = sorted(some, key=lambda item: (-item[0], item[1:]))[:2]
        shown = str(ok).lower()
        yield from (f'slowest[{shown}] = {{ "{h}", {b} }}, {t:g}' for t, h, b in best)
    sizes = sorted(row["bytes"] for row in rows)
    yield from (f"sizes[] = {sizes[max(math.ceil(len(sizes) * n / 4) - 1, 0)]}" for n in range(5))


@case(
    """
    # Points in four quarters, how far they are, and the least rectangle around all.
    quarter: table sum[name: string] of int;
    far: table maximum(3) of point: {x: float, y: float} weight distance: float;
    left: table minimum(1) of x: float weight w: float;
    right: table maximum(1) of x: float weight w: float;
    xy: array of float = sawzall(string(input), regex(float));
    distance := function(p: array of float): float {
      s := 0.0;
      when (i: each int; def(p[i])) s = s + p[i] * p[i];
      return sqrt(s);
    };
    name := "";
    if (xy[1] > 0.0) name = "north"; else if (xy[1] < 0.0) name = "south";
    if (xy[0] > 0.0) name = name + "east"; else if (xy[0] < 0.0) name = name + "west";
    if (name == "") name = "here";
    emit quarter[name] <- 1;
    emit far <- {xy[0], xy[1]} weight distance(xy);
    emit left <- xy[0] weight xy[0];
    emit right <- xy[0] weight xy[0];
    """,
    POINTS,
)
def quarters(lines: list[str]) -> Iterator[str]:
    points = [tuple(float(part) for part in line.split(" ")) for line in lines]
    names = Counter(
        (("north" if y > 0 else "south" if y < 0 else "")
         + ("east" if x > 0 else "west" if x < 0 else "")) or "here"
        for x, y in points
    )  # fmt: skip
    yield from summed("quarter", {(name,): n for name, n in names.items()})
    best = sorted(points, key=lambda p: (-math.sqrt(p[0] ** 2 + p[1] ** 2), p))[:3]
    for x, y in best:
        yield f"far[] = {{ {x:g}, {y:g} }}, {math.sqrt(x * x + y * y):g}"
    for name, edge in (("left", min(x for x, _ in points)), ("right", max(x for x, _ in points))):
        yield f"{name}[] = {edge:g}, {edge:g}"


@case(
    r"""
    # The best page of every site, and which sites link to which.
    type Link = {to: string, weight: float};
    type Doc = {url: string, rank: int, links: array of Link};
    best: table maximum(1)[domain: string] of url: string weight rank: int;
    linked: table sum[from: string][to: string] of float;
    alone: table set(100) of domain: string;
    domain_of := function(url: string): string {
      static pattern := `^https?://([^/]+)`;
      return matchstrs(pattern, url)[1];
    };
    words := sawzall(string(input), `\S+`);
    d: Doc = {words[0], words[1], {}};
    for (i: int = 2; i < len(words); i++)
      d.links = d.links + {{words[i], 1.0 / float(len(words) - 2)}};
    from := domain_of(d.url);
    emit best[from] <- d.url weight d.rank;
    when (i: each int; d.links[i].to != from)
      emit linked[from][d.links[i].to] <- d.links[i].weight;
    when (i: all int; d.links[i].to == from)
      emit alone <- from;
    """,
    DOCS,
)
def links(lines: list[str]) -> Iterator[str]:
    best: dict[str, tuple[int, str]] = {}
    linked: dict[tuple[object, ...], list[float]] = defaultdict(list)
    alone = set()
    for line in lines:
        url, rank, *to = line.split()
        domain = url.split("/")[2]
        best[domain] = min(best.get(domain, (1, "")), (-int(rank), url))
        for other in to:
            if other != domain:
                linked[domain, other].append(1 / len(to))
        if all(other == domain for other in to):
            alone.add(domain)
    yield from (f"best[{d}] = {url}, {-rank}" for d, (rank, url) in sorted(best.items()))
    yield from summed("linked", {k: f"{math.fsum(v):g}" for k, v in linked.items()})
    yield from (f"alone[] = {d}" for d in sorted(alone))


@case(
    """
    # A session is what comes from one host within ten minutes; a line says where hers begin.
    hits: table sum[host: string][slot: int] of int;
    type Hit = {at: int, host: string};
    parse: function(line: string): Hit {
      f := sawzall(line, `[^ ]+`);
      h: Hit = {f[1], f[0]};
      return h;
    };
    h := parse(string(input));
    if (def(h) && match(`^10\\.`, h.host)) {
      emit hits[h.host][h.at / 600 % 4] <- 1;
      if (h.at % 600 < 97) emit stdout <- format("%s begins at %06d", h.host, h.at % 1000000);
    } else
      emit stderr <- "what is " + string(input);
    """,
    PLACES,
)
def sessions(lines: list[str]) -> Iterator[str]:
    hits: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        host, second, _ = line.split(" ")
        if host == "localhost" or not second.isdigit():
            continue
        hits[host, int(second) // 600 % 4] += 1
        if int(second) % 600 < 97:
            yield f"{host} begins at {int(second) % 1_000_000:06}"
    yield from summed("hits", dict(hits))


@case(
    r"""
    # Key-value pairs of a request, decoded by hand.
    asked: table sum[key: string] of int;
    seen: table unique(100)[key: string] of string;
    longest: table maximum(1)[key: string] of value: string weight length: int;
    decode := function(s: string): string {
      out := "";
      for (i: int = 0; i < len(s); i++) {
        switch (s[i]) {
          case '+': out = out + " ";
          case '%':
            if (i + 2 >= len(s)) { out = out + s[i:i + 1]; break; }
            out = out + string(bytes({int(s[i + 1:i + 3], 16)}));
            i = i + 2;
          default: out = out + s[i:i + 1];
        }
      }
      return out;
    };
    query := saw(string(input), skip `\?`, `[^ ]*`);
    if (len(query) == 0) return;
    pairs := sawzall(query[0], `[^&]+`);
    for (i := 0; i < len(pairs); i++) {
      kv := saw(pairs[i], `^[^=]*`, skip `=?`, `.*`);
      key := decode(kv[0]);
      value := decode(kv[1]);
      emit asked[key] <- 1;
      emit seen[key] <- value;
      emit longest[key] <- value weight len(value);
    }
    """,
    [
        "/find?q=red+tea&n=10", "/find?q=%41b%2Fc&lang", "/", "/x?n=2&n=3&q=", "/y?q=100%&z=%7e",
        "/find?", "/z?a=b=c&q=a+b+c+d more?n=9",
    ],
)  # fmt: skip
def requests(lines: list[str]) -> Iterator[str]:
    def decoded(text: str) -> str:
        return re.sub(r"%(..)", lambda m: chr(int(m[1], 16)), text.replace("+", " "))

    values: dict[str, list[str]] = defaultdict(list)
    for line in lines:
        for pair in re.findall(r"[^&]+", line.partition("?")[2].partition(" ")[0]):
            key, _, value = pair.partition("=")
            values[decoded(key)].append(decoded(value))
    yield from summed("asked", {(k,): len(v) for k, v in values.items()})
    yield from summed("seen", {(k,): len(set(v)) for k, v in values.items()})
    for key in sorted(values):
        long = min(values[key], key=lambda v: (-len(v), v))
        yield f"longest[{key}] = {long}, {len(long)}"
