"""`millstream explain`."""

from __future__ import annotations

import argparse
import sys

from millstream.cli.run import compiled_from, has_spark, named, passes_asked
from millstream.cli.views import asked_view, language_options, show_view
from millstream.errors import UsageError, listing


def run(arguments: argparse.Namespace) -> int:
    view = asked_view(arguments)
    if view is not None:
        inputs = named(arguments.in_, "--in")
        return show_view(view, arguments, inputs, lambda: compiled_from(arguments))
    is_sized = arguments.stage in ("optimised", "plan", "kernels")
    if arguments.in_ and not is_sized:
        views = [o.flags[0] for o in language_options("explain") if o.view]
        raise UsageError(
            "inputs are looked at for a view, by the optimiser and for plans",
            hint=f"add one of: {listing([*views, '--stage optimised', '--stage plan'])}",
        )
    compiled = compiled_from(arguments)
    passes = passes_asked(arguments)
    sys.stdout.write(
        compiled.explain(
            arguments.stage,
            arguments.format,
            arguments.engine or ("spark" if has_spark() else "local"),
            inputs=named(arguments.in_, "--in"),
            **passes,
        )
    )
    return 0
