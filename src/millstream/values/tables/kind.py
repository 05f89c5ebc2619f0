"""What a kind of table is, and what a table gathers.

An accumulator holds what was emitted to a table under one index. It is plain data. Combining
is associative and commutative, and results depend on what was emitted, never on how it was cut
or in which order it came.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy.typing as npt

from millstream.values.records.packing import packed, unpacked
from millstream.values.records.types import RecordType

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Declared:
    """How a table is declared: its parameter, the types of what is emitted, and a seed."""

    parameter: int | None
    value: RecordType
    weight: RecordType | None = None
    seed: int = 0


class Result(NamedTuple):
    """A row of a table; `error` bounds how far the weight of an estimate may be off."""

    value: Any
    weight: Any = None
    error: Any = None


class Table(ABC):
    """What one declared table does with its accumulators."""

    @abstractmethod
    def empty(self) -> Any: ...

    @abstractmethod
    def add(self, acc: Any, value: Any, weight: Any = None, key: int = 0) -> Any:
        """The accumulator with one emit more; the old one is used up.

        `key` tells emits apart where chance decides, such as a hash of the record and the number
        of the emit in it; it must not depend on the place of the record in a batch.
        """

    def add_times(self, acc: Any, value: Any, weight: Any, key: int, times: int) -> Any:
        """The accumulator with the same emit so many times more."""
        for _ in range(times):
            acc = self.add(acc, value, weight, key)
        return acc

    def add_all(
        self, acc: Any, values: Sequence[Any], weights: Sequence[Any] | None, keys: Sequence[int],
        times: Sequence[int],
    ) -> Any:  # fmt: skip
        """The accumulator with many emits more; no two of them agree in everything."""
        heavy = [None] * len(values) if weights is None else weights
        for value, weight, key, count in zip(values, heavy, keys, times, strict=True):
            acc = self.add_times(acc, value, weight, key, count)
        return acc

    def results_at_once(
        self, times: Array, weights: Array | None, values: Callable[[Array], list[Any]]
    ) -> list[Result] | None:
        """The rows, of emits that are all there is; None if an accumulator must be asked.

        No two of them agree in everything; `values` gives those with some numbers.
        """
        return None

    @property
    def lowest(self) -> int:
        """Of the emits under an index only those of so many lowest ranks count; 0 if all do."""
        return 0

    def ranks(self, values: list[Any], weights: Array | None, keys: list[int]) -> Array | None:
        """The ranks of different emits, if they have any; weights are given if they are numbers."""
        return None

    @abstractmethod
    def merge(self, acc: Any, other: Any) -> Any:
        """Both together; the first is used up, the second is left alone."""

    @abstractmethod
    def results(self, acc: Any) -> list[Result]:
        """The rows, in an order that is always the same."""

    def encode(self, acc: Any) -> bytes:
        return packed(acc)

    def decode(self, raw: bytes) -> Any:
        return unpacked(raw)


@dataclass(frozen=True, slots=True)
class TableKind:
    """A kind of table: what may be declared, and the types of the rows that come out.

    `check` says what is wrong with a declaration, or nothing. `value` and `weight` give the types
    of a row. Of what is taken, None means that it may be left out. A kind that `uses_keys` needs a
    key with every emit. `bound` says in words how good an estimate is.
    """

    name: str
    usage: str
    takes_parameter: bool | None
    takes_weight: bool | None
    check: Callable[[Declared], str | None]
    table: Callable[[Declared], Table]
    value: Callable[[Declared], RecordType] = lambda declared: declared.value
    weight: Callable[[Declared], RecordType | None] = lambda _declared: None
    #: The least that the parameter may be.
    least: int = 1
    has_error: bool = False
    uses_keys: bool = False
    #: The function that a weight must have a value of, if not every weight will do.
    weighed: str | None = None
    bound: str = "exact"

    def complaint(self, declared: Declared) -> str | None:
        """What is wrong with a declaration."""
        if self.takes_parameter and declared.parameter is None:
            return f"{self.name} needs a number, as in {self.usage}"
        if self.takes_parameter is False and declared.parameter is not None:
            return f"{self.name} takes no number"
        if declared.parameter is not None and declared.parameter < self.least:
            return f"the number of a {self.name} table must be at least {self.least}"
        if self.takes_weight and declared.weight is None:
            return f"{self.name} needs a weight, as in {self.usage}"
        if self.takes_weight is False and declared.weight is not None:
            return f"{self.name} takes no weight"
        return self.check(declared)
