"""Programs that are partly done on columns and partly record by record, beside plain Python."""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator

from tests.languages.sawzall.oracles import case, summed

_CHANCE = random.Random(5)
WEB = [
    f"10.0.{_CHANCE.randrange(4)}.{_CHANCE.randrange(9)} {_CHANCE.choice(['GET', 'POST', 'HEAD'])} "
    f"/p{_CHANCE.randrange(6)}/{_CHANCE.choice(['a', 'b', 'ü'])}.html "
    f"{_CHANCE.choice([200, 200, 304, 404, 500])} {_CHANCE.randrange(5000)}"
    for _ in range(120)
]
NUMBERS = [" ".join(str(_CHANCE.randrange(-5, 60)) for _ in range(n % 6)) for n in range(60)]


@case(
    """
    # Words counted by a map of each record, and the most frequent of each first letter.
    seen: map[string] of int = {};
    w := sawzall(string(input), `[^ /.]+`);
    for (i := 0; i < len(w); i++) {
      if (haskey(seen, w[i])) seen[w[i]]++; else seen[w[i]] = 1;
    }
    c: table sum[string] of int;
    m: table maximum(3)[kind: string] of string weight int;
    k := keys(seen);
    for (i := 0; i < len(k); i++) {
      emit c[k[i]] <- seen[k[i]];
      emit m[k[i][0:1]] <- k[i] weight seen[k[i]];
    }
    """,
    WEB,
)
def counted_by_maps(lines: list[str]) -> Iterator[str]:
    counts: Counter[tuple[object, ...]] = Counter()
    best: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for line in lines:
        for word, count in Counter(re.findall(r"[^ /.]+", line)).items():
            counts[word,] += count
            best[word[0]].append((-count, word))
    yield from summed("c", dict(counts))
    for first in sorted(best):
        yield from (f"m[{first}] = {word}, {-count}" for count, word in sorted(best[first])[:3])


@case(
    r"""
    # Every way to quantify, over numbers that are converted all at once.
    a: array of int = array of int(sawzall(string(input), `-?\d+`));
    pos: table sum[string] of int;
    when (i: some int; a[i] > 50) emit pos["some"] <- a[i];
    when (i: each int; a[i] % 2 == 0) emit pos["each"] <- 1;
    when (i: all int; a[i] >= 0) emit pos["all"] <- 1;
    when (i: each int; j: each int; i < j && a[i] == a[j]) emit pos["pairs"] <- 1;
    when (i: each int; j: some int; a[j] == a[i] + 1) emit pos["next"] <- a[j];
    when (i: some int; j: all int; a[i] >= a[j]) emit pos["max"] <- a[i];
    """,
    NUMBERS,
)
def quantified(lines: list[str]) -> Iterator[str]:
    found: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        a = [int(word) for word in line.split()]
        found["some",] += next((n for n in a if n > 50), 0)
        found["each",] += sum(n % 2 == 0 for n in a)
        found["all",] += all(n >= 0 for n in a)
        found["pairs",] += sum(a[i] == a[j] for j in range(len(a)) for i in range(j))
        found["next",] += sum(n + 1 for n in a if n + 1 in a)
        found["max",] += max(a, default=0)
    yield from summed("pos", dict(found))


@case(
    r"""
    # What is static is looked up on columns, and keys are put together there.
    static codes: map[int] of string = { 200: "ok", 304: "same", 404: "lost" };
    static weights: array of float = { 0.5, 1.5, 2.5 };
    static limit: int = len(codes) * 1000;
    f := sawzall(string(input), `\S+`);
    name := lookup(codes, int(f[3]), "other");
    t: table sum[name: string] of float;
    if (int(f[4]) >= limit) return;
    size := format("%03d", int(f[4]) / 1000);
    emit t[name + "/" + f[1][0:1] + size] <- weights[int(f[2][2:3]) % 3];
    """,
    WEB,
)
def looked_up(lines: list[str]) -> Iterator[str]:
    names, weights = {200: "ok", 304: "same", 404: "lost"}, (0.5, 1.5, 2.5)
    found: dict[tuple[object, ...], float] = defaultdict(float)
    for line in lines:
        _, method, path, code, size = line.split()
        if int(size) < 3000:
            key = f"{names.get(int(code), 'other')}/{method[0]}{int(size) // 1000:03d}"
            found[key,] += weights[int(path[2]) % 3]
    yield from summed("t", {k: f"{v:g}" for k, v in found.items()})


@case(
    r"""
    # A result of statements, and a function that is left in the middle of a switch.
    kind := function(code: int): string {
      switch (code / 100) {
        case 2: return "ok";
        case 3, 4: { if (code == 404) return "lost"; return "moved"; }
        default: return "broken";
      }
    };
    label := ?{
      f := sawzall(string(input), `\S+`);
      if (len(f) < 5) result "short";
      result kind(int(f[3]));
    };
    t: table sum[string] of int;
    emit t[label] <- 1;
    switch (label) {
      case "ok", "moved": emit t["fine"] <- 1; break;
      case "lost": ;
      default: emit t["bad"] <- 1;
    }
    """,
    [*WEB, "a b"],
)
def labelled(lines: list[str]) -> Iterator[str]:
    found: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        words = line.split()
        code = int(words[3]) if len(words) > 4 else 0
        by_hundred = {0: "short", 2: "ok", 3: "moved", 4: "lost" if code == 404 else "moved"}
        label = by_hundred.get(code // 100, "broken")
        found[label,] += 1
        if label != "lost":
            found["fine" if label in ("ok", "moved") else "bad",] += 1
    yield from summed("t", dict(found))


@case(
    """
    # A function in a function changes what lies around both; arrays are copied.
    line: string = input;
    total := 0;
    noted: array of string = {};
    walk := function(s: string): int {
      depth := 0;
      note := function(c: int): int {
        total += c; noted = noted + {format("%c", c)}; depth++;
        return depth;
      };
      when (i: each int; s[i] >= 'a' && s[i] <= 'e') note(s[i]);
      return depth;
    };
    depth := walk(line);
    copied := noted;
    copied = copied + {"!"};
    joined := "";
    for (i := 0; i < len(noted); i++) joined += noted[i];
    t: table sum[depth: int] of int;
    c: table collection of string;
    emit t[depth] <- total;
    emit c <- format("%s/%d/%d", joined, len(noted), len(copied));
    """,
    [*WEB[:20], "", "\u00fcn\u00ef c\u00f6de \u65e5\u672c"],
)
def walked(lines: list[str]) -> Iterator[str]:
    totals: Counter[tuple[object, ...]] = Counter()
    notes = [[c for c in line if "a" <= c <= "e"] for line in lines]
    for noted in notes:
        totals[len(noted),] += sum(map(ord, noted))
    yield from summed("t", dict(totals))
    yield from sorted(f"c[] = {''.join(n)}/{len(n)}/{len(n) + 1}" for n in notes)


@case(
    r"""
    # Arrays of arrays, places in them, and a slice that grows when it is assigned.
    w := sawzall(string(input), `\d+`);
    m := new(array of array of int, 3, new(array of int, 3, 0));
    for (i := 0; i < len(w); i++) m[i % 3][i / 3 % 3] += int(w[i], 10) % 7;
    trace := 0;
    for (i := 0; i < 3; i++) trace += m[i][i];
    row: array of int = m[0];
    row[0:2] = {100, 200, 300};
    t: table sum[trace: int][size: int] of int;
    c: table collection of array of int;
    emit t[trace][len(row)] <- row[$ - 1] + m[0][0];
    emit c <- m[1] + row[1:$];
    """,
    [*NUMBERS, *WEB[:20]],
)
def squares(lines: list[str]) -> Iterator[str]:
    totals: Counter[tuple[object, ...]] = Counter()
    shown = []
    for line in lines:
        m = [[0] * 3 for _ in range(3)]
        for i, digits in enumerate(re.findall(r"\d+", line)):
            m[i % 3][i // 3 % 3] += int(digits) % 7
        totals[sum(m[i][i] for i in range(3)), 4] += m[0][2] + m[0][0]
        shown.append([*m[1], 200, 300, m[0][2]])
    yield from summed("t", dict(totals))
    yield from (f"c[] = {{ {', '.join(map(str, row))} }}" for row in sorted(shown))


@case(
    r"""
    # Loops that count, and others that only look like it.
    w := sawzall(string(input), `\S+`);
    seen: array of string = {};
    t: table sum[string] of int;
    grow := function(n: int): int { seen = seen + {"more"}; return n; };
    for (i := 0; i < len(w); i++) { if (i == 2) continue; seen = seen + {w[i]}; }
    for (i := 0; i < len(seen); i++) { if (len(seen) < 9) seen = seen + {"grown"}; }
    for (i := 0; i < len(seen); i++) if (len(seen) < 12) grow(i);
    last := -2;
    for (last = -2; last <= len(seen) - 7; last++) if (last > 0 && w[0] == "10.0.1.1") break;
    skipped := 0;
    for (i := 0; i < 20; i++) { skipped++; i++; }
    for (i := 5; i < 3; i++) skipped = 1000;
    for (i := 0; i < len(seen); i++) { seen[i] = seen[i] + "!"; emit t[seen[i][0:3]] <- 1; }
    emit t["last"] <- last;
    emit t["skipped"] <- skipped;
    emit t["halves"] <- (last - 7) / 2 * 100 + (last - 7) % 2;
    """,
    [*WEB[:40], "", "a b", "10.0.1.1 x y"],
)
def counted_loops(lines: list[str]) -> Iterator[str]:
    found: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        words = line.split()
        seen = [word for n, word in enumerate(words) if n != 2]
        at = 0
        while at < len(seen):
            seen += ["grown"] if len(seen) < 9 else []
            at += 1
        at = 0
        while at < len(seen):
            seen += ["more"] if len(seen) < 12 else []
            at += 1
        end = max(-2, len(seen) - 6)
        last = next((n for n in range(1, end) if words[0] == "10.0.1.1"), end)
        for text in seen:
            found[f"{text}!"[:3],] += 1
        found["last",] += last
        found["skipped",] += 10
        found["halves",] += -((7 - last) // 2) * 100 - (7 - last) % 2
    yield from summed("t", dict(found))
