"""The public calls, in the words of the command line: compile, run, explain.

>>> import millstream
>>> job = millstream.compile(
...     text='''
...     output large; input trades(symbol text, volume integer);
...     (large) <- Filter[volume > 100](trades);
... '''
... )
>>> trades = [{"_time": 1, "symbol": "IBM", "volume": 300}]
>>> job.run({"trades": trades}).rows("large")
[{'_time': 1, 'symbol': 'IBM', 'volume': 300}]
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from millstream.calculus.graph import Input, Program
from millstream.connectors.chunks import Reader, Rejected
from millstream.connectors.frames import Frame, framed
from millstream.connectors.location import Location, lines_at, parse_location
from millstream.connectors.outputs import closing_of
from millstream.engine.given import (
    REJECTED,
    OutputGiven,
    check_names,
    given_or_beside,
    late_names,
    located,
    location_of,
    outputs_of,
    placed,
    plain_reader,
    reader_of,
    writer_given,
)
from millstream.engine.job import Job, Progress, Report, never, no_progress
from millstream.engine.settings import check_folder, check_options
from millstream.engines import DEFAULT_ENGINE, check_engine, run_job
from millstream.errors import Fault, UsageError, suggest
from millstream.finished import CallingWriter, OnChange
from millstream.finished import Finished as Finished  # noqa: PLC0414 - so that mypy knows it
from millstream.interrupts import undisturbed
from millstream.languages import DEFAULT, translate, translate_file
from millstream.languages.language import (
    NO_NAMES,
    Expected,
    Expression,
    Leftovers,
    Rounds,
    Translation,
    program_of,
)
from millstream.source import Source

if TYPE_CHECKING:
    from millstream.calculus.estimates import Measures
    from millstream.live import Live
    from millstream.optimiser.optimise import Pass

#: An input: a file or pattern, a location, rows as dictionaries with `_time`, or a table of
#: Arrow, pandas or Polars.
InputGiven = str | Path | Location | Frame | Iterable[Mapping[str, Any]]


@dataclass(frozen=True)
class Compiled:
    """A verified program, with where a project says its data is."""

    program: Program
    name: str = "program"
    base: Path = field(default_factory=Path)
    sources: Mapping[str, Location] = field(default_factory=dict)
    sinks: Mapping[str, Location] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    #: What is odd in the text, and what will be if inputs do not have it.
    oddities: tuple[Fault, ...] = ()
    expected: tuple[Expected, ...] = ()
    #: Where the inputs of a program that goes round by itself are, for so many rounds.
    rounds: Rounds | None = None
    leftovers: Leftovers | None = None
    #: Outputs that go nowhere unless somebody asks for them.
    aside: tuple[str, ...] = ()
    #: What its language knows of columns before it runs.
    types: tuple[str, ...] = ()
    #: What a project brings for Spark.
    spark: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @staticmethod
    def of(translation: Translation, name: str, base: Path) -> Compiled:
        """A program whose text may say where its data is, seen from a folder."""
        sources = {n: parse_location(text, base) for n, text in translation.sources.items()}
        sinks = {n: parse_location(text, base) for n, text in translation.sinks.items()}
        return Compiled(
            translation.program, name, base, sources, sinks, translation.notes,
            translation.warnings, translation.expected, translation.rounds, translation.leftovers,
            translation.aside, translation.types,
        )  # fmt: skip

    def at(self, folder: str | Path) -> Compiled:
        """With inputs that are not given looked for in a folder."""
        return replace(self, base=Path(folder))

    def with_rounds(self, count: int) -> Compiled:
        """So many rounds of a program that goes round by itself, such as one of StreamIt."""
        if self.rounds is None:
            raise UsageError("this program goes on for as long as its input does",
                             hint="give it an input that ends")  # fmt: skip
        if count < 0:
            raise UsageError(f"a program cannot go round {count} times")
        sources = {n: parse_location(text, self.base) for n, text in self.rounds(count).items()}
        return replace(self, sources={**self.sources, **sources})

    def with_units(self, units: Mapping[str, str] | str) -> Compiled:
        """What numbers count in the columns of times of inputs, or of all: s, ms, us or ns.

        As a text it is a unit, or `NAME=UNIT` as on the command line.
        """
        from millstream.connectors.units import check_unit

        if isinstance(units, str):
            name, equals, unit = units.rpartition("=")
            names = (name,) if equals else self.program.input_names
            units = dict.fromkeys(names, unit)
        given = check_names(units, self.program.input_names, "input")
        inputs = tuple(
            replace(input_, unit=check_unit(given[input_.name])) if input_.name in given else input_
            for input_ in self.program.inputs
        )
        return replace(self, program=replace(self.program, inputs=inputs))

    def with_times(
        self,
        given: str | None = None,
        *,
        zone: str | None = None,
        format: str | None = None,  # noqa: A002
    ) -> Compiled:
        """How the times of an input, or of all, are written: the zone of local times, a format.

        The format is that of Python's `strptime`, such as `%d/%m/%Y %H:%M`.
        """
        from millstream.connectors.time_style import TimeStyle, check_style

        check_style(TimeStyle(None, zone, format))
        if given is not None:
            check_names({given: None}, self.program.input_names, "input")
        inputs = tuple(
            replace(input_, zone=zone or input_.zone, time_format=format or input_.time_format)
            if given in (None, input_.name) else input_
            for input_ in self.program.inputs
        )  # fmt: skip
        return replace(self, program=replace(self.program, inputs=inputs))

    def warnings(self, inputs: Mapping[str, InputGiven] | None = None) -> list[Fault]:
        """What is odd, though it can be run; also in inputs, as far as they are there."""
        from millstream.project.expected import unmet

        given = dict(self.sources) | dict(inputs or {})
        by_name = {input_.name: input_ for input_ in self.program.inputs}

        def opened(name: str) -> Reader | None:
            source = self._input(by_name[name], given)
            if isinstance(source, Iterator):
                return None  # its rows come once, and the run needs them
            if isinstance(source, (str, Path, Location)) and not location_of(source).is_at_hand:
                return None
            return plain_reader(by_name[name], source)

        return [*self.oddities, *unmet(self.expected, opened)]

    def left_over(self, report: Report) -> tuple[Fault, ...]:
        """What of the inputs of a run that has ended nothing was made of."""
        counts = {name: counts.processed for name, counts in report.inputs.items()}
        return () if self.leftovers is None else self.leftovers(counts)

    def run(
        self,
        inputs: Mapping[str, InputGiven] | None = None,
        outputs: Mapping[str, OutputGiven] | None = None,
        *,
        engine: str = DEFAULT_ENGINE,
        optimise: bool = True,
        only: Sequence[str] | None = None,
        without: Sequence[str] = (),
        relaxed: bool = False,
        sample: int | None = None,
        follow: bool = False,
        stopped: Callable[[], bool] = never,
        progress: Progress = no_progress,
        on_change: Mapping[str, OnChange] | None = None,
        **options: Any,
    ) -> Finished:
        """Run to the end of the inputs. Outputs that are not given are kept in memory.

        An input is a file, a pattern or an address, a list of dictionaries with `_time`
        (microseconds or a `datetime`), or a table of Arrow, pandas or Polars. `on_change` has
        functions that are called with each row of an output, and each change of a table, as a
        dictionary.
        `follow` makes the job watch for new files until `stopped` answers true. A run that
        does not follow and is stopped raises `Stopped`, and publishes nothing but what is in
        folders and tables that go on with its checkpoint. Of the optimiser's passes `only` some
        are made, or all `without` some; `relaxed`, also those after which numbers may be rounded
        in another way; with a `sample`, they go by what conditions keep of so many first rows of
        each input. Further options are the engine's own.
        """
        check_engine(engine)
        options = {**(self.spark if engine == "spark" else {}), **options}
        check_options(options)
        written = self.program.following() if follow else self.program
        only = only if optimise else ()
        optimised = self._optimised(written, only, without, inputs or {}, sample, relaxed=relaxed)
        program = _as_begun(written, optimised, options)
        job_inputs = {
            name: framed(given, name) for name, given in self._all_given(inputs or {}).items()
        }
        called = check_names(on_change or {}, program.outputs, "output")
        for name, function in called.items():
            if not callable(function):
                raise UsageError(f'on_change of "{name}" is to be a function, not {function!r}')
        job_outputs = dict(self.sinks) | outputs_of(program, outputs or {})
        with ExitStack() as stack:
            if engine == "local":
                from millstream.engine.warm import cold_start

                options["start"] = cold_start(program, stack)
            job_inputs |= self._brought(job_inputs, stack, is_following=follow, options=options)
            job, writers = self._job(
                program, job_inputs, job_outputs, stopped, stack,
                is_following=follow, checkpoint=options.get("checkpoint"), on_change=called,
            )  # fmt: skip
            job = replace(job, written=written, renewed=optimised)
            given = [self._input(input_, job_inputs) for input_ in program.inputs]
            report = run_job(
                engine, job, given, lambda: self._readers(program, job_inputs, is_following=follow),
                progress, options,
            )  # fmt: skip
            with undisturbed():
                stack.close()
        return Finished(report, writers, program.queue_types())

    def follow(
        self,
        inputs: Mapping[str, InputGiven] | None = None,
        outputs: Mapping[str, OutputGiven] | None = None,
        *,
        engine: str = DEFAULT_ENGINE,
        **options: Any,
    ) -> Live:
        """Run in the background and follow the inputs, as `run(follow=True)` does.

        What is given back can be asked at any time for what there is now, shows itself in a
        notebook, and is stopped by `stop()`. Outputs that are not given are kept in memory: of a
        table what stands, of a stream the last rows.
        """
        from functools import partial

        from millstream.live import Live

        check_engine(engine)
        run = partial(self.run, inputs, engine=engine, **options)
        check_names(outputs or {}, self.program.outputs, "output")
        program = self.program.following()
        return Live(run, dict(outputs or {}), program.queue_types(), tuple(program.outputs))

    def _brought(
        self,
        inputs: Mapping[str, Any],
        stack: ExitStack,
        *,
        is_following: bool,
        options: Mapping[str, Any],
    ) -> dict[str, Location]:
        """Inputs from elsewhere, as the folders here that their rows are brought into."""
        from millstream.engine.incoming import bring

        # Lines are read from files whatever their names are.
        given = {
            input_.name: self._input(input_, inputs)
            for input_ in self.program.inputs
            if input_.name in inputs
        }
        places = {
            name: one
            for name, one in located(given).items()
            if one.elsewhere is not None or one.database is not None
        }
        return bring(places, stack, is_following=is_following, options=options)

    def _job(
        self,
        program: Program,
        inputs: Mapping[str, Any],
        outputs: Mapping[str, Any],
        stopped: Callable[[], bool],
        stack: ExitStack,
        *,
        is_following: bool,
        checkpoint: str | Path | None,
        on_change: Mapping[str, OnChange],
    ) -> tuple[Job, dict[str, Any]]:
        """Open everything, inputs first: a missing file must not touch an output."""
        from millstream.connectors.overlap import refuse_overlaps
        from millstream.connectors.write import open_rejected_writer

        def opened(writer: Any, *, is_aside: bool = False) -> Any:
            stack.push(closing_of(writer, is_aside=is_aside))
            return writer

        locations = self.locations(inputs)
        refuse_overlaps(
            locations, located(outputs), is_following=is_following, checkpoint=checkpoint
        )
        if checkpoint is not None:
            check_folder(Path(checkpoint))
        readers = self._readers(program, inputs, is_following=is_following)
        types = program.queue_types()

        def writer(name: str) -> Any:
            made = writer_given(name, outputs.get(name), types[name], is_following=is_following)
            return CallingWriter(on_change[name], made) if name in on_change else made

        writers = {name: opened(writer(name)) for name in program.outputs}
        late = {
            one.name: opened(
                writer_given(key, outputs[key], one, is_following=is_following), is_aside=True
            )
            for key, one in late_names(program).items()
            if key in outputs
        }
        on_rejected: Callable[[Sequence[Rejected]], None] | None = None
        if REJECTED in outputs:
            aside = open_rejected_writer(location_of(outputs[REJECTED]))
            on_rejected = opened(aside, is_aside=True).write
        job = Job(program, readers, writers, late, on_rejected, is_following, stopped, locations)
        return job, writers

    def _readers(
        self, program: Program, inputs: Mapping[str, Any], *, is_following: bool
    ) -> dict[str, Reader]:
        return {
            input_.name: reader_of(input_, self._input(input_, inputs), is_following=is_following)
            for input_ in program.inputs
        }

    def locations(self, inputs: Mapping[str, Any]) -> dict[str, Location]:
        """Where inputs are, of those that are not given as rows."""
        return located({input_.name: self._input(input_, inputs) for input_ in self.program.inputs})

    def read_inputs(self, inputs: Mapping[str, InputGiven] | None = None) -> dict[str, list[Any]]:
        """All accepted events of every input, as the reference sees them."""
        from millstream.engine.reference.feed import read_events

        given = self._all_given(inputs or {})
        job = Job(self.program, self._readers(self.program, given, is_following=False), {})
        return read_events(job, Report.for_program(self.program))

    def _all_given(self, inputs: Mapping[str, InputGiven]) -> dict[str, Any]:
        return {**self.sources, **check_names(inputs, self.program.input_names, "input")}

    def _input(self, input_: Input, inputs: Mapping[str, Any]) -> Any:
        given = given_or_beside(input_, inputs, self.base)
        is_place = isinstance(given, (str, Path, Location))
        return lines_at(given) if is_place and input_.reads_lines else given

    def explain(
        self,
        stage: str = "calculus",
        format: str = "text",  # noqa: A002
        engine: str = "local",
        only: Sequence[str] | None = None,
        without: Sequence[str] = (),
        *,
        relaxed: bool = False,
        sample: int | None = None,
        inputs: Mapping[str, InputGiven] | None = None,
    ) -> str:
        """What the program is at a stage: types, calculus, optimised, plan or kernels.

        How much there is of the inputs decides on the order of joins and on the plan of Spark;
        those that are not there yet are guessed.
        """
        from millstream.explain import explain
        from millstream.optimiser.optimise import passes_named

        passes = passes_named(only, without, relaxed=relaxed)
        sizes = self._sizes(inputs or {})
        measures = self._measures(self.program, passes, inputs or {}, sample)
        return explain(
            self.program, stage, format, engine, self.notes, passes, self.types, sizes, measures
        )

    def _optimised(
        self,
        written: Program,
        only: Sequence[str] | None,
        without: Sequence[str],
        inputs: Mapping[str, InputGiven],
        sample: int | None,
        *,
        relaxed: bool,
    ) -> Program:
        from millstream.optimiser.optimise import optimise, passes_named

        passes = passes_named(only, without, relaxed=relaxed)
        measures = self._measures(written, passes, inputs, sample)
        return optimise(written, passes, measures=measures)

    def _measures(
        self,
        program: Program,
        passes: tuple[Pass, ...],
        inputs: Mapping[str, InputGiven],
        sample: int | None,
    ) -> Measures:
        """What the optimiser can know of the inputs: their sizes, and the first rows if asked."""
        from millstream.calculus.estimates import Measures
        from millstream.engine.sizes import rows_in

        known = Measures(rows_in(self._sizes(inputs)))
        if sample is None:
            return known
        from millstream.engine.reference.sample import measured_on

        given = self._all_given(inputs)
        places = {input_.name: placed(self._input(input_, given)) for input_ in program.inputs}
        return measured_on(program, passes, known, places, plain_reader, sample)

    def _sizes(self, inputs: Mapping[str, InputGiven]) -> dict[str, float]:
        from millstream.engine.sizes import measured_where

        given = self._all_given(inputs)
        return measured_where(
            self.program.inputs, lambda one: located({one.name: self._input(one, given)})
        )


def compile(  # noqa: A001 - the word of the command line
    file: str | Path | None = None,
    *,
    text: str | None = None,
    language: str = DEFAULT,
    names: Mapping[str, str] = NO_NAMES,
    outputs: Collection[str] = (),
) -> Compiled:
    """A program file, a project folder or a text, checked and ready to run.

    `names` are values of names that files of some languages leave open. Of a project what other
    nodes read is an output only if it is among the `outputs` asked for.
    """
    if text is not None:
        return Compiled.of(translate(Source("text", text), language), "program", Path())
    if file is None:
        raise UsageError("give a file or a text to compile")
    path = Path(file)
    if path.is_dir() or path.name == "millstream.toml":
        return _compile_project(path if path.is_dir() else path.parent, str(file), names, outputs)
    if not path.exists():
        raise _no_such_file(path)
    return Compiled.of(translate_file(path, str(file), names), path.stem, path.parent)


def compile_flow(**outputs: Expression) -> Compiled:
    """The program whose outputs are some streams and tables, ready to run.

    Tables leave as relations: with `_weight`, +1 where a row comes and -1 where it goes.
    """
    return Compiled(program_of(outputs))


def _compile_project(
    folder: Path, shown: str, names: Mapping[str, str], outputs: Collection[str]
) -> Compiled:
    from millstream.project.load import load_project

    linked = load_project(folder, shown, names, outputs)
    return Compiled(
        linked.program, folder.resolve().name, folder, linked.sources, linked.sinks, linked.notes,
        linked.warnings, linked.expected, linked.rounds, linked.leftovers, aside=linked.aside,
        types=linked.types, spark=linked.spark,
    )  # fmt: skip


def _no_such_file(path: Path) -> UsageError:
    folder = path.parent
    if not folder.is_dir():
        return UsageError(f'there is no folder "{folder}"')
    near = suggest(path.name, (p.name for p in folder.iterdir()))
    return UsageError(f'there is no file "{path}"', hint=near)


def _as_begun(written: Program, program: Program, options: Mapping[str, Any]) -> Program:
    """A program as it was when its checkpoint was begun, if it has one to go on with."""
    if options.get("checkpoint") is None or options.get("rebuild"):
        return program
    from millstream.engine.begun import as_begun

    return as_begun(options["checkpoint"], written, program)
