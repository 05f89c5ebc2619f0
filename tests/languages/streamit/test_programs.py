"""Programs of the kinds that people write, against an interpreter of their text.

What can be known without any interpreter (checksums, sorted numbers) is compared with that too.
"""

from __future__ import annotations

import cmath
import hashlib
import zlib
from pathlib import Path

import pytest

from millstream.calculus.graph import Program
from millstream.engine.reference.feed import Event
from millstream.languages.streamit.load import load
from millstream.source import Source
from tests.languages.streamit.oracle import Oracle
from tests.laws.runs import on_local, on_reference
from tests.seeds import in_turn

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.str"))
ITERATIONS = 3


def compiled(path: Path) -> Program:
    return load(Source(path.name, path.read_text())).program


def printed(program: Program, *, is_local: bool = False, iterations: int = ITERATIONS) -> str:
    ticks = [Event(number, (number,)) for number in range(iterations + 1)]
    events = dict.fromkeys(program.input_names, ticks)
    sent = (on_local(program, events, (2,)) if is_local else on_reference(program, events))[0]
    return "".join(str(row[0]) for _, _, row in sent["printed"])


def expected(path: Path, length: int) -> str:
    """At least so much of what a program prints."""
    oracle = Oracle(path.read_text())
    firings = oracle.run()
    while sum(map(len, oracle.printed)) < length:
        next(firings)
    return "".join(oracle.printed)


def lines(name: str, iterations: int = ITERATIONS) -> list[str]:
    path = Path(__file__).parent / "programs" / f"{name}.str"
    return printed(compiled(path), iterations=iterations).splitlines()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_print_what_their_text_says(path: Path) -> None:
    text = printed(compiled(path))
    assert text
    assert expected(path, len(text)).startswith(text)


def test_constants_of_a_long_text_do_not_take_each_other_s_places() -> None:
    """What was known of one by its number in memory was once taken for the next, which got it."""
    constants = "".join(f"final float C{n} = {n}.5;\n" for n in range(300))
    text = (
        constants
        + """void->void pipeline Main {
        add void->float filter { work push 1 { push(C7 + C299); } };
        add float->void filter { work pop 1 { println(pop()); } };
    }"""
    )
    program = load(Source("constants.str", text)).program
    assert set(printed(program).split()) == {"307.0"}


@pytest.mark.slow
@pytest.mark.parametrize("path", in_turn(PROGRAMS, 6), ids=lambda path: path.stem)
def test_the_local_engine_prints_what_the_reference_does(path: Path) -> None:
    program = compiled(path)
    assert printed(program) == printed(program, is_local=True)


def test_checksums_are_those_of_everybody() -> None:
    data = bytes((n * 37 + 5) & 0xFF for n in range(24))
    sums = [zlib.crc32(data[i : i + 8]) for i in (0, 8, 16)]
    assert [f"crc {(s + 2**31) % 2**32 - 2**31}" for s in sums] == lines("crc")


def test_what_is_enciphered_can_be_deciphered() -> None:
    words = [int(line) for line in lines("tea")]
    plain = [0x01234567, 0x01234567 ^ 0x5A5A5A5A]
    assert plain == words[2:4]
    assert plain != words[:2]


def test_what_is_sorted_is_in_order() -> None:
    keys = sorted((16 - i) * 37 % 101 - 20 for i in range(16))
    assert [",".join(map(str, keys))] == lines("bitonic_recursive", 1)
    numbers, x = [], 0
    for _ in range(32):
        x = (x * 31 + 17) % 64
        numbers.append(x)
    in_order = sorted(numbers[:16]) + sorted(numbers[16:])
    assert [str(n) for n in in_order] == lines("merge_sort", 2)


def test_four_ways_to_sort_give_the_same() -> None:
    keys, s = [], 3
    for _ in range(16):
        s = (s * 75 + 74) % 127
        keys.append(s)
    once = [" ".join(map(str, sorted(keys[i : i + 8]))) for i in (0, 8)]
    assert [once[0]] * 4 + [once[1]] * 4 == lines("sorts_side_by_side", 2)


def test_a_cipher_is_the_one_that_is_known_by_its_name() -> None:
    known = bytes.fromhex("BBF316E8D940AF0AD3")  # of "Plaintext" by the key "Key"
    assert list(known) == [int(line) for line in lines("rc4", 1)]


def test_blocks_are_enciphered_and_digested_as_the_standards_say() -> None:
    enciphered = bytes(int(line) for line in lines("aes128", 1))
    assert "69c4e0d86a7b0430d8cdb78070b4c55a" == enciphered.hex()
    words = [int(line) & 0xFFFFFFFF for line in lines("sha1", 1)]
    assert hashlib.sha1(b"abc").hexdigest() == "".join(f"{word:08x}" for word in words)  # noqa: S324


def test_noise_is_taken_out_of_words_by_their_check_bits() -> None:
    words = [" ".join(str((w * 5 + 3 >> k) & 1) for k in range(4)) for w in range(6)]
    assert words == lines("hamming", 6)


def test_what_nobody_divides_is_left_by_filters_that_may_give_nothing() -> None:
    left = [n for n in range(2, 62) if all(n == p or n % p for p in (2, 3, 5, 7))]
    assert [str(n) for n in left] == lines("sieve", 60)


def test_what_was_packed_by_what_came_before_is_unpacked() -> None:
    letters = [0] * 4  # what was before the first
    for k in range(21):
        for _ in range(2 + k % 3 if k % 3 else 0):
            letters.append(letters[-1 - k % 4])
        letters.append((97 if k % 3 else 65) + k % 26)
    read = [int(line) for line in lines("unpacked", 20)]
    assert len(read) > 50
    assert letters[4 : 4 + len(read)] == read


def test_means_and_differences_of_neighbours_are_those_of_haar() -> None:
    means = [float(k * k * 3 % 17) for k in range(8)]
    differences: list[float] = []
    while len(means) > 1:
        pairs = list(zip(means[::2], means[1::2], strict=True))
        differences = [(a - b) / 2 for a, b in pairs] + differences
        means = [(a + b) / 2 for a, b in pairs]
    assert means + differences == [float(line) for line in lines("haar", 1)]


def test_a_transform_that_adds_itself_is_a_sum_of_turns() -> None:
    items = [complex((7 + i * i) % 11 - 5, ((1 + i) % 3) / 4) for i in range(8)]
    turns = [sum(x * cmath.exp(-2j * cmath.pi * i * k / 8) for i, x in enumerate(items))
             for k in range(8)]  # fmt: skip
    measured = [float(line) for line in lines("fft_recursive", 1)]
    assert [abs(turn) for turn in turns] == pytest.approx(measured, rel=1e-5)


def test_statements_between_constants_are_done_in_their_order() -> None:
    table = [0.0, 1.5, 3.0, 4.5]
    expected = [0.0] * 3 + [table[n % 4] + 12.0 for n in range(5)]
    assert expected == [float(line) for line in lines("globals_with_statements", 8)]


def test_a_loop_that_takes_nothing_turns_once_for_each_item() -> None:
    assert ["1", "2", "3", "5", "8", "13", "21", "34"] == lines("fib", 8)


def test_an_echo_fades() -> None:
    out = [0.0] * 12
    for n in range(12):
        out[n] = (n % 7 == 0) + (0.6 * out[n - 3] if n >= 3 else 0)
    assert out == pytest.approx([float(line) for line in lines("echo", 12)])
