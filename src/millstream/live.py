"""A run that goes on while a Python program does other things, or while a notebook shows it.

live = job.follow({"trades": "trades/*.csv"})
live                                     # in a notebook: tables that change
live.now().to_pandas("totals", state=True)
live.stop()
"""

from __future__ import annotations

import html
import importlib
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Self

from millstream.calculus.types import QueueType
from millstream.engine.job import Report
from millstream.finished import Finished
from millstream.plan.batch import Batch

#: Of a stream the last rows are kept, at least so many.
KEPT_ROWS = 10_000
#: A notebook is shown something new at most so often.
_SECONDS = 0.5


class LastRows:
    """Mutable: of a table what stands, of a stream its last rows; a writer for engines."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self._most = 2 * KEPT_ROWS

    def write(self, batch: Batch) -> None:
        if not len(batch):
            return
        batches = [*self.batches, batch]
        if sum(map(len, batches)) > self._most:
            batches = self._fewer(batches)
            self._most = 2 * KEPT_ROWS + 2 * sum(map(len, batches))
        self.batches = batches  # at once: others read it meanwhile

    def _fewer(self, batches: list[Batch]) -> list[Batch]:
        from millstream.kernels.runtime.consolidate import summed
        from millstream.plan.batch import concat_batches

        whole = concat_batches(batches, batches[0].type)
        if whole.type.is_relation:
            return [summed(whole)]
        return [whole.slice(max(0, len(whole) - KEPT_ROWS), len(whole))]

    def close(self) -> None:
        """What is there can still be looked at."""

    def abort(self) -> None:
        """Likewise."""


class Live:
    """A run that follows its inputs. In a notebook its tables are shown, and change as it goes on.

    It is stopped by `stop()`, or at the end of `with job.follow(...) as live:`.
    """

    def __init__(
        self, run: Callable[..., Finished], outputs: Mapping[str, Any],
        types: Mapping[str, QueueType], names: tuple[str, ...],
    ) -> None:  # fmt: skip
        self._kept = {name: LastRows() for name in names if name not in outputs}
        self._types = types
        self._report = Report({}, dict.fromkeys(names, 0))
        self._fault: BaseException | None = None
        self._stopping = threading.Event()
        self._started = time.monotonic()

        def work() -> None:
            try:
                run(outputs={**outputs, **self._kept}, follow=True,
                    stopped=self._stopping.is_set, progress=self._told)  # fmt: skip
            except BaseException as fault:  # noqa: BLE001 - raised by whoever asks next
                self._fault = fault

        self._thread = threading.Thread(target=work, name="millstream-live", daemon=True)
        self._thread.start()

    def _told(self, report: Report) -> None:
        self._report = report

    @property
    def is_running(self) -> bool:
        """Whether it still follows its inputs."""
        return self._thread.is_alive()

    def now(self) -> Finished:
        """What there is at this moment, as a run that has ended gives it.

        Of a table all that stands; of a stream the last rows, ten thousand or more of them. If the
        run has failed, its error is raised.
        """
        if self._fault is not None:
            raise self._fault
        return self._seen()

    def _seen(self) -> Finished:
        return Finished(self._report, dict(self._kept), self._types)

    def wait(self, seconds: float | None = None) -> Finished:
        """Until it has ended by itself, as it does where nothing more can come; then as `now()`."""
        self._thread.join(seconds)
        return self.now()

    def stop(self) -> Finished:
        """End the run after its current batch, and tell what there is."""
        self._stopping.set()
        return self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()

    def __repr__(self) -> str:
        return f"<{self._going()}: {repr(self._seen()).strip('<>')}>"

    def _going(self) -> str:
        if self._fault is not None:
            return f"failed, {self._fault}"
        return "running" if self.is_running else "stopped"

    def _repr_html_(self) -> str:
        read = sum(counts.read for counts in self._report.inputs.values())
        seconds = time.monotonic() - self._started
        waiting = sum(counts.waiting for counts in self._report.inputs.values())
        line = f"{self._going()}, {read:,} rows read"
        line += f" ({waiting:,} wait{'s' * (waiting == 1)} for time to pass)" if waiting else ""
        line += f", {seconds:.0f} s" if self.is_running else ""
        return f"{self._seen()._repr_html_()}<p>{html.escape(line)}</p>"

    def _ipython_display_(self) -> None:
        """Show what there is, and show it anew in the same place while the run goes on."""
        ipython: Any = importlib.import_module("IPython.display")
        shown = ipython.display(ipython.HTML(self._repr_html_()), display_id=True)
        if shown is not None and self.is_running:
            show = (shown, ipython.HTML)
            threading.Thread(target=self._show_on, args=show, daemon=True).start()

    def _show_on(self, shown: Any, html_of: Any) -> None:
        last = ""
        while True:
            is_over = not self.is_running
            text = self._repr_html_()
            if text != last:
                with suppress(RuntimeError):  # the notebook is being closed
                    shown.update(html_of(text))
                last = text
            if is_over:
                return
            self._thread.join(_SECONDS)
