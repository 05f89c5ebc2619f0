"""`millstream explain`."""

from __future__ import annotations

import argparse
import sys

from millstream.cli.run import compiled_from, named
from millstream.cli.show import print_json
from millstream.errors import UsageError


def run(arguments: argparse.Namespace) -> int:
    if arguments.subject is not None:
        return _situation(arguments)
    if arguments.in_:
        raise UsageError("inputs are read for one subject only", hint="add --vessel KEY")
    compiled = compiled_from(arguments)
    sys.stdout.write(compiled.explain(arguments.stage, arguments.format))
    return 0


def _situation(arguments: argparse.Namespace) -> int:
    """How the rules stand for one subject."""
    from millstream.rules import explain_situation

    if not arguments.file.endswith(".rules"):
        raise UsageError("only a .rules file has subjects to explain", place=arguments.file)
    found = explain_situation(arguments.file, arguments.subject, named(arguments.in_, "--in"))
    if arguments.format == "json":
        print_json(found.records())
    else:
        sys.stdout.write(found.text())
    return 0
