"""`millstream init` and `millstream examples`: projects to begin with, as files of one's own."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from itertools import takewhile
from pathlib import Path

import millstream
from millstream.errors import UsageError, listing, suggest

_HOUSE = Path(millstream.__file__).parent
STARTERS = _HOUSE / "starters"
_SHARED = Path(sys.prefix) / "share" / "millstream"
#: At the root of a checkout; an installation has them among its shared files.
EXAMPLES = next(
    (p for p in (_HOUSE.parent.parent / "examples", _SHARED / "examples") if p.is_dir()),
    _SHARED / "examples",
)
_MARK = re.compile(r"\s*(?:#|//|--)\s*")
_DATA = frozenset({".csv", ".jsonl", ".parquet", ".xlsx", ".in", ".conf"})


def init(arguments: argparse.Namespace) -> int:
    """A small project that runs."""
    kinds = starters()
    kind = arguments.kind
    if kind not in kinds:
        raise UsageError(
            f'there is no starter "{kind}"' if kind else "say what to begin with",
            hint=f"there are: {listing(kinds)}. {suggest(kind or '', kinds) or ''}".strip(),
        )
    folder = Path(arguments.folder or kind)
    _copied(STARTERS / kind, folder)
    print(f"{folder}: {listing(sorted(p.name for p in folder.iterdir()))}")
    print(f"run it with: {_command(STARTERS / kind, folder)}")
    return 0


def examples(arguments: argparse.Namespace) -> int:
    """What is shipped: a list, or a copy of one."""
    names = shipped_examples()
    if arguments.name is None:
        width = max(map(len, names), default=0)
        for name, folder in names.items():
            print(f"{name:{width}}  {described(folder)}")
        print("millstream examples NAME [FOLDER] copies one", file=sys.stderr)
        return 0
    if arguments.name not in names:
        ends = [n for n in names if n.split("/")[1] == arguments.name]
        near = suggest(arguments.name, [*names, *ends])
        raise UsageError(
            f'there is no example "{arguments.name}"',
            hint=f"{near or ''} millstream examples lists them".strip(),
        )
    folder = Path(arguments.folder or arguments.name.rsplit("/", 1)[1])
    _copied(names[arguments.name], folder)
    print(f"{folder}: {listing(sorted(p.name for p in folder.iterdir()))}")
    print(f"run it with: {_command(names[arguments.name], folder)}")
    return 0


def starters() -> list[str]:
    """What one can begin with."""
    return sorted(p.name for p in STARTERS.iterdir() if p.is_dir())


def shipped_examples() -> dict[str, Path]:
    """Folders with a program, by `language/name`."""
    folders = sorted(p.parent for p in EXAMPLES.glob("*/*/expected"))
    return {f"{p.parent.name}/{p.name}": p for p in folders}


def described(folder: Path) -> str:
    """The first sentence of the comment with which a program, or else its project, begins."""
    for path in _texts(folder):
        if comment := _comment(path):
            text = " ".join(_MARK.sub("", line, count=1).strip() for line in comment)
            return re.split(r"[.:](?:\s|$)", text)[0].strip('"')
    return ""


def _comment(path: Path) -> list[str]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return lines if path.suffix == ".py" else list(takewhile(_MARK.match, lines))


def _texts(folder: Path) -> list[Path]:
    files = (p for p in folder.iterdir() if p.is_file() and p.suffix not in _DATA)
    return sorted(files, key=lambda p: (p.suffix == ".toml", p.stem != folder.name, p.name))


def _command(example: Path, folder: Path) -> str:
    """How an example is run: a project as a folder, a program by its file."""
    if (folder / "millstream.toml").exists():
        command = f"millstream run {folder}"
    elif (program := folder / _texts(folder)[0].name).suffix == ".py":
        return f"python {program}"
    else:
        command = f"millstream run {program}"
    outputs = sorted(p.stem for p in (example / "expected").glob("*.csv"))
    places = [f"--out {name}={folder / name}.csv" for name in outputs] if len(outputs) > 1 else []
    return " ".join([command, "--engine local", *_wanted(_texts(folder)[0]), *places])


def _wanted(program: Path) -> list[str]:
    """The options that its comment says it is to be run with, as it would never end without."""
    text = " ".join(_MARK.sub("", line, count=1) for line in _comment(program))
    return re.findall(r"Run it with (--[a-z]+ \w+)", text)


def _copied(source: Path, folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f'"{folder}" is there already', hint="name a folder that is new or empty")
    skipped = shutil.ignore_patterns("expected", "__pycache__")
    shutil.copytree(source, folder, ignore=skipped, dirs_exist_ok=True)
