"""`millstream serve`."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from millstream import api
from millstream.cli.run import named
from millstream.cli.show import print_warnings
from millstream.connectors.elsewhere.address import shown
from millstream.errors import SetupError, UsageError
from millstream.languages import served_by
from millstream.languages.language import function_named, read_source
from millstream.source import Source

_NEEDED = ("fastapi", "uvicorn", "orjson", "websockets")
ENGINES = ("local", "spark")


def run(arguments: argparse.Namespace) -> int:
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise SetupError(f"the server needs {', '.join(missing)}",
                         hint='pip install "millstream[server]"')  # fmt: skip
    from millstream.server.listen import Address, listen
    from millstream.server.serving import FAILED, ServeSettings, Serving, cubes_of

    if arguments.broker and arguments.all:
        raise UsageError("--broker starts one, and --all starts all", hint="leave one out")
    language = served_by(Path(arguments.file))
    if language is not None and language.served is not None:
        return _serve_broker(arguments, function_named(language.served))
    if arguments.broker or arguments.all:
        raise UsageError("only a file of streams and views has several brokers")
    if arguments.log or arguments.keep_log:
        raise UsageError("only a file of streams and views has a log")
    if arguments.engine not in ENGINES:
        raise UsageError(f'"{arguments.engine}" cannot be served', hint="engines: local, spark")
    compiled = api.compile(arguments.file, names=named(arguments.set, "--set"))
    cubes_of(compiled)
    print_warnings(compiled.warnings())
    checkpoint = (
        Path(arguments.checkpoint) if arguments.checkpoint else default_checkpoint(arguments.file)
    )
    options = {"rebuild": True} if arguments.rebuild else {}
    if arguments.master:
        if arguments.engine != "spark":
            raise UsageError("--master is of Spark", hint="add --engine spark")
        options["master"] = arguments.master
    settings = ServeSettings(arguments.engine, checkpoint, arguments.follow, options)
    serving = Serving(compiled, settings)
    address = Address(arguments.port, tuple(arguments.host), *tls(arguments))
    listen(serving, address, Path(arguments.tokens) if arguments.tokens else None, say)
    if serving.status == FAILED and serving.fault is not None:
        raise serving.fault
    return 0


def _serve_broker(arguments: argparse.Namespace, load: Callable[[Source], Any]) -> int:
    """A file of streams and views has a broker of its own."""
    from millstream.cli import several
    from millstream.server.broker_run import BrokerRun
    from millstream.server.brokers import BROKER_ROUTES
    from millstream.server.listen import Address, listen
    from millstream.server.serving import FAILED

    if arguments.engine != "local":
        raise UsageError("a broker runs on the local engine")
    served = load(read_source(Path(arguments.file)))
    if arguments.broker or arguments.all:
        return several.serve(arguments, served)
    folder = (
        Path(arguments.checkpoint) if arguments.checkpoint else default_checkpoint(arguments.file)
    )
    run = BrokerRun(served, folder, log=log_of(arguments), keeps_log=arguments.keep_log)
    address = Address(arguments.port, tuple(arguments.host), *tls(arguments))
    tokens = Path(arguments.tokens) if arguments.tokens else None
    listen(run, address, tokens, say, BROKER_ROUTES)
    if run.status == FAILED and run.fault is not None:
        raise run.fault
    return 0


def log_of(arguments: argparse.Namespace) -> str | None:
    """The address of the log, if it is not in a folder."""
    address: str | None = arguments.log
    if address and not address.startswith("nats://"):
        raise UsageError(f'"{shown(address)}" is no place for a log',
                         hint="such as --log nats://127.0.0.1:4222/FLOOR")  # fmt: skip
    return address or None


def tls(arguments: argparse.Namespace) -> tuple[Path | None, Path | None]:
    """The files of the certificate and of its key."""
    certificate, key = arguments.tls_cert, arguments.tls_key
    return Path(certificate) if certificate else None, Path(key) if key else None


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def default_checkpoint(file: str) -> Path:
    """Beside the project, in a folder of ours."""
    path = Path(file)
    folder = path if path.is_dir() else path.parent
    name = "serve" if path.is_dir() or path.name == "millstream.toml" else f"serve-{path.stem}"
    return folder / ".millstream" / name
