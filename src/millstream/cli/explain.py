"""`millstream explain`."""

from __future__ import annotations

import argparse
import sys

from millstream import api


def run(arguments: argparse.Namespace) -> int:
    compiled = api.compile(arguments.file)
    sys.stdout.write(compiled.explain(arguments.stage, arguments.format))
    return 0
