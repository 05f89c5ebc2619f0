"""Inputs that Spark reads itself: any of its streaming sources, by format and options.

Their rows come to Python once, as Arrow columns, and go on like those of our own readers.
The order of such a log is the order in which Spark gives its rows to one task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from millstream.calculus.types import Kind
from millstream.connectors.arrow_rows import ArrowRows, check_types
from millstream.connectors.layout import layout_in, layout_of
from millstream.connectors.location import Format, Location
from millstream.engine.manifest import Manifest, last_manifest
from millstream.engine.reading import SegmentWriter, sent
from millstream.engine.spark.spec import spec_from_json, spec_to_json
from millstream.engine.spark.wire import SCHEMA, record_batch, wired
from millstream.engine.spec import InputSpec, SourceSpec
from millstream.engine.storage.files import LocalFiles
from millstream.errors import RunError, UsageError

#: Spark does not look into files for their columns; it must be told.
_FILE_FORMATS = ("csv", "json", "orc", "parquet", "text")


def native_frame(session: Any, spec: SourceSpec, one: InputSpec) -> Any:
    """The messages of an input that Spark reads, as a streaming frame."""
    from pyspark.sql.pandas.types import to_arrow_schema

    frame = _loaded(session, one)
    name = one.location.text
    layout = layout_in(one.input, tuple(frame.columns), name)
    check_types(layout, to_arrow_schema(frame.schema, timezone="UTC"), name)
    columns = list(dict.fromkeys(layout.names))
    alone = replace(one, location=Location(Format.SPARK, text=f"spark:{one.name}"))
    text = spec_to_json(replace(spec, inputs=(alone,)))
    return frame.select(*columns).coalesce(1).mapInArrow(_reading(text, name), SCHEMA)


def _loaded(session: Any, one: InputSpec) -> Any:
    from pyspark.errors import PySparkException

    settings = one.location.native
    assert settings is not None
    if one.idle is not None:
        raise UsageError(
            f'the input "{one.name}" cannot have an idle limit',
            hint="only inputs that Millstream reads itself can",
        )
    reader = session.readStream.format(settings.format)
    if settings.format in _FILE_FORMATS:
        reader = reader.schema(_schema(one))
    options = dict(settings.options)
    if "path" in options and "://" not in options["path"]:
        options["path"] = str((one.location.base / options["path"]).resolve())
    try:
        return reader.options(**options).load()
    except PySparkException as error:
        reason = str(error).splitlines()[0]
        raise RunError(f"Spark cannot open this source: {reason}", place=one.name) from None


def _schema(one: InputSpec) -> Any:
    from pyspark.sql import types

    spark_types = {
        Kind.NUMBER: types.DoubleType(), Kind.INTEGER: types.LongType(),
        Kind.BOOLEAN: types.BooleanType(), Kind.TEXT: types.StringType(),
        Kind.TIME: types.TimestampType(), Kind.DURATION: types.LongType(),
    }  # fmt: skip
    layout = layout_of(one.input, has_weight=one.input.type.is_relation)
    return types.StructType(
        [types.StructField(f.name, spark_types[f.type.kind]) for f in layout.fields]
    )


def _reading(text: str, name: str) -> Any:
    def read(batches: Iterator[Any]) -> Iterator[Any]:
        spec = spec_from_json(text)
        (one,) = spec.inputs
        files = LocalFiles(spec.checkpoint)
        done = last_manifest(files)
        segment = _segment(spec, one, name, done, batches)
        task = f"{_version(done):09}.native-{one.declaration}"
        messages = sent(spec, files, [segment], {one.declaration: False}, task)
        yield record_batch(wired(messages, spec.stages, spec.partitions))

    return read


def _version(done: Manifest | None) -> int:
    """The batch that is being run: the one after the last that is over."""
    return 0 if done is None else int(done["version"]) + 1


def _segment(
    spec: SourceSpec, one: InputSpec, name: str, done: Manifest | None, batches: Iterator[Any]
) -> SegmentWriter:
    largest = done["log"][one.name]["largest"] if done else None
    position = done["counts"][one.name]["read"] if done else 0
    writer = SegmentWriter(spec, one, 0, largest, done["mark"] if done else None)
    rows: ArrowRows | None = None
    for turn, batch in enumerate(batches):
        if rows is None:
            rows = ArrowRows(layout_in(one.input, tuple(batch.schema.names), name), name)
        if not batch.num_rows:
            continue
        arrays = [batch.column(batch.schema.names.index(n)) for n in rows.layout.names]
        chunk = rows.chunk(arrays, position + 1)
        writer.take(chunk, position, turn)
        position += chunk.read
    return writer
