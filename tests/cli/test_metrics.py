"""How a run is going, for Prometheus."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any

import pytest

import millstream
from millstream.cli.main import main
from millstream.cli.metrics import Metrics, metrics_text
from millstream.engine.job import BatchFigures, InputCounts, Report
from millstream.errors import UsageError

REPORT = Report(
    {'a"b': InputCounts(10, 6, 1, 2, 1)}, {"out": 4}, mark=1_500_000, state_bytes=77,
    batch=BatchFigures(3, 0.25, 10, 4),
)  # fmt: skip


def test_a_report_is_told_as_prometheus_reads_it() -> None:
    lines = metrics_text(REPORT, 2.0).splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    label = 'input="a\\"b"'
    assert values == {
        "millstream_up": "1",
        f'millstream_rows_total{{{label},fate="read"}}': "10",
        f'millstream_rows_total{{{label},fate="processed"}}': "6",
        f'millstream_rows_total{{{label},fate="late"}}': "2",
        f'millstream_rows_total{{{label},fate="rejected"}}': "1",
        f"millstream_rows_waiting{{{label}}}": "1",
        'millstream_rows_written_total{output="out"}': "4",
        "millstream_faults_total": "0", "millstream_mark_seconds": "1.5",
        "millstream_lag_seconds": "0.5", "millstream_batch": "3",
        "millstream_batch_seconds": "0.25", "millstream_state_bytes": "77",
    }  # fmt: skip
    typed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    assert typed == {key.partition("{")[0] for key in values}


def test_each_step_tells_of_the_inputs_that_it_reads() -> None:
    counts = {"a": InputCounts(9, 6, 0, 2, 1), "b": InputCounts(5, 1, 0, 3, 1)}
    report = Report(counts, {}, behind={"first": frozenset("a"), "both": frozenset("ab")},
                    newest={"a": 4_000_000, "b": 1_000_000})  # fmt: skip
    lines = metrics_text(report, 5.0).splitlines()
    for line in (
        'millstream_input_lag_seconds{input="b"} 4.0',
        'millstream_step_lag_seconds{step="first"} 1.0',
        'millstream_step_lag_seconds{step="both"} 4.0',
        'millstream_step_late_total{step="first"} 2',
        'millstream_step_late_total{step="both"} 5',
        'millstream_step_rejected_total{step="both"} 2',
    ):
        assert line in lines


def asked(port: int, path: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_the_last_report_is_served_while_the_run_goes_on() -> None:
    seen: list[Report] = []
    with Metrics(":0", clock=lambda: 2.0) as metrics:
        assert asked(metrics.port, "/metrics") == (
            200, "# TYPE millstream_up gauge\nmillstream_up 1\n",
        )  # fmt: skip
        metrics.watching(seen.append)(REPORT)
        assert asked(metrics.port, "/metrics") == (200, metrics_text(REPORT, 2.0))
        assert asked(metrics.port, "/other")[0] == 404
    assert seen == [REPORT]


@pytest.mark.parametrize("address", ["0.0.0.0:9", "x", ":70000", "", "example.org:80"])
def test_only_a_port_of_this_machine_is_taken(address: str) -> None:
    with pytest.raises(UsageError, match="expected a port on this machine"):
        Metrics(address)


def test_a_run_says_where_its_metrics_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "p.brook").write_text("output out; input t(n integer); (out) <- Filter[n > 1](t);")
    (tmp_path / "t.csv").write_text("_time,n\n1,2\n")
    asked_for = ["run", str(tmp_path / "p.brook"), "--engine", "local", "--metrics", ":0"]
    assert main(asked_for) == 0
    out, err = capsys.readouterr()
    assert out == "_time,n\n1,2\n"
    assert "metrics: http://127.0.0.1:" in err


@pytest.mark.parametrize("is_kept", [False, True])
def test_each_step_tells_what_it_has_done(tmp_path: Path, is_kept: bool) -> None:
    """Without a checkpoint in rounds, and with one in batches."""
    program = (
        "output out; input trades(k text, n integer) time at; "
        "(big) <- Filter[n >= 2](trades); (held, $a) <- Latest[by k](big, $a); "
        "(out, $b) <- Aggregate[by k; s = sum(n)](held, $b);"
    )
    rows = "".join(f'{{"at": {n}, "k": "{n % 3}", "n": {n}}}\n' for n in range(10))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.jsonl").write_text(rows)
    job = millstream.compile(text=program)
    seen: list[str] = []
    options: dict[str, Any] = {"checkpoint": tmp_path / "ck"} if is_kept else {}
    report = job.run({"trades": f"{tmp_path}/in/"}, progress=lambda r: seen.append(
        metrics_text(r, 2.0)), **options).report  # fmt: skip
    done = report.steps
    first, last = next(iter(done.values())), list(done.values())[-1]
    assert 10 == first.taken
    assert report.outputs["out"] == last.made
    assert all(one.seconds > 0 and one.faults == 0 for one in done.values())
    for name in done:
        assert f'millstream_step_rows_in_total{{step="{name}"}}' in seen[-1]
        assert f'millstream_step_seconds_total{{step="{name}"}}' in seen[-1]
        assert f'millstream_step_late_total{{step="{name}"}} 0' in seen[-1]
    assert 'millstream_input_lag_seconds{input="trades"} 1.999991\n' in seen[-1]
    if is_kept:
        (tmp_path / "in" / "2.jsonl").write_text('{"at": 20, "k": "0", "n": 20}\n')
        again = job.run({"trades": f"{tmp_path}/in/"}, {}, **options).report
        assert 1 == next(iter(again.steps.values())).taken
