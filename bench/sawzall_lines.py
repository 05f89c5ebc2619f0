"""A program of regular expressions on lines beside Python with `re`: processor time, best of 3.

python bench/sawzall_lines.py [LINES]
"""

from __future__ import annotations

import os
import random
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

PATTERN = r'^(\S+) \S+ \S+ \[([^\]]+)\] "(\S+) ([^ ?"]+)[^"]*" (\d+) (\d+)'
PROGRAM = f"""
hits: table sum[method: string][status: int] of int;
pages: table sum[page: string] of int;
sent: table sum[method: string] of int;
m := matchstrs(`{PATTERN}`, string(input));
if (len(m) > 0) {{
  emit hits[m[3]][int(m[5])] <- 1;
  emit pages[m[4]] <- 1;
  emit sent[m[3]] <- int(m[6]);
}}
"""


def write_lines(path: Path, count: int) -> None:
    chance = random.Random(7)
    with path.open("w") as file:
        for _ in range(count):
            host = ".".join(str(chance.randrange(256)) for _ in range(4))
            request = f"{chance.choice(['GET', 'POST', 'PUT'])} /page{chance.randrange(1000)}.html"
            file.write(
                f'{host} - - [10/Oct/2025:13:55:36 +0000] "{request}?x=1&y=2 HTTP/1.0" '
                f"{chance.choice([200, 200, 404, 500])} {chance.randrange(100000)} "
                '"http://example.com/start.html" "Mozilla/4.08 [en] (Win98; I ;Nav)"\n'
            )


def by_hand(path: Path) -> None:
    pattern = re.compile(PATTERN)
    hits: dict[tuple[str, int], int] = defaultdict(int)
    pages: dict[str, int] = defaultdict(int)
    sent: dict[str, int] = defaultdict(int)
    with path.open() as file:
        for line in file:
            match = pattern.search(line.rstrip("\n"))
            if match:
                hits[match[3], int(match[5])] += 1
                pages[match[4]] += 1
                sent[match[3]] += int(match[6])


@contextmanager
def silence() -> Iterator[None]:
    kept, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    sys.stdout.flush()
    os.dup2(null, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)


def best(work: Callable[[], None]) -> float:
    times = []
    for _ in range(3):
        begun = time.process_time()
        work()
        times.append(time.process_time() - begun)
    return min(times)


def main() -> None:
    from millstream.cli.main import main as millstream

    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        lines, program = Path(folder, "access.log"), Path(folder, "access.szl")
        write_lines(lines, count)
        program.write_text(PROGRAM)

        def ours() -> None:
            with silence():
                millstream(["run", str(program), "--engine", "local", "--in", f"input={lines}"])

        hand, mine = best(lambda: by_hand(lines)), best(ours)
    print(f"{count:,} lines: re {hand:.2f} s, Millstream {mine:.2f} s, {hand / mine:.1f} times")


if __name__ == "__main__":
    main()
