"""Programs about values of all kinds, each beside what plain Python makes of the same lines."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from tests.languages.sawzall.oracles import TEXT, case, summed

_CHANCE = random.Random(31)
NUMBERS = [" ".join(str(_CHANCE.randrange(-9, 30)) for _ in range(n % 7)) for n in range(40)]
SECONDS = [str(n * 4_111_111 + 951_000_000) for n in range(25)]
NAMES = ["Anna", "otto", "Reliefpfeiler", "Lagerregal", "bob", "", "Marktkram", "Ost"]


@case(
    """
    # Every record has a map of its own, of tuples that are changed in place.
    type Stat = {n: int, letters: int, words: array of string};
    tally: table sum[first: string] of {words: int, letters: int};
    m: map[string] of Stat = {:};
    w := sawzall(string(input), `[^ ]+`);
    for (i: int = 0; i < len(w); i++) {
      k := lowercase(w[i][0:1]);
      if (!haskey(m, k)) m[k] = {0, 0, {}};
      m[k].n++;
      m[k].letters += len(w[i]);
      m[k].words = m[k].words + {w[i]};
    }
    ks: array of string = keys(m);
    when (i: each int; m[ks[i]].n > 1) {
      s := m[ks[i]];
      emit tally[ks[i]] <- {s.n, s.letters};
      emit stdout <- format("%s %s..%s", ks[i], s.words[0], s.words[len(s.words) - 1]);
    }
    """,
    TEXT,
)
def maps_of_tuples(lines: list[str]) -> Iterator[str]:
    tally: dict[tuple[object, ...], list[int]] = defaultdict(lambda: [0, 0])
    for line in lines:
        found: dict[str, list[str]] = defaultdict(list)
        for word in line.split():
            found[word[0].lower()].append(word)
        for first in sorted(found):
            words = found[first]
            if len(words) > 1:
                tally[first,][0] += len(words)
                tally[first,][1] += sum(map(len, words))
                yield f"{first} {words[0]}..{words[-1]}"
    yield from summed("tally", {k: f"{{ {n}, {s} }}" for k, (n, s) in tally.items()})


@case(
    """
    # Arrays sorted by hand and by the library, halved, turned round.
    a: array of int = sawzall(string(input), regex(int));
    b := a;
    for (i := 1; i < len(b); i++)
      for (j := i; j > 0 && b[j - 1] > b[j]; j--) { t := b[j]; b[j] = b[j - 1]; b[j - 1] = t; }
    assert(b == sort(a), "these must be the same");
    back: array of int = new(array of int, len(a), 0);
    for (i := 0; i < len(a); i++) back[len(a) - 1 - i] = a[i];
    places := sortx(a);
    half := b[0:len(b) / 2];
    emit stdout <- string(b) + string(back) + string(places) + string(half);
    middle: float = float(b[(len(b) - 1) / 2] + b[len(b) / 2]) / 2.0;
    if (def(middle)) emit stdout <- format("%g", middle);
    """,
    NUMBERS,
)
def sorting(lines: list[str]) -> Iterator[str]:
    def shown(items: list[int]) -> str:
        return "{ " + ", ".join(map(str, items)) + " }" if items else "{}"

    for line in lines:
        a = [int(part) for part in line.split()]
        b = sorted(a)
        places = sorted(range(len(a)), key=lambda n: (a[n], n))
        yield shown(b) + shown(a[::-1]) + shown(places) + shown(b[: len(b) // 2])
        if b:
            yield f"{(b[(len(b) - 1) // 2] + b[len(b) // 2]) / 2:g}"


@case(
    """
    # Functions that make functions, and functions in arrays and maps.
    type Step = function(int): int;
    add := function(n: int): Step { return function(x: int): int { return x + n; }; };
    twice := function(f: Step): Step { return function(x: int): int { return f(f(x)); }; };
    steps: array of Step = {add(1), twice(add(10)), function(x: int): int { return x * x; }};
    named: map[string] of Step = {"neg": function(x: int): int { return -x; }, "same": add(0)};
    a: array of int = sawzall(string(input), `-?[0-9]+`);
    total := 0;
    fold := function(x: int) { total = total * 3 + x; };
    when (i: each int; a[i] != 0) fold(steps[i % len(steps)](named["neg"](a[i])));
    emit stdout <- string(total);
    emit stdout <- string(function(x: int): int { if (x < 2) return 1; return x * 2; }(len(a)));
    """,
    NUMBERS,
)
def functions_of_functions(lines: list[str]) -> Iterator[str]:
    steps = [lambda x: x + 1, lambda x: x + 20, lambda x: x * x]
    for line in lines:
        total = 0
        numbers = [int(part) for part in line.split()]
        for place, number in enumerate(numbers):
            if number:
                total = total * 3 + steps[place % 3](-number)
        yield str(total)
        yield str(1 if len(numbers) < 2 else 2 * len(numbers))


@case(
    """
    # Times in three zones, cut to what they lie in and moved on.
    static zones: array of string = {"UTC", "Europe/Paris", "Australia/Sydney"};
    by: table sum[zone: string][weekday: int][hour: int] of int;
    t: time = int(string(input)) * 1000000;
    for (i := 0; i < len(zones); i++) {
      z := zones[i];
      emit by[z][dayofweek(t, z)][hourof(t, z)] <- 1;
      emit stdout <- string(trunctoday(t, z), z) + " " + string(trunctomonth(t, z), z) + " "
        + string(trunctoyear(t, z), z) + " " + string(addmonth(t, 1, z), z);
    }
    emit stdout <- formattime("%Y-%m-%dT%H:%M:%S %j", t, zones[2]) + " "
      + string(int(trunctominute(t)) / int(SEC)) + " " + string(t + 3 * HOUR - 30 * MINUTE);
    """,
    SECONDS,
)
def zones(lines: list[str]) -> Iterator[str]:
    names = ["UTC", "Europe/Paris", "Australia/Sydney"]

    def shown(at: datetime, zone: str) -> str:
        there = at.astimezone(ZoneInfo(zone))
        return f"{there:%a %b} {there.day:2} {there:%H:%M:%S %Z} {there.year}"

    by: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        at = datetime.fromtimestamp(int(line), UTC)
        for zone in names:
            there = at.astimezone(ZoneInfo(zone))
            by[zone, there.isoweekday(), there.hour] += 1
            day = there.replace(hour=0, minute=0, second=0)
            years, month = divmod(there.month, 12)
            # A day that the next month does not have runs on into the one after it.
            first = there.replace(tzinfo=None, day=1, year=there.year + years, month=month + 1)
            later = (first + timedelta(days=there.day - 1)).replace(tzinfo=ZoneInfo(zone))
            yield " ".join(
                shown(one, zone)
                for one in (day, day.replace(day=1), day.replace(day=1, month=1), later)
            )
        there = at.astimezone(ZoneInfo(names[2]))
        second = int(line) // 60 * 60
        on = shown(at + timedelta(hours=2, minutes=30), "UTC")
        yield f"{there:%Y-%m-%dT%H:%M:%S %j} {second} {on}"
    yield from summed("by", dict(by))


@case(
    """
    # All kinds of quantifiers over the same array.
    a: array of int = sawzall(string(input), regex(int));
    s := "";
    when (i: some int; a[i] < 0) s = s + format("negative at %d;", i);
    when (i: all int; a[i] >= 0) s = s + "none negative;";
    when (i: each int; a[i] > a[i + 1]) s = s + format("falls at %d;", i);
    when (i: each int; j: some int; i != j && a[i] + a[j] == 20) s = s + format("%d+%d;", i, j);
    when (i: some int; j: all int; a[i] >= a[j]) s = s + format("largest at %d;", i);
    when (i: each int; j: all int; i == j || a[i] != a[j]) s = s + format("single %d;", a[i]);
    when (i, j: some int; a[i] == 2 * a[j] && a[j] != 0) s = s + "double";
    emit stdout <- s;
    """,
    NUMBERS,
)
def quantifiers(lines: list[str]) -> Iterator[str]:
    for line in lines:
        a = [int(part) for part in line.split()]
        said = [f"negative at {i}" for i, x in enumerate(a) if x < 0][:1]
        said += ["none negative"] if all(x >= 0 for x in a) else []
        said += [f"falls at {i}" for i in range(len(a) - 1) if a[i] > a[i + 1]]
        for i, x in enumerate(a):
            partners = [j for j, y in enumerate(a) if i != j and x + y == 20]
            said += [f"{i}+{j}" for j in partners[:1]]
        said += [f"largest at {a.index(max(a))}"] if a else []
        said += [f"single {x}" for x in a if a.count(x) == 1]
        text = "".join(f"{part};" for part in said)
        yield text + ("double" if any(x == 2 * y and y for x in a for y in a) else "")


@case(
    """
    # Characters: palindromes, counts of letters in a map, rotation by thirteen.
    letters: table sum[c: string] of int;
    s := lowercase(string(input));
    is_same := true;
    for (i := 0; i < len(s) / 2; i++)
      if (s[i] != s[$ - 1 - i]) { is_same = false; break; }
    seen: map[int] of int = {:};
    for (i := 0; i < len(s); i++) seen[s[i]] = lookup(seen, s[i], 0) + 1;
    ks := keys(seen);
    odd := 0;
    for (i := 0; i < len(ks); i++) {
      if (seen[ks[i]] % 2 == 1) odd++;
      emit letters[string({ks[i]})] <- seen[ks[i]];
    }
    r := s;
    for (i := 0; i < len(r); i++) r[i] = (r[i] - 'a' + 13) % 26 + 'a';
    emit stdout <- format("%s %b %b %s %c", s, is_same, odd < 2, r, 'a' + len(s) % 26);
    """,
    NAMES,
)
def palindromes(lines: list[str]) -> Iterator[str]:
    letters: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        s = line.lower()
        letters.update((c,) for c in s)
        odd = sum(n % 2 for n in Counter(s).values())
        turned = "".join(chr((ord(c) - 97 + 13) % 26 + 97) for c in s)
        same, can = str(s == s[::-1]).lower(), str(odd < 2).lower()
        yield f"{s} {same} {can} {turned} {chr(97 + len(s) % 26)}"
    yield from summed("letters", dict(letters))


@case(
    """
    # A tree, made of a line by a function that calls itself, and summed by another.
    type Tree = {value: int, kids: array of Tree};
    text := string(input);
    at := 0;
    number := function(): int {
      first := at;
      while (at < len(text) && text[at] >= '0' && text[at] <= '9') at++;
      return int(text[first:at], 10);
    };
    tree := function(): Tree {
      t: Tree = {number(), {}};
      if (at < len(text) && text[at] == '(') {
        at++;
        while (text[at] != ')') { t.kids = t.kids + {tree()}; if (text[at] == ',') at++; }
        at++;
      }
      return t;
    };
    total := function(t: Tree, depth: int): int {
      s := t.value * depth;
      for (i := 0; i < len(t.kids); i++) s = s + total(t.kids[i], depth + 1);
      return s;
    };
    t := tree();
    emit stdout <- string(total(t, 1)) + " " + string(len(t.kids));
    """,
    ["7", "1(2,3)", "1(2(3(4)),5)", "10(1,2(08),3)", "", "1(2", "0()"],
    rejected=2,
)
def trees(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if line in ("", "1(2"):
            continue
        depth, total, kids = 1, 0, 0
        for token in re.findall(r"\d+|[(),]", line):
            if token.isdigit():
                total += int(token) * depth
                kids += depth == 2
            depth += {"(": 1, ")": -1}.get(token, 0)
        yield f"{total} {kids}"


@case(
    """
    # Tables of every exact kind with formats, indexes of several types and weights of texts.
    n: int = string(input);
    last: table maximum(2)[even: bool] of n: int weight text: string format("%d is %q", n, text);
    first: table minimum(2) of s: string weight at: time;
    pairs: table collection[tag: {int, bool}] of {a: int, b: array of int};
    small: table set(3)[m: int] of int;
    added: table sum[f: float] of map[string] of int;
    counted: table mrcounter of int;
    emit last[n % 2 == 0] <- n weight string(n);
    emit first <- "n" + string(n) weight time(100 - n);
    if (n % 5 == 0) emit pairs[{n % 3, n > 9}] <- {n, {n, n + 1}};
    emit small[n % 4] <- n / 4;
    emit added[float(n % 2) / 2.0] <- {"all": 1, string(n % 3): n};
    emit counted <- n;
    """,
    [str(n) for n in range(18)],
)
def kinds_of_tables(lines: list[str]) -> Iterator[str]:
    numbers = [int(line) for line in lines]
    for even in (False, True):
        best = sorted((str(n) for n in numbers if (n % 2 == 0) is even), reverse=True)[:2]
        yield from (f'last[{str(even).lower()}] = {n} is "{n}", {n}' for n in best)
    for n in sorted(numbers, reverse=True)[:2]:
        yield f"first[] = n{n}, Thu Jan  1 00:00:00 UTC 1970"
    tagged = sorted((n % 3, n > 9, n) for n in numbers if n % 5 == 0)
    for rest, large, n in tagged:
        yield f"pairs[{{ {rest}, {str(large).lower()} }}] = {{ {n}, {{ {n}, {n + 1} }} }}"
    for rest in range(4):
        values = sorted({n // 4 for n in numbers if n % 4 == rest})
        yield from (f"small[{rest}] = {v}" for v in values if len(values) <= 3)
    for rest, shown in ((0, "0"), (1, "0.5")):
        sums = Counter({"all": 0})
        for n in numbers:
            if n % 2 == rest:
                sums.update({"all": 1, str(n % 3): n})
        parts = ", ".join(f'"{k}": {sums[k]}' for k in sorted(sums))
        yield f"added[{shown}] = {{ {parts} }}"
    yield f"counted[] = {sum(numbers)}"
