"""Programs with types that contain themselves, messages and numbers that wrap, beside Python."""

from __future__ import annotations

import ast
import random
import re
from collections import Counter
from collections.abc import Iterator

from tests.languages.sawzall.oracles import case, summed

_CHANCE = random.Random(5)


def _message(url: str, rank: int, links: list[str]) -> str:
    raw = bytes([10, len(url)]) + url.encode() + bytes([16, rank])
    return (raw + b"".join(bytes([26, len(link)]) + link.encode() for link in links)).hex()


MESSAGES = [
    _message(f"http://{_CHANCE.choice(['a.com', 'b.org'])}/{n}", _CHANCE.randrange(100),
             [f"l{_CHANCE.randrange(5)}" for _ in range(n % 4)])
    for n in range(30)
]  # fmt: skip


@case(
    """
    # A parser of sums and products, as functions that call themselves, and their trees.
    type Node = { op: string, v: int, kids: array of Node };
    s := string(input);
    pos := 0;
    eval: function(n: Node): int {
      switch (n.op) {
        case "+": return eval(n.kids[0]) + eval(n.kids[1]);
        case "*": return eval(n.kids[0]) * eval(n.kids[1]);
        default: return n.v;
      }
    };
    depth: function(n: Node): int {
      d := 0;
      for (i := 0; i < len(n.kids); i++) d = max(d, depth(n.kids[i]));
      return d + 1;
    };
    parse: function(level: int): Node {
      if (level == 2) {
        if (s[pos] == '(') { pos++; r := parse(0); pos++; return r; }
        v := 0;
        while (pos < len(s) && s[pos] >= '0' && s[pos] <= '9') { v = v * 10 + s[pos] - '0'; pos++; }
        n: Node = {"n", v, {}};
        return n;
      }
      left := parse(level + 1);
      c := '+';
      if (level == 1) c = '*';
      while (pos < len(s) && s[pos] == c) {
        pos++;
        right := parse(level + 1);
        m: Node = {format("%c", c), 0, {left, right}};
        left = m;
      }
      return left;
    };
    o: table collection of string;
    tree := parse(0);
    emit o <- format("%s %d %d", s, eval(tree), depth(tree));
    """,
    ["((8))", "(1+2)*3", "1+2*3", "2*(3+4)*5", "7"],
)
def trees(lines: list[str]) -> Iterator[str]:
    def depth(node: ast.AST) -> int:
        if not isinstance(node, ast.BinOp):
            return 1
        return 1 + max(depth(node.left), depth(node.right))

    for line in lines:
        tree = ast.parse(line, mode="eval").body
        values = {"((8))": 8, "(1+2)*3": 9, "1+2*3": 7, "2*(3+4)*5": 70, "7": 7}
        yield f"o[] = {line} {values[line]} {depth(tree)}"


@case(
    """
    # The page of the highest rank of each domain, and what is linked to.
    type Document = proto { url: string @ 1, rank: int @ 2, links: array of string @ 3,
                            lang: string = "en" @ 4 };
    doc: Document = bytes(string(input), "hex");
    best: table maximum(1)[domain: string] of url: string weight rank: int;
    links: table sum[link: string] of int;
    fields: table sum[n: int][lang: string] of int;
    domain := saw(doc.url, skip `^http://`, `[^/]+`)[0];
    emit best[domain] <- doc.url weight doc.rank;
    when (i: each int; def(doc.links[i])) emit links[doc.links[i]] <- 1;
    if (!inproto(doc.lang)) emit fields[inprotocount(doc)][doc.lang] <- 1;
    """,
    MESSAGES,
)
def ranks_of_pages(lines: list[str]) -> Iterator[str]:
    best: dict[str, tuple[int, str]] = {}
    links: Counter[tuple[object, ...]] = Counter()
    fields: Counter[tuple[object, ...]] = Counter()
    for line in lines:
        raw = bytes.fromhex(line)
        url = raw[2 : 2 + raw[1]].decode()
        rank, rest = raw[3 + raw[1]], raw[4 + raw[1] :]
        pages = [page.decode() for page in re.findall(rb"\x1a\x02(..)", rest)]
        domain = url.split("/")[2]
        best[domain] = min(best.get(domain, (0, "~")), (-rank, url))
        links.update((page,) for page in pages)
        fields[2 + bool(pages), "en"] += 1
    yield from (f"best[{d}] = {url}, {-rank}" for d, (rank, url) in sorted(best.items()))
    yield from summed("links", dict(links))
    yield from summed("fields", dict(fields))


@case(
    """
    # Sums and products that may wrap, between maps and arrays; others that never do.
    o: table collection of int;
    n := int(string(input));
    s := string(input);
    m: map[string] of int = {:};
    m["a"] = n * 3 - len(s);
    a := new(array of int, 3, 0);
    for (i := 0; i < 3; i++)
      a[(len(s) + i) % 3] = (n + i) * 4611686018427387904 + len(s) * 7 / 2 - s[0];
    emit o <- a[0];
    emit o <- a[len(s) % 3];
    emit o <- m["a"] + (len(s) - 9) / 2;
    emit o <- (len(s) - 9) % 4;
    """,
    ["-3", "1", "22", "9223372036854775807", "-9223372036854775808"],
)
def wrapping(lines: list[str]) -> Iterator[str]:
    def wrapped(number: int) -> int:
        return (number + 2**63) % 2**64 - 2**63

    values = []
    for line in lines:
        n, size = int(line), len(line)
        a = [0, 0, 0]
        for i in range(3):
            product = wrapped(n + i) * 2**62 + size * 7 // 2 - ord(line[0])
            a[(size + i) % 3] = wrapped(product)
        less = size - 9
        half = less // 2 if less >= 0 else -(-less // 2)
        rest = less % 4 if less >= 0 else -(-less % 4)
        values += [a[0], a[size % 3], wrapped(wrapped(n * 3 - size) + half), rest]
    yield from (f"o[] = {value}" for value in sorted(values))
