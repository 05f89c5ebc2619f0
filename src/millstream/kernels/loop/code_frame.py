"""The frame of a code: where its loop finds what it is given, and tells what went wrong.

The driver of a net fills it. Whoever calls the loop says which part of the code is to be done, and
how often.
"""

from __future__ import annotations

from millstream.kernels.loop.emit import Entry
from millstream.kernels.loop.ir import INTEGER, Given, Local, Memory, Param, Rep

FRAME = Memory("frame", Rep.INTEGER)
MODE, FIRINGS = Given("mode"), Given("firings")

#: What is kept: numbers of single precision, and integers; where its arrays lie; buffers.
SINGLES, INTEGERS = Memory("F", Rep.SINGLE), Memory("I", Rep.SHORT)
PLACES = Memory("O", Rep.INTEGER)
MEMORIES = {
    "F": SINGLES, "I": INTEGERS,
    "iF": Memory("iF", Rep.SINGLE), "iI": Memory("iI", Rep.SHORT),
    "oF": Memory("oF", Rep.SINGLE), "oI": Memory("oI", Rep.SHORT),
    "SF": Memory("SF", Rep.SINGLE), "SI": Memory("SI", Rep.SHORT),
}  # fmt: skip
#: How many cells an item has, by side and memory.
WIDTHS = {f"{side}{letter}": Given(f"w{side}{letter}") for side in "io" for letter in "FI"}
POP, PEEK, PUSH = Given("pop"), Given("peek"), Given("push")

#: What was printed: which template, at which firing; and how much room there is.
SAID_WHAT, SAID_WHEN = Memory("S", Rep.SHORT), Memory("K", Rep.INTEGER)
SAID_ROOM = Given("said_room")
ROOMS = {"F": Given("saidF_room"), "I": Given("saidI_room")}
FIRING_BASE = Given("firing_base")

#: The next item that is taken, and the next that is given, as they were and as they are.
FIRST_IN, FIRST_OUT = Given("ip"), Given("op")
IN, OUT = Local("ip", INTEGER), Local("op", INTEGER)
BEGIN, END, ROOM = (Local(name, INTEGER) for name in ("begin", "end", "room"))
FIRING = Local("firing", INTEGER)
#: How much was printed before the call, and is now, with the place where that is told.
SAID = {key: (Given(f"said{key}"), Local(f"said{key}", INTEGER), 27 + n)
        for n, key in enumerate(("", "F", "I"))}  # fmt: skip
#: What went wrong, at which firing, and two numbers for its message.
SITE, FAILED, FIRST_NUMBER, SECOND_NUMBER = 16, 17, 18, 19

_ORDER: tuple[Param | None, ...] = (
    MEMORIES["iF"], MEMORIES["iI"], FIRST_IN, MEMORIES["oF"], MEMORIES["oI"], FIRST_OUT,
    SINGLES, INTEGERS, PLACES, *WIDTHS.values(), POP, PEEK, PUSH, None, None, None, None,
    SAID_WHAT, SAID_WHEN, MEMORIES["SF"], MEMORIES["SI"], SAID_ROOM, *ROOMS.values(),
    *(given for given, _, _ in SAID.values()), FIRING_BASE,
)  # fmt: skip

FIRED = Entry(
    signature="int64(int64, int64, types.CPointer(int64))",
    parameters=(MODE.name, FIRINGS.name, FRAME.name),
    places={param: place for place, param in enumerate(_ORDER) if param is not None},
    are_apart=True,
)
