"""Compare ours with the values that Excel has left in workbooks: `make compare FOLDER=...`.

Every formula of every `.xlsx` and `.xlsm` file below a folder is computed and put beside the
value that the program which saved the file has kept in the cell. What differs is told with the
formula; a cell that differs only because one it refers to does is counted and not told. Each
file has a process of its own, with a limit of time and of memory.
"""

from __future__ import annotations

import argparse
import collections
import math
import multiprocessing
import resource
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from millstream.errors import MillstreamError
from millstream.languages.sheets.package import Package, opened_package
from millstream.languages.sheets.read import _Reader, _value
from millstream.sheets import Sheet
from millstream.values.excel.precedents import areas_of
from millstream.values.excel.values import Scalar
from millstream.values.excel.workbook import Workbook, address_of, key_of, place_of

SECONDS = 300
GIGABYTES = 4

_Key = tuple[str, int]


@dataclass
class Outcome:
    """Mutable: what came of one workbook."""

    file: str
    maker: str = ""
    problem: str = ""
    compared: int = 0
    agreed: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)
    differing: list[tuple[str, str, object, object]] = field(default_factory=list)
    following: int = 0


def same(ours: object, kept: Scalar) -> bool:
    """Equal as far as Excel writes numbers: fifteen digits, less what a last step may lose."""
    if type(ours) is float and type(kept) is float:
        return math.isclose(ours, kept, rel_tol=1e-9, abs_tol=1e-14)
    return type(ours) is type(kept) and ours == kept


def kept_values(path: Path) -> tuple[Workbook, dict[_Key, Scalar], str]:
    """A workbook, the values kept in the cells of its formulas, and the program that kept them."""
    kept: dict[_Key, Scalar] = {}
    with opened_package(path, path.name) as package:
        reader = _Reader(package, path.name)
        workbook = reader.workbook()
        main = reader._main_part()
        relations = package.relations(main)
        texts = reader._shared_texts(relations)
        for name, relation in reader._contents(main)[0]:
            kind, part = relations.get(relation, ("", ""))
            if kind == "worksheet":
                kept |= _of_worksheet(reader, workbook, name, part, texts)
        return workbook, kept, _maker(package)


def _of_worksheet(
    reader: _Reader, workbook: Workbook, name: str, part: str, texts: list[str]
) -> dict[_Key, Scalar]:
    worksheet = workbook.sheets[name]
    kept: dict[_Key, Scalar] = {}
    for _, element in reader.package.elements(part, "c"):
        address = element.get("r")
        if address is None:
            continue
        key = key_of(*reader._place(address, name))
        if key not in worksheet.formulas and key not in worksheet.spilled:
            continue
        value = next((e.text or "" for e in element if e.tag.rpartition("}")[2] == "v"), None)
        kind = element.get("t", "n")
        if value is not None and (value or kind == "str"):
            kept[name, key] = _value(kind, value, None, texts, uses_1904=reader.uses_1904)
    return kept


def _maker(package: Package) -> str:
    if not package.has("docProps/app.xml"):
        return ""
    words = [
        e.text or "" for _, e in package.elements("docProps/app.xml", "Application", "AppVersion")
    ]
    return " ".join(words)


def compared(path: Path) -> Outcome:
    outcome = Outcome(str(path))
    try:
        workbook, kept, outcome.maker = kept_values(path)
        _compare(Sheet(workbook), workbook, kept, outcome)
    except MillstreamError as error:
        outcome.problem = str(error).splitlines()[0]
    return outcome


def _compare(sheet: Sheet, workbook: Workbook, kept: dict[_Key, Scalar], outcome: Outcome) -> None:
    wrong: dict[_Key, tuple[str, str, object, object]] = {}
    for (name, key), value in kept.items():
        place = f"{name}!{address_of(*place_of(key))}"
        quoted = "'" + name.replace("'", "''") + f"'!{address_of(*place_of(key))}"
        ours: object
        try:
            ours = sheet.get(quoted)[0]
        except MillstreamError as error:
            outcome.refused.append((place, str(error).splitlines()[0]))
            continue
        outcome.compared += 1
        if same(ours, value):
            outcome.agreed += 1
        else:
            wrong[name, key] = (place, _text(workbook, name, key), ours, value)
    for where, told in wrong.items():
        if any(other in wrong for other in _precedents(workbook, *where)):
            outcome.following += 1
        else:
            outcome.differing.append(told)


def _text(workbook: Workbook, sheet: str, key: int) -> str:
    worksheet = workbook.sheets[sheet]
    formula = worksheet.formulas[worksheet.spilled.get(key, key)]
    if formula.shared_with not in (None, key):
        home = formula.shared_with or 0
        return f"{worksheet.formulas[home].text} [of {address_of(*place_of(home))}]"
    return f"{{{formula.text}}}" if formula.array else formula.text


def _precedents(workbook: Workbook, sheet: str, key: int) -> Iterator[_Key]:
    home = workbook.sheets[sheet].spilled.get(key, key)
    if home != key:
        yield sheet, home
    row, column = place_of(home)
    for name, top, left, bottom, right in areas_of(
        workbook.tree(sheet, home), workbook, row, column
    ):
        for place in workbook.sheets[name].filled(top, left, bottom, right):
            if (name, key_of(*place)) != (sheet, key):
                yield name, key_of(*place)


def _child(path: Path, out: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (GIGABYTES << 30, GIGABYTES << 30))
    out.send(compared(path))
    out.close()


def guarded(path: Path) -> Outcome:
    """The outcome for a file, whatever it does."""
    process_of = multiprocessing.get_context("fork")
    ours, theirs = process_of.Pipe(duplex=False)
    child = process_of.Process(target=_child, args=(path, theirs))
    child.start()
    theirs.close()
    try:
        if ours.poll(SECONDS):
            found = ours.recv()
            assert isinstance(found, Outcome)
            return found
        return Outcome(str(path), problem=f"no answer within {SECONDS} s")
    except EOFError:
        return Outcome(str(path), problem="it broke down")
    finally:
        child.kill()
        child.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--maker", default="", help="only files by a program with this name")
    arguments = parser.parse_args()
    reasons: collections.Counter[str] = collections.Counter()
    files = cells = agreed = following = 0
    for path in files_in(arguments.folders):
        outcome = guarded(path)
        if arguments.maker not in outcome.maker and not outcome.problem:
            continue
        files += bool(outcome.compared)
        cells, agreed = cells + outcome.compared, agreed + outcome.agreed
        following += outcome.following
        reasons.update(why.partition(": ")[2] for _, why in outcome.refused)
        _tell(outcome)
    for why, count in reasons.most_common(40):
        _say(f"{count:8} refused: {why}")
    _say(f"{files} files, {cells} cells: {agreed} agree, {following} follow others that do not")
    return int(agreed < cells)


def files_in(folders: list[Path]) -> Iterator[Path]:
    for folder in folders:
        yield from [folder] if folder.is_file() else sorted(folder.rglob("*.xls[xm]"))


def _tell(outcome: Outcome) -> None:
    if outcome.problem or outcome.differing:
        _say(f"{outcome.file} ({outcome.maker}) {outcome.problem}")
    for place, formula, ours, kept in outcome.differing[:40]:
        _say(f"    {place}: ={formula[:300]}\n        ours {ours!r}, kept {kept!r}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")


if __name__ == "__main__":
    sys.exit(main())
