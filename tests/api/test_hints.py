"""Errors speak to whoever reads them: of options on the command line, of arguments in Python."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream
from millstream.cli.main import main
from millstream.errors import UsageError

PROGRAM = "output out; input trades(n integer); (out) <- Filter[n >= 0](trades);"


def test_a_hint_is_an_argument_in_python_and_an_option_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.brook").write_text(PROGRAM)
    with pytest.raises(UsageError) as caught:
        millstream.compile(tmp_path / "a.brook").run(engine="local")
    assert 'say inputs={"trades": "FILE"}, or put' in str(caught.value)
    assert "--in" not in str(caught.value)
    assert 2 == main(["run", str(tmp_path / "a.brook"), "--engine", "local"])
    assert "say --in trades=FILE, or put" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("hint", "told"),
    [
        ("add --engine spark", 'add engine="spark"'),
        ("--rebuild computes everything again", "rebuild=True computes everything again"),
        ("say what they count: --unit trades=ms (or us)",
         'say what they count: with_units({"trades": "ms"}) (or us)'),
        ("--out a=x.csv, --out b=y.csv", 'outputs={"a": "x.csv"}, outputs={"b": "y.csv"}'),
        ("mkdir -p there", "mkdir -p there"),
    ],
)  # fmt: skip
def test_hints_in_python(hint: str, told: str) -> None:
    error = UsageError("no", hint=hint)
    assert f"no\n    {told}" == str(error)
    assert hint == error.faults[0].hint
