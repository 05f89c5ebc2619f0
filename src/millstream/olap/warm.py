"""Loading what questions need before the first one comes: compiled code that is not there yet."""

from __future__ import annotations

import numpy as np

from millstream.calculus.types import QueueType
from millstream.olap.answer import answer
from millstream.olap.groups import Limits
from millstream.olap.program import ServedCube
from millstream.olap.question import read_question
from millstream.olap.store import CubeStore
from millstream.plan.batch import Batch, vector_of


def warm(cube: ServedCube) -> None:
    """Ask a cube of one row all that takes another way."""
    store = CubeStore(cube)
    columns = tuple(vector_of(field.type, [None]) for field in cube.brought)
    store.write_batch(0, Batch(QueueType(cube.brought), np.zeros(1, np.int64), columns))
    store.advance(0, 0)
    store.write_batch(1, Batch(QueueType(cube.brought), np.ones(1, np.int64), columns))
    store.advance(1, int(cube.function.grain.start(1)))
    rows = [levels[0] for levels in cube.function.dimensions]
    patient = Limits(seconds=3600)
    # What has totals is put together from groups; all else is told of these at once.
    for more in ({}, {"totals": True}):
        question = {"rows": rows, "grain": str(cube.function.grain), **more}
        answer(store.version, read_question(question, cube.function, cube.schema), patient)
