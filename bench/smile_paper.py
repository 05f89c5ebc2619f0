"""The experiment of the paper: matches a second on one broker, on four, and with PostgreSQL."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from smile_served import TOKEN, Served

#: What the paper says of one broker.
PAPER = 87.1
SECONDS = 13.0


def driven(seconds: float, *places: str) -> dict[str, Any]:
    """Bidders and a matcher in a process of their own."""
    program = Path(__file__).parent / "smile_market.py"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, str(program), str(seconds), *places], check=True, text=True,
        stdout=subprocess.PIPE, env={**os.environ, "MILLSTREAM_TOKEN": TOKEN},
    )  # fmt: skip
    made: dict[str, Any] = json.loads(done.stdout)
    return made


def paper(scale: float) -> list[dict[str, Any]]:
    """Matches a second, by the driver of the paper in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        served = Served(Path(folder))
        try:
            served.wait_until_compiled()
            one = driven(SECONDS * scale, *[f"http://127.0.0.1:{served.port}"] * 4)
        finally:
            served.stop()
    return [{"on": "one broker", **one, "of the paper's": round(one["matches/s"] / PAPER, 1)}]


BENCHMARKS = {"smile_paper": paper}
