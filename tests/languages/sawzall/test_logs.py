"""Logs as people analyse them, each program beside plain Python on the same lines."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.languages.sawzall.programs import printed, run_text

_CHANCE = random.Random(29)
_HOSTS = ["a.example", "b.example", "c.example"]


def _syslog(n: int) -> str:
    clock = f"Jan {_CHANCE.randrange(1, 29):2d} {_CHANCE.randrange(24):02d}:{n % 60:02d}:07"
    what = _CHANCE.choice(["telnetd", "sshd", "telnetd"])
    return f"{clock} gw {what}[{n}]: connection from {_CHANCE.choice(_HOSTS)}"


def _hit(n: int) -> str:
    at = datetime(2026, 2, 10, tzinfo=UTC) + timedelta(minutes=97 * n)
    size = _CHANCE.choice(["-", "512", "20480"])
    page = _CHANCE.choice(["/", "/a", "/b?q=1"])
    status = _CHANCE.choice([200, 301, 404, 503])
    refers = _CHANCE.choice(["-", "http://Search.example/?q=x", "https://blog.example"])
    if n % 17 == 3:
        return "-- rotated --"
    request = f'[{at:%d/%b/%Y:%H:%M:%S} +0000] "GET {page} HTTP/1.1"'
    return f'10.0.0.{n % 5} - - {request} {status} {size} "{refers}"'


def _session(n: int) -> str:
    events = sorted(_CHANCE.sample(range(500), _CHANCE.randrange(5)))
    words = [f"{t}={_CHANCE.choice(['login', 'click', 'logout'])}" for t in events]
    return " ".join([f"user{n % 6}", *words])


TELNET = r"""
count: table sum[host: string] of int;
perhour: table sum[hour: int] of int;
line: string = input;
if (!match(`telnetd\[\d+\]: connection from`, line)) return;
m := matchstrs(`^(\w{3} +\d+ (\d\d):\d\d:\d\d) (\S+) telnetd\[\d+\]: connection from (\S+)`, line);
emit count[m[4]] <- 1;
emit perhour[int(m[2], 10)] <- 1;
"""


def telnet(lines: list[str]) -> Iterator[str]:
    hosts: Counter[str] = Counter()
    hours: Counter[int] = Counter()
    for line in lines:
        words = line.split()
        if words[4].startswith("telnetd["):
            hosts[words[-1]] += 1
            hours[int(words[2][:2])] += 1
    yield from (f"count[{h}] = {hosts[h]}" for h in sorted(hosts))
    yield from (f"perhour[{h}] = {hours[h]}" for h in sorted(hours))


WEB = r"""
type Hit = { when: time, path: string, status: int, size: int, referer: string };
hits: table sum[day: time][class: string] of { n: int, size: int };
domains: table set(5)[status: int] of domain: string;
bad: table sum[why: string] of int;
parse := function(line: string): Hit {
  h: Hit;
  p := saw(line, skip `^\S+ \S+ \S+ `, submatch `^\[(\d+)/(\w+)/(\d+):(\S+) (\S+)\] `,
           submatch `^"\w+ ([^" ?]+)[^"]*" `, submatch `^(\d{3}) (\d+|-) `, submatch `^"([^"]*)"`);
  if (len(p) != 9) return h;
  t: time = p[0] + " " + p[1] + " " + p[2] + " " + p[3] + " " + p[4];
  size := 0;
  if (p[7] != "-") size = int(p[7], 10);
  h = { t, p[5], int(p[6], 10), size, p[8] };
  return h;
};
h := parse(string(input));
if (!def(h)) { emit bad["parse"] <- 1; return; }
class := ?{
  switch (h.status / 100) {
    case 2: result "ok"; case 4, 5: result "error"; default: result "other";
  }
};
emit hits[trunctoday(h.when)][class] <- { 1, h.size };
d := matchstrs(`^https?://([^/]+)`, h.referer);
if (len(d) > 0) emit domains[h.status] <- lowercase(d[1]);
"""


def web(lines: list[str]) -> Iterator[str]:
    form = re.compile(r'\[([^ ]+) .*?\] "GET \S+ \S+ (\d+) (\S+) "(?:https?://([^/"]+))?')
    hits: dict[tuple[datetime, str], list[int]] = defaultdict(lambda: [0, 0])
    domains: dict[int, set[str]] = defaultdict(set)
    bad = 0
    for line in lines:
        found = form.search(line.replace('HTTP/1.1"', "HTTP/1.1"))
        if found is None:
            bad += 1
            continue
        day = datetime.strptime(f"{found[1][:11]} +0000", "%d/%b/%Y %z")
        status = int(found[2])
        class_ = {2: "ok", 4: "error", 5: "error"}.get(status // 100, "other")
        sums = hits[day, class_]
        sums[0] += 1
        sums[1] += 0 if found[3] == "-" else int(found[3])
        if found[4]:
            domains[status].add(found[4].lower())
    for day, class_ in sorted(hits):
        n, size = hits[day, class_]
        shown = f"{day:%a %b} {day.day:2d} 00:00:00 UTC {day.year}"
        yield f"hits[{shown}][{class_}] = {{ {n}, {size} }}"
    yield from (f"domains[{s}] = {d}" for s in sorted(domains) for d in sorted(domains[s]))
    yield f"bad[parse] = {bad}"


SESSIONS = r"""
type Event = { at: int, what: string };
longest: table maximum(3) of user: string weight seconds: int;
clicks: table inversehistogram(100) of user: string;
s: string = input;
user := saw(s, `^\w+`)[0];
pairs := sawzall(s, submatch `(\d+)=(\w+)`);
events: array of Event = {};
for (i := 0; i + 1 < len(pairs); i += 2)
  events += { { int(pairs[i], 10), pairs[i + 1] } };
first := -1; last := -1;
when (i: some int; events[i].what == "login") first = events[i].at;
when (i: each int; events[i].what == "logout") last = max(last, events[i].at);
when (i: each int; events[i].what == "click") emit clicks <- user;
if (first >= 0 && last > first) emit longest <- user weight last - first;
"""


def sessions(lines: list[str]) -> Iterator[str]:
    spans: list[tuple[int, str]] = []
    clicks: Counter[str] = Counter()
    for line in lines:
        user, *rest = line.split()
        events = [(int(t), what) for t, what in (word.split("=") for word in rest)]
        logins = [t for t, what in events if what == "login"]
        logouts = [t for t, what in events if what == "logout"]
        clicks[user] += sum(what == "click" for _, what in events)
        if logins and logouts and max(logouts) > logins[0]:
            spans.append((logins[0] - max(logouts), user))
    yield from (f"longest[] = {user}, {-span}" for span, user in sorted(spans)[:3])
    often = Counter(n for n in clicks.values() if n)
    yield from (f"clicks[] = {n}, {often[n]}" for n in sorted(often))


ANAGRAMS = """
static stop: array of string = {"the", "of"};
is_stop := function(w: string): bool {
  when (i: some int; stop[i] == w) return true;
  return false;
};
letters := function(s: string): string {
  return convert(string, sort(convert(array of int, s, "unicode")), "unicode");
};
groups: table collection[k: string] of w: string;
pairs: table sum[p: {string, string}] of int;
words := sawzall(lowercase(string(input)), `[^ ]+`);
before: string;
for (i := 0; i < len(words); i++) {
  if (is_stop(words[i])) continue;
  emit groups[letters(words[i])] <- words[i];
  if (def(before)) emit pairs[{before, words[i]}] <- 1;
  before = words[i];
}
"""
TEXTS = ["The tea of Äta", "eat tan", "", "nat ate the tea tan", "of of of", "tan"]


def anagrams(lines: list[str]) -> Iterator[str]:
    groups: list[tuple[str, str]] = []
    pairs: Counter[tuple[str, str]] = Counter()
    for line in lines:
        words = [w for w in line.lower().split(" ") if w not in ("the", "of", "")]
        groups += [("".join(sorted(w)), w) for w in words]
        pairs.update(pairwise(words))
    yield from (f"groups[{k}] = {w}" for k, w in sorted(groups))
    yield from (f'pairs[{{ "{a}", "{b}" }}] = {pairs[a, b]}' for a, b in sorted(pairs))


CASES: dict[str, tuple[str, list[str], Callable[[list[str]], Iterator[str]]]] = {
    "telnet": (TELNET, [_syslog(n) for n in range(60)], telnet),
    "web": (WEB, [_hit(n) for n in range(70)], web),
    "sessions": (SESSIONS, [_session(n) for n in range(40)], sessions),
    "anagrams": (ANAGRAMS, TEXTS, anagrams),
}


@pytest.mark.parametrize("engine", ["reference", "local"])
@pytest.mark.parametrize("name", sorted(CASES))
def test_log_is_analysed_as_python_does(tmp_path: Path, name: str, engine: str) -> None:
    program, lines, oracle = CASES[name]
    finished = run_text(tmp_path, program, lines, engine=engine)
    assert finished.report.inputs["input"].rejected == 0
    assert sorted(oracle(lines)) == sorted(printed(finished).splitlines())
