"""Starting Spark: a Java, the right Python, and silence.

Spark's own log goes to a file in the checkpoint; its user interface is off; every port is
on this machine only.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from millstream.engine.aside import Aside
from millstream.engine.scratch import has_room_for_sockets, scratch_folder
from millstream.engine.spark.archive import java_options
from millstream.engine.spark.java import Java, find_java, java_environment
from millstream.errors import MillstreamError, RunError, SetupError, UsageError

DEFAULT_MASTER = "local[*,4]"
LOG = "spark.log"
_EXCEPTION = re.compile(r'(Exception in thread "\S+" )?([\w$]+\.)+\w*(Exception|Error): ')
_LOOPBACK = "127.0.0.1"
#: A process that has been killed is seen to be so after this.
_PATIENCE_SECONDS = 3.0

_LOGGING = """\
status = off
appender.file.type = File
appender.file.name = file
appender.file.fileName = {path}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{ISO8601}} %p %c{{1}}: %m%n%throwable
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
"""


#: A log that cannot be written, because the disk is full, is no news beside that.
_SILENT = ("-Dlog4j2.statusLoggerLevel=OFF",)
_CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing"
_PLAIN_FILES = "FileSystemBasedCheckpointFileManager"
#: Rows do not pass through Java, so it need not compile its code as well as it can.
_QUICK = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")


def _flag(is_on: bool) -> str:  # noqa: FBT001 - that is what it is
    return str(is_on).lower()


#: A package of Maven's: group, artifact and version.
_PACKAGE = re.compile(r"[^\s:,]+:[^\s:,]+:[^\s:,]+")
_LOCAL = re.compile(r"local(?:\[(?P<cores>\d+|\*)(?:,\s*\d+)?\])?")
_LOCAL_CLUSTER = re.compile(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)\s*,\s*\d+\s*\]")


def cores_of(master: str, session: Any = None) -> int:
    """How many tasks can run at once, as far as that is known before Spark runs."""
    here = os.cpu_count() or 2
    if session is not None:
        return int(session.sparkContext.defaultParallelism)
    if of_cluster := _LOCAL_CLUSTER.fullmatch(master):
        return int(of_cluster[1]) * int(of_cluster[2])
    local = _LOCAL.fullmatch(master)
    if local is None or local["cores"] == "*":
        return here
    return int(local["cores"] or 1)


def brought_by_user(jars: Sequence[str], packages: Sequence[str]) -> dict[str, str]:
    """The settings by which Spark finds classes that a user brings."""
    for jar in jars:
        if "://" not in jar and not Path(jar).is_file():
            raise UsageError(f'there is no jar "{jar}"')
    for package in packages:
        if not _PACKAGE.fullmatch(package):
            raise UsageError(f'"{package}" is no package', hint="such as group:artifact:1.0")
    brought = {"spark.jars": jars, "spark.jars.packages": packages}
    return {name: ",".join(given) for name, given in brought.items() if given}


def start_session(
    master: str,
    checkpoint: Path,
    partitions: int,
    *,
    ui: Callable[[str], None] | None = None,
    log: Path | None = None,
    brought: Mapping[str, str] | None = None,
) -> Any:
    """A Spark session for one job; one that runs already is used as it is.

    It has pages if somebody wants to be told their address.
    """
    require_spark()
    java = find_java()
    # Spark's pages listen where this says, whatever its settings are.
    os.environ.update({"SPARK_LOCAL_IP": _LOOPBACK, **os.environ, **java_environment(java)})
    _silence_py4j()
    log = log or checkpoint / LOG
    checkpoint.mkdir(parents=True, exist_ok=True)  # whoever plans batches may not be there yet
    settings = {
        **_settings(java, checkpoint, partitions, log, ui=ui is not None),
        **(brought or {}),
    }
    try:
        _launch(java, {"spark.master": master, **settings}, log)
        session = _started(master, settings, log)
    except BaseException:
        end_java()
        raise
    session.sparkContext.setLogLevel("WARN")
    if ui is not None:
        ui(f"http://{_LOOPBACK}:{urlsplit(session.sparkContext.uiWebUrl).port}")
    # When Java ends, this thread complains of a lost connection.
    session.sparkContext._accumulatorServer.handle_error = lambda *_: None  # noqa: SLF001
    return session


def _silence_py4j() -> None:
    """It writes what is raised in a batch, and lost connections, to standard error.

    We tell them ourselves. Some of it does not go by its own logger.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return "py4j" not in Path(record.pathname).parts


def require_spark() -> None:
    """Millstream can be installed without Spark, and runs on its own engine then."""
    if find_spec("pyspark") is None:
        raise SetupError(
            "Spark is not installed",
            hint=f"run: {shlex.quote(sys.executable)} -m pip install 'millstream[spark]', "
            "or use --engine local, which needs none of it",
        )


def _settings(
    java: Java, checkpoint: Path, partitions: int, log: Path, *, ui: bool
) -> dict[str, str]:
    scratch = scratch_folder()
    configuration = checkpoint / "log4j2.properties"
    configuration.write_text(_LOGGING.format(path=log))
    return {
        "spark.app.name": "millstream",
        "spark.ui.enabled": _flag(ui),
        "spark.local.dir": str(scratch),
        "spark.driver.host": _LOOPBACK,
        "spark.driver.bindAddress": _LOOPBACK,
        "spark.driver.extraJavaOptions": " ".join(
            [
                f"-Dlog4j2.configurationFile=file:{configuration}",
                f"-Djava.io.tmpdir={scratch}",
                *_SILENT,
                *_QUICK,
                *java_options(java),
            ]
        ),
        "spark.python.daemon.module": "millstream.engine.spark.daemon",
        "spark.log.structuredLogging.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": str(partitions),
        # The exchange decides how many partitions there are; nobody may merge them.
        "spark.sql.adaptive.enabled": "false",
        "spark.python.worker.reuse": "true",
        # Over TCP, a small message to a worker waits 40 ms for an acknowledgement.
        "spark.python.unix.domain.socket.enabled": _flag(
            hasattr(socket, "AF_UNIX") and has_room_for_sockets(scratch)
        ),
        # Blobs stay on this machine for a moment; compressing them takes longer than that.
        "spark.shuffle.compress": "false",
        "spark.shuffle.spill.compress": "false",
        "spark.sql.streaming.minBatchesToRetain": "10",
        # The usual ways to write Spark's notes start twenty processes a batch (`readlink`,
        # `chmod`) to do what a file system does. What they check beside is checked by us.
        "spark.sql.streaming.checkpointFileManagerClass": f"{_CHECKPOINTS}.{_PLAIN_FILES}",
        "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    }


def _started(master: str, settings: Mapping[str, str], log: Path) -> Any:
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    for name, value in settings.items():
        builder = builder.config(name, value)
    # Spark takes Ctrl-C for itself and cancels all jobs; whoever had it before gets it back.
    handler = signal.getsignal(signal.SIGINT)
    try:
        session = builder.getOrCreate()
    except Py4JJavaError as error:
        reason = str(error.java_exception.getMessage()).splitlines()[0]
        raise RunError(f"Spark did not start: {reason}", hint=_hint(reason, master, log)) from None
    except (Py4JError, ConnectionError):
        raise RunError("Java ended while Spark started", hint=f"its log is {log}") from None
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, handler)
    return session


def _hint(reason: str, master: str, log: Path) -> str:
    if "master" not in reason.lower():
        return f"its log is {log}"
    masters = "local[*], local[2], spark://host:port, yarn or k8s://..."
    return f'"{master}" is no master, such as {masters}; its log is {log}'


def _launch(java: Java, settings: Mapping[str, str], log: Path) -> None:
    """Start Java, unless it runs already. What it and Spark's processes say goes to the log."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkRuntimeError
    from pyspark.java_gateway import launch_gateway

    if SparkContext._gateway is not None:  # noqa: SLF001 - nobody else knows it
        return
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    with log.open("ab") as file, _remembered_while_launched():
        try:
            gateway: Any = launch_gateway(  # type: ignore[no-untyped-call]
                conf, {"stdout": file, "stderr": file}
            )
        except PySparkRuntimeError:
            raise _not_launched(java, settings["spark.master"], log) from None
    SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - there is no other way


@contextmanager
def _remembered_while_launched() -> Iterator[None]:
    """Remember the Java that is being launched: until it answers, nobody else knows it.

    It ends when its standard input does, but not where it has lost the folder it is to answer in.
    """
    from pyspark import java_gateway

    module: Any = java_gateway

    def remembered(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        _launched.append(subprocess.Popen(*arguments, **options))  # noqa: S603 - it is Spark's
        return _launched[-1]

    popen, module.Popen = module.Popen, remembered
    try:
        yield
    except BaseException:
        _end_launched()
        raise
    finally:
        module.Popen = popen


#: The Java of this process, as soon as there is one.
_launched: list[subprocess.Popen[bytes]] = []


def _end_launched() -> None:
    while _launched:
        process = _launched.pop()
        process.kill()
        process.communicate()


def _not_launched(java: Java, master: str, log: Path) -> MillstreamError:
    """Java does not run, or Spark has refused what it was told and named an exception."""
    words = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    raised = [w for w in words if _EXCEPTION.match(w) and not w.startswith(("\t", "Caused"))]
    if raised:
        reason = _EXCEPTION.sub("", raised[-1], count=1)
        return RunError(f"Spark did not start: {reason}", hint=_hint(reason, master, log))
    reason = f": {words[-1]}" if words else ""
    return SetupError(f'the Java in "{java.home}" did not start{reason}', hint=f"its log is {log}")


class Launch:
    """Mutable: the session of a run: one that is given, or one that ends with the run."""

    def __init__(self, given: Any, start: Callable[[], Any]) -> None:
        self.is_own = given is None
        self._session = given
        self._start = start
        self._starting: Aside | None = None

    def begin(self) -> None:
        """Let it start, beside what the caller does until the session is wanted."""
        if self._session is None and self._starting is None:
            self._starting = Aside()
            self._starting.start(self._run)

    def _run(self) -> None:
        self._session = self._start()

    def session(self) -> Any:
        self.begin()
        if self._starting is not None:
            self._starting.wait()
        return self._session

    def has_ended(self) -> bool:
        """Whether Java is no more."""
        return self._session is not None and is_over(self._session)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._starting is None:
            return
        is_hurried = kind is not None and issubclass(kind, KeyboardInterrupt)
        if self._session is None:
            end_java()  # what is still starting gives up then
            self._starting.end()
        if self._session is None:
            return
        if is_hurried or is_over(self._session, 0.0):
            abandon(self._session)
        else:
            self._session.stop()


def is_over(session: Any, patience: float = _PATIENCE_SECONDS) -> bool:
    """Whether Java has ended, of itself or because somebody has ended it."""
    gateway: Any = session.sparkContext._gateway  # noqa: SLF001 - nobody else knows it
    if gateway is None:
        return True
    try:
        gateway.proc.wait(patience)
    except subprocess.TimeoutExpired:
        return False
    return True


def abandon(session: Any) -> None:
    """End Spark at once, whatever it is doing; its Python workers notice and end too."""
    session.sparkContext._accumulatorServer.shutdown()  # noqa: SLF001 - it would complain
    end_java()


def end_java() -> None:
    """End the Java of this process, if there is one, and forget it."""
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    gateway: Any = SparkContext._gateway  # noqa: SLF001 - nobody else knows it
    if gateway is not None:
        gateway.proc.kill()
        gateway.proc.wait()
    _end_launched()
    # What comes next in this process must not try to talk to it.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    SparkContext._active_spark_context = None  # noqa: SLF001
    SparkSession._instantiatedSession = None  # noqa: SLF001
