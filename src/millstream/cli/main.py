"""The command line. Each command lives in its own module and is imported when asked for."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn, TypeAlias

import millstream
from millstream.cli.views import add_language_options
from millstream.errors import MillstreamError, ProgramError, Stopped, UsageError
from millstream.interrupts import STOPPED, interruptible, say_stopped, was_interrupted

DONE, FAILED, WRONG = 0, 1, 2

#: What is run for each command: a function from parsed arguments to an exit status.
COMMANDS: dict[str, str] = {
    "run": "millstream.cli.run:run",
    "read": "millstream.cli.read:run",
    "explain": "millstream.cli.explain:run",
    "check": "millstream.cli.check:run",
    "explore": "millstream.cli.explore:run",
    "bench": "millstream.cli.bench:run",
    "doctor": "millstream.cli.doctor:run",
    "demo": "millstream.cli.demo:run",
    "serve": "millstream.cli.serve:run",
    "publish": "millstream.cli.broker:publish",
    "subscribe": "millstream.cli.broker:subscribe",
    "cube": "millstream.cli.cube:run",
    "init": "millstream.cli.shipped:init",
    "examples": "millstream.cli.shipped:examples",
    "completion": "millstream.cli.completion:run",
}


class _Parser(argparse.ArgumentParser):
    """Errors in our own words."""

    def error(self, message: str) -> NoReturn:
        print(f"error: {message}\n    see {self.prog} --help", file=sys.stderr)
        raise SystemExit(WRONG)


def make_parser(asked: str | None = None) -> argparse.ArgumentParser:
    """What reads a command line; with the options of one command only, if that is asked."""
    parser = _Parser(
        prog="millstream",
        description="Streams for people who are not stream-processing programmers.",
    )
    parser.add_argument(
        "--version", action="version", version=f"millstream {millstream.__version__}"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    common = _Parser(add_help=False)
    common.add_argument("--debug", action="store_true", help="show tracebacks")
    adding = (_OPTIONS[asked],) if asked in _OPTIONS else dict.fromkeys(_OPTIONS.values())
    for add in adding:
        add(commands, common)
    return parser


Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"  # noqa: SLF001 - it has no other name


def _add_engine_options(run: argparse.ArgumentParser) -> None:
    """What not all engines take."""
    run.add_argument("--schedule", metavar="S", help="of the reference: default or random:SEED")
    run.add_argument("--master", metavar="URL", help="of Spark (default: local[*,4])")
    run.add_argument(
        "--checkpoint", metavar="DIR", help="where a run that was stopped is taken up again"
    )
    run.add_argument("--rebuild", action="store_true", help="compute all again from the input")
    run.add_argument(
        "--relayout", action="store_true",
        help="lay the work of a checkpoint out anew: other places, other passes",
    )  # fmt: skip
    run.add_argument(
        "--threads", type=int, metavar="N",
        help="of the local engine (default: MILLSTREAM_THREADS, or as many as there are cores)",
    )  # fmt: skip
    run.add_argument("--ui", action="store_true", help="of Spark: its pages in a browser")
    run.add_argument("--jars", metavar="FILES", help="of Spark: jars that you bring, with commas")
    run.add_argument(
        "--packages",
        metavar="NAMES",
        help="of Spark: packages of Maven, such as group:artifact:1.0",
    )


def _add_run(commands: Commands, common: _Parser) -> None:
    run = commands.add_parser("run", parents=[common], help="run a program or a project")
    run.add_argument("file", metavar="PROJECT_OR_FILE")
    run.add_argument(
        "--engine",
        default=None,
        metavar="NAME",
        help="spark, local, reference or actors (default: spark)",
    )
    _add_inputs(run)
    run.add_argument(
        "--out",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="where an output goes; - is standard output; also rejected=PATH and late=PATH",
    )
    run.add_argument("--follow", action="store_true", help="watch for new files until interrupted")
    add_language_options(run, "run")
    _add_engine_options(run)
    run.add_argument("--no-optimise", action="store_true", help="run the program as it is written")
    _add_passes(run)
    run.add_argument(
        "--format",
        choices=("csv", "jsonl", "json", "table"),
        default=None,
        help="of standard output (default: csv, on a terminal table)",
    )
    run.add_argument(
        "--times",
        choices=("micros", "iso"),
        default="micros",
        help="how times are written in text formats",
    )
    run.add_argument(
        "--progress", choices=("auto", "off", "json"), default="auto", help="on standard error"
    )
    run.add_argument(
        "--metrics",
        metavar=":PORT",
        help="tell Prometheus how it goes, at http://127.0.0.1:PORT/metrics",
    )


def _add_shipped(commands: Commands, common: _Parser) -> None:
    init = commands.add_parser("init", parents=[common], help="write a small project that runs")
    init.add_argument("kind", metavar="KIND", nargs="?", help="such as cql, rules or sheet")
    init.add_argument("folder", metavar="FOLDER", nargs="?", help="default: named after the kind")
    examples = commands.add_parser(
        "examples", parents=[common], help="list the examples, or copy one"
    )
    examples.add_argument("name", metavar="NAME", nargs="?", help="such as cql/auction_site")
    examples.add_argument("folder", metavar="FOLDER", nargs="?", help="default: its name")
    completion = commands.add_parser(
        "completion", parents=[common], help="a script that completes commands in a shell"
    )
    completion.add_argument("shell", choices=("bash", "zsh", "fish"))


def _add_read(commands: Commands, common: _Parser) -> None:
    read = commands.add_parser(
        "read", parents=[common], help="show the rows of a result, in time order"
    )
    read.add_argument(
        "path",
        metavar="PATH",
        help="a file, a folder of results or postgresql://user@host/database?table=NAME",
    )
    read.add_argument(
        "--format",
        choices=("table", "csv", "jsonl"),
        default=None,
        help="default: csv, on a terminal table",
    )
    read.add_argument("--limit", type=int, metavar="N", help="show the first N rows only")
    read.add_argument("--follow", action="store_true", help="go on with what comes until Ctrl-C")
    read.add_argument(
        "--state", action="store_true", help="of a relation: what stands after all its changes"
    )
    read.add_argument("--as-of", metavar="TIME", help="what stood at that time")


def _add_explain(commands: Commands, common: _Parser) -> None:
    explain = commands.add_parser(
        "explain", parents=[common], help="show what becomes of a program"
    )
    explain.add_argument("file", metavar="FILE", help="a program or a project folder")
    explain.add_argument(
        "--stage", default="calculus", choices=("types", "calculus", "optimised", "plan", "kernels")
    )
    explain.add_argument(
        "--engine",
        default=None,
        choices=("local", "spark"),
        help="whose plan and kernels are shown (default: that of run)",
    )
    explain.add_argument("--format", default="text", choices=("text", "json", "svg", "html"))
    _add_passes(explain)
    add_language_options(explain, "explain")
    _add_inputs(explain)


def _add_passes(command: _Parser) -> None:
    command.add_argument(
        "--only", metavar="PASSES",
        help="optimise by these passes alone, named with commas between; split_stateless=3 and "
        "split_by_rates=3 say how many copies",
    )  # fmt: skip
    command.add_argument("--without", metavar="PASSES", help="do not optimise by these passes")
    command.add_argument(
        "--relaxed",
        action="store_true",
        help="optimise where numbers may then be rounded in another way too (linear filters)",
    )
    command.add_argument(
        "--sample", type=int, metavar="ROWS",
        help="optimise by what conditions keep of so many first rows of each input",
    )  # fmt: skip


def _add_check(commands: Commands, common: _Parser) -> None:
    check = commands.add_parser("check", parents=[common], help="report all errors; start nothing")
    check.add_argument("file", metavar="FILE", help="a program or a project folder")
    check.add_argument("--format", choices=("text", "json"), default="text")
    _add_names(check)


def _add_bench(commands: Commands, common: _Parser) -> None:
    bench = commands.add_parser(
        "bench", parents=[common], help="benchmarks beside hand-written programs"
    )
    bench.add_argument("names", metavar="NAME", nargs="*", help="all if none is given")
    bench.add_argument("--format", choices=("text", "json"), default="text")
    bench.add_argument(
        "--scale",
        type=float,
        default=1.0,
        metavar="X",
        help="how much data, 1.0 being the full benchmark",
    )


def _add_doctor(commands: Commands, common: _Parser) -> None:
    doctor = commands.add_parser(
        "doctor", parents=[common], help="check this machine and say how to mend it"
    )
    doctor.add_argument("--format", choices=("text", "json"), default="text")


def _add_demo(commands: Commands, common: _Parser) -> None:
    demo = commands.add_parser(
        "demo", parents=[common], help="run a job on generated data and show the result"
    )
    demo.add_argument(
        "--rows", type=int, default=1_000_000, metavar="N", help="trades and quotes, each"
    )
    demo.add_argument("--format", choices=("text", "json"), default="text")


def _add_explore(commands: Commands, common: _Parser) -> None:
    explore = commands.add_parser(
        "explore",
        parents=[common],
        help="try every interleaving of a small program; are its results unique?",
    )
    explore.add_argument("file", metavar="FILE")
    add_language_options(explore, "explore")
    _add_inputs(explore)
    explore.add_argument(
        "--limit", type=int, default=1_000_000, metavar="N", help="give up after N configurations"
    )
    explore.add_argument("--format", choices=("text", "json"), default="text")


def _add_serve(commands: Commands, common: _Parser) -> None:
    serve = commands.add_parser(
        "serve", parents=[common], help="run a project and answer questions while it runs"
    )
    serve.add_argument("file", metavar="PROJECT_OR_FILE")
    serve.add_argument("--engine", default="local", metavar="NAME", help="local or spark")
    serve.add_argument("--port", type=int, default=8000, metavar="N", help="0 takes a free one")
    serve.add_argument(
        "--host", action="append", default=[], metavar="NAME",
        help="a further name by which it may be asked, as behind a proxy",
    )  # fmt: skip
    serve.add_argument(
        "--tokens", metavar="FILE",
        help="a token and its scopes (read, publish, admin, link) in each line, and perhaps "
        "rows=N or requests=N, so many a second; default: a new token",
    )  # fmt: skip
    serve.add_argument("--broker", metavar="NAME", help="be this one of several brokers")
    serve.add_argument("--all", action="store_true", help="start all brokers of brokers.toml")
    serve.add_argument(
        "--brokers", metavar="FILE", help="what is where; default: brokers.toml beside the file"
    )
    serve.add_argument(
        "--link-token", metavar="FILE",
        help="the token that brokers show each other; default: MILLSTREAM_LINK_TOKEN",
    )  # fmt: skip
    serve.add_argument("--tls-cert", metavar="FILE", help="a certificate (PEM): HTTPS, not HTTP")
    serve.add_argument("--tls-key", metavar="FILE", help="its key, if that is not in the same file")
    serve.add_argument("--follow", action="store_true", help="watch for new files")
    serve.add_argument(
        "--checkpoint", metavar="DIR", help="default: .millstream/serve beside the project"
    )
    serve.add_argument("--log", metavar="URL", help="of a broker: nats://host:4222/STREAM")
    serve.add_argument("--keep-log", action="store_true",
                       help="of a broker: keep also what can change nothing any more")  # fmt: skip
    serve.add_argument("--rebuild", action="store_true", help="compute all again from the input")
    serve.add_argument("--master", metavar="URL", help="of Spark (default: local[*,4])")
    _add_names(serve)


def _add_broker(commands: Commands, common: _Parser) -> None:
    """What speaks with a broker that is served elsewhere."""
    publish = commands.add_parser("publish", parents=[common], help="send rows to a broker")
    subscribe = commands.add_parser(
        "subscribe", parents=[common], help="print the rows of a broker's view, and their changes"
    )
    for parser, what in ((publish, "STREAM"), (subscribe, "VIEW")):
        parser.add_argument("url", metavar="URL", help="such as http://127.0.0.1:8000")
        parser.add_argument(what.lower(), metavar=what)
        parser.add_argument("--token-file", metavar="FILE", help="default: MILLSTREAM_TOKEN")
    publish.add_argument("file", metavar="FILE", help="JSON Lines or CSV; - is standard input")
    publish.add_argument("--publisher", metavar="NAME", help="default: one that nobody else has")
    publish.add_argument("--sequence", type=int, default=1, metavar="N", help="of the first batch")
    publish.add_argument("--batch", type=int, default=1000, metavar="N", help="rows in a batch")
    subscribe.add_argument("--where", metavar="CONDITION", help='such as "price > 10"')
    subscribe.add_argument("--final", action="store_true", help="only what never changes any more")
    subscribe.add_argument("--ranges", action="store_true", help="with bounds")
    subscribe.add_argument("--mask", action="store_true", help="whether rows are in for ever")
    subscribe.add_argument("--after", metavar="TOKEN", help="go on behind this")
    subscribe.add_argument("--once", action="store_true", help="the rows now, and end")


def _add_cube(commands: Commands, common: _Parser) -> None:
    cube = commands.add_parser(
        "cube", parents=[common], help="ask a cube of a project, without a server"
    )
    cube.add_argument("what", choices=("query", "plan"), help="the answer, or who would give it")
    cube.add_argument("file", metavar="PROJECT_OR_FILE")
    cube.add_argument(
        "question", metavar="QUESTION", nargs="?", default="{}",
        help='such as \'{"rows": ["region"], "measures": ["total"]}\'; - reads it',
    )  # fmt: skip
    cube.add_argument("--cube", metavar="NAME", help="which one, if there are several")
    cube.add_argument("--format", choices=("table", "json", "csv"), default="table")
    _add_inputs(cube)


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="the value of a name that the program leaves open",
    )


def _add_inputs(parser: argparse.ArgumentParser) -> None:
    _add_names(parser)
    parser.add_argument(
        "--in",
        dest="in_",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="where an input comes from: a file, a pattern, - or generator:rows=N,seed=S",
    )
    parser.add_argument(
        "--unit",
        action="append",
        default=[],
        metavar="[NAME=]UNIT",
        help="what numbers count in columns of times: s, ms, us or ns (default: us)",
    )
    parser.add_argument(
        "--zone",
        action="append",
        default=[],
        metavar="[NAME=]ZONE",
        help="the zone of times that name none, such as Europe/Amsterdam (default: UTC)",
    )
    parser.add_argument(
        "--time-format",
        action="append",
        default=[],
        metavar="[NAME=]FORMAT",
        help="how times are written, such as %%d/%%m/%%Y %%H:%%M (default: ISO 8601)",
    )


#: What adds the options of each command; some add those of several.
_OPTIONS: dict[str, Callable[[Commands, _Parser], None]] = {
    "run": _add_run, "read": _add_read, "explain": _add_explain, "check": _add_check,
    "explore": _add_explore, "bench": _add_bench, "doctor": _add_doctor, "demo": _add_demo,
    "serve": _add_serve, "publish": _add_broker, "subscribe": _add_broker, "cube": _add_cube,
    "init": _add_shipped, "examples": _add_shipped, "completion": _add_shipped,
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0 done, 1 failed while running, 2 wrong program or command.

    130 says that it was stopped by Ctrl-C, or asked to end, before it had come to its end.
    """
    given = sys.argv[1:] if arguments is None else arguments
    # To read the options of all commands would take a tenth of the time of a small run.
    parsed = make_parser(given[0] if given else None).parse_args(given)
    module, _, function = COMMANDS[parsed.command].partition(":")
    try:
        command: Callable[[argparse.Namespace], int] = getattr(
            importlib.import_module(module), function
        )
        return command(parsed)
    except (KeyboardInterrupt, Stopped):
        say_stopped()
        return STOPPED
    except BrokenPipeError:
        # Whoever read our output has gone; give Python something to flush into.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return DONE
    except Exception as error:  # no traceback reaches a user without --debug
        if was_interrupted():
            say_stopped()
            return STOPPED
        if parsed.debug:
            raise
        return _failed(error)


def _failed(error: Exception) -> int:
    if isinstance(error, MillstreamError):
        return _report(error)
    if isinstance(error, OSError):
        what = f"{error.filename}: " if error.filename else ""
        print(f"error: {what}{error.strerror or error}", file=sys.stderr)
    else:
        print(
            f"internal error: {type(error).__name__}: {error}\n"
            "    this is a fault of Millstream, not yours; --debug shows where",
            file=sys.stderr,
        )
    return FAILED


def _report(error: MillstreamError) -> int:
    for fault in error.faults:
        print(f"error: {fault.render()}", file=sys.stderr)
    if len(error.faults) > 1:
        print(f"{len(error.faults)} errors", file=sys.stderr)
    return WRONG if isinstance(error, (UsageError, ProgramError)) else FAILED


if __name__ == "__main__":
    sys.exit(interruptible(main))
