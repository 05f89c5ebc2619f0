"""`--metrics :9464`: how a run is going, for Prometheus; on this machine only."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from millstream.engine.job import Progress, Report
from millstream.errors import UsageError
from millstream.plan.figures import StepFigures

_ADDRESS = re.compile(r"(127\.0\.0\.1|localhost)?:?(\d{1,5})", re.ASCII)
_ROWS = ("read", "processed", "late", "rejected")
#: The figures of a step, and what they are called.
_OF_STEPS = (("taken", "rows_in_total", "counter"), ("made", "rows_out_total", "counter"),
             ("seconds", "seconds_total", "counter"), ("faults", "faults_total", "counter"),
             ("state", "state_bytes", "gauge"))  # fmt: skip


def metrics_text(report: Report | None, now: float) -> str:
    """What a report says, in the text format of Prometheus; `now` is in seconds since 1970."""
    return "".join(f"{line}\n" for line in _lines(report, now))


def _lines(report: Report | None, now: float) -> Iterator[str]:
    yield "# TYPE millstream_up gauge"
    yield "millstream_up 1"
    if report is None:
        return  # the first batch has not come yet
    yield "# TYPE millstream_rows_total counter"
    for name, counts in report.inputs.items():
        for fate in _ROWS:
            labels = f'input="{_escaped(name)}",fate="{fate}"'
            yield f"millstream_rows_total{{{labels}}} {getattr(counts, fate)}"
    yield "# TYPE millstream_rows_waiting gauge"
    for name, counts in report.inputs.items():
        yield f'millstream_rows_waiting{{input="{_escaped(name)}"}} {counts.waiting}'
    yield "# TYPE millstream_rows_written_total counter"
    for name, rows in report.outputs.items():
        yield f'millstream_rows_written_total{{output="{_escaped(name)}"}} {rows}'
    yield "# TYPE millstream_faults_total counter"
    yield f"millstream_faults_total {sum(report.faults.values())}"
    yield from _of_steps(dict(report.steps))
    yield from _of_inputs_behind(report, now)
    if report.mark is not None:
        mark = report.mark / 1e6
        yield from ("# TYPE millstream_mark_seconds gauge", f"millstream_mark_seconds {mark!r}")
        yield from ("# TYPE millstream_lag_seconds gauge", f"millstream_lag_seconds {now - mark!r}")
    if report.batch is not None:
        yield from ("# TYPE millstream_batch gauge", f"millstream_batch {report.batch.number}")
        yield "# TYPE millstream_batch_seconds gauge"
        yield f"millstream_batch_seconds {report.batch.seconds!r}"
    if report.state_bytes is not None:
        yield "# TYPE millstream_state_bytes gauge"
        yield f"millstream_state_bytes {report.state_bytes}"


def _of_steps(steps: dict[str, StepFigures]) -> Iterator[str]:
    """What each step takes in and gives, how long it works, what it cannot compute, and keeps."""
    for figure, word, kind in _OF_STEPS:
        figures = {name: getattr(one, figure) for name, one in steps.items()}
        known = {name: value for name, value in figures.items() if value is not None}
        if known:
            yield f"# TYPE millstream_step_{word} {kind}"
        for name, value in known.items():
            yield f'millstream_step_{word}{{step="{_escaped(name)}"}} {value!r}'


def _of_inputs_behind(report: Report, now: float) -> Iterator[str]:
    """What has become of the inputs of each step: its lag is that of the one furthest behind."""
    newest = {name: time / 1e6 for name, time in report.newest.items()}
    if newest:
        yield "# TYPE millstream_input_lag_seconds gauge"
    for name, time_ in newest.items():
        yield f'millstream_input_lag_seconds{{input="{_escaped(name)}"}} {now - time_!r}'
    behind = {step: names for step, names in report.behind.items() if names}
    steps = [step for step, names in behind.items() if names <= newest.keys()]
    if steps:
        yield "# TYPE millstream_step_lag_seconds gauge"
    for step in steps:
        lag = now - min(newest[name] for name in behind[step])
        yield f'millstream_step_lag_seconds{{step="{_escaped(step)}"}} {lag!r}'
    for fate in ("late", "rejected"):
        if behind:
            yield f"# TYPE millstream_step_{fate}_total counter"
        for step, names in behind.items():
            count = sum(getattr(report.inputs[name], fate) for name in names)
            yield f'millstream_step_{fate}_total{{step="{_escaped(step)}"}} {count}'


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


class Metrics:
    """Mutable: the last report of a run, and a server that tells it while the run goes on."""

    def __init__(self, address: str, clock: Callable[[], float] = time.time) -> None:
        match = _ADDRESS.fullmatch(address)
        if match is None or int(match[2]) > 65_535:
            raise UsageError(f'expected a port on this machine, got "{address}"',
                             hint="such as --metrics :9464")  # fmt: skip
        self.report: Report | None = None
        self.clock = clock
        try:
            self._server = ThreadingHTTPServer(("127.0.0.1", int(match[2])), _handler_of(self))
        except OSError as error:
            raise UsageError(f"cannot listen at {address}: {error.strerror}") from None
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def watching(self, progress: Progress) -> Progress:
        """The same progress, of which the last report is kept."""

        def told(report: Report) -> None:
            self.report = report
            progress(report)

        return told

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler_of(metrics: Metrics) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = 10

        def do_GET(self) -> None:
            is_known = self.path.partition("?")[0] == "/metrics"
            text = metrics_text(metrics.report, metrics.clock()) if is_known else "try /metrics\n"
            body = text.encode()
            self.send_response(200 if is_known else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as its base has it
            """Standard error is the run's."""

    return Handler
