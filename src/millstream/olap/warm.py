"""Loading what questions need before the first one comes: compiled code that is not there yet."""

from __future__ import annotations

import numpy as np

from millstream.calculus.types import QueueType
from millstream.kernels.cube.reading import move_bits
from millstream.kernels.cube.telling import numbered
from millstream.olap.answer import answer
from millstream.olap.groups import Limits
from millstream.olap.program import ServedCube
from millstream.olap.question import read_question
from millstream.olap.store import CubeStore
from millstream.plan.batch import Batch, vector_of


def warm(cube: ServedCube) -> None:
    """Ask a cube of three rows, the last of them active, all that takes another way."""
    store = CubeStore(cube)
    columns = tuple(vector_of(field.type, [None]) for field in cube.brought)
    for number in range(3):
        time = int(cube.function.grain.start(number))
        given = Batch(QueueType(cube.brought), np.full(1, time, np.int64), columns)
        store.write_batch(number, given)
        store.advance(number, time)
    # Of these rows all are in order, and their keys are short.
    keys = np.array([1, 0])
    numbered([keys, keys], 40)
    move_bits(keys, 0, 1, 0, np.zeros_like(keys))
    rows = [levels[0] for levels in cube.function.dimensions]
    patient = Limits(seconds=3600)
    whole, grain = {"rows": rows}, str(cube.function.grain)
    # What has totals is put together from groups; all else is told of these at once, each measure
    # by a loop of its own, if none that is asked for with it has to be told otherwise.
    alone = [whole | {"measures": [measure.name]} for measure in cube.function.measures]
    with_totals = whole | {"grain": grain, "totals": True}
    for question in (whole, {"rows": rows[:1]}, with_totals, *alone):
        asked = read_question(question, cube.function, cube.schema)
        answer(store.version, asked, patient)
