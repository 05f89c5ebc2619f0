"""A job that follows its inputs, in a thread beside the test."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any, Self

from millstream.api import Compiled, Finished
from millstream.cli.progress import summary
from millstream.engine.job import Report
from tests.engine.running import wait_for
from tests.laws.runs import Collector, Rows


class Following:
    """Mutable: a run in its own thread. What it tells of batches is kept."""

    def __init__(
        self,
        compiled: Compiled,
        launched: dict[str, Any],
        checkpoint: Path | None,
        **options: Any,
    ) -> None:
        self.compiled = compiled
        self.outputs = {name: Collector() for name in compiled.program.outputs}
        self.told: list[dict[str, Any]] = []
        self.started = time.monotonic()
        self._stopped = threading.Event()
        self._fault: BaseException | None = None
        self._finished: Finished | None = None
        self._thread = threading.Thread(target=self._run, args=(checkpoint, launched | options))
        self._thread.start()

    def _run(self, checkpoint: Path | None, options: dict[str, Any]) -> None:
        try:
            self._finished = self.compiled.run(
                outputs={**self.outputs, **options.pop("outputs", {})}, follow=True,
                stopped=self._stopped.is_set, progress=self._take, checkpoint=checkpoint,
                **options,
            )  # fmt: skip
        except BaseException as fault:  # noqa: BLE001 - it is raised again in the test
            self._fault = fault

    def _take(self, report: Report) -> None:
        self.told.append(summary(report, time.monotonic() - self.started))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join(60)
        assert not self._thread.is_alive(), "the run does not stop"

    def count(self, what: str) -> int:
        return int(self.told[-1][what]) if self.told else 0

    def wait(self, what: str, number: int) -> None:
        """Until exactly so many rows are read, processed, late and so on."""
        self.wait_beyond(what, number)
        assert number == self.count(what)

    def wait_beyond(self, what: str, number: int) -> None:
        """Until at least so many rows are."""
        wait_for(
            f"{number} rows {what}",
            lambda: self.count(what) >= number or not self._thread.is_alive(),
        )
        self.check()

    def check(self) -> None:
        if self._fault is not None:
            raise self._fault

    def finish(self) -> Report:
        """Stop after the batch that is running."""
        self.__exit__()
        self.check()
        assert self._finished is not None
        assert all(one["conserved"] for one in self.told)
        return self._finished.report

    def rows(self, output: str) -> Rows:
        return self.outputs[output].rows
