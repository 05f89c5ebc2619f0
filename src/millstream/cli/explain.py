"""`millstream explain`."""

from __future__ import annotations

import argparse
import sys

from millstream import api
from millstream.cli.run import named
from millstream.cli.views import asked_view, language_options, show_view
from millstream.errors import UsageError, listing


def run(arguments: argparse.Namespace) -> int:
    view = asked_view(arguments)
    if view is not None:
        return show_view(view, arguments, named(arguments.in_, "--in"))
    if arguments.in_:
        views = [o.flags[0] for o in language_options("explain") if o.view]
        raise UsageError("inputs are read for a view only", hint=f"add one of: {listing(views)}")
    compiled = api.compile(arguments.file)
    sys.stdout.write(compiled.explain(arguments.stage, arguments.format))
    return 0
