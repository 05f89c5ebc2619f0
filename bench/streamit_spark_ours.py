"""Our side of nets of filters on Spark: the programs as they are written in StreamIt."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spark_ours
import streamit_programs as programs
from millstream import api

PROGRAMS = {"fm radio": programs.FM_RADIO, "fft": programs.FFT, "dct": programs.DCT}

session_for = spark_ours.session_for


def run(session: Any, spec: Mapping[str, Any], rows: Path, folder: Path) -> Path:
    """All files, as many a batch as the engine takes, into a Parquet folder."""
    out = folder / "out"
    api.compile(text=PROGRAMS[spec["job"]], language="streamit").run(
        {"items": f"{rows}/*.parquet"},
        {"out": f"{out}/"},
        engine="spark",
        session=session,
        checkpoint=folder / "checkpoint",
    )
    return out
