"""Running texts of programs in tests."""

from __future__ import annotations

from pathlib import Path

import millstream
from millstream.api import Finished


def run_text(
    tmp_path: Path,
    text: str,
    lines: list[str] | None = None,
    *,
    engine: str = "local",
    names: dict[str, str] | None = None,
) -> Finished:
    """Run a program on some lines, or on none at all; outputs are kept in memory."""
    program = tmp_path / "program.szl"
    program.write_text(text)
    compiled = millstream.compile(program, names=names or {})
    given = {}
    if lines is not None:
        is_json = bool(lines) and all(line.startswith("{") for line in lines)
        file = tmp_path / ("lines.jsonl" if is_json else "lines.txt")
        file.write_text("".join(f"{line}\n" for line in lines))
        given = {"input": str(file)}
    outputs = {name: Kept() for name in compiled.program.outputs}
    finished = compiled.run(given, outputs, engine=engine)
    return Finished(finished.report, outputs)


class Kept:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.batches: list[object] = []

    def write(self, batch: object) -> None:
        self.batches.append(batch)

    def close(self) -> None: ...

    def abort(self) -> None: ...


def printed(finished: Finished) -> str:
    return "".join(str(row["line"]) for row in finished.rows("printed"))
