"""The numbers that the driver of a net works on: rows for queues, actors and what movers take."""

from __future__ import annotations

from typing import Final

#: Items of the busiest queue that are worked on at a time: so few that all stay near the processor.
CHUNK: Final = 1 << 12

# --- a queue: its arrays, the width of an item in each, what it holds, how much it can hold
QF: Final = 0
QI: Final = 1
QT: Final = 2
Q_WIDTH_F: Final = 3
Q_WIDTH_I: Final = 4
Q_START: Final = 5
Q_END: Final = 6
Q_ROOM: Final = 7
#: Nobody in the net reads it, so that it may grow.
Q_IS_OUTPUT: Final = 8
#: The number of the item that lies first in its arrays, or would.
Q_FIRST: Final = 9
#: How many of its items are worked on at a time.
Q_CHUNK: Final = 10
#: The first of the takings that read it; -1 if a filter does.
Q_TAKINGS: Final = 11
Q_COLUMNS: Final = 12

# --- an actor
KIND: Final = 0
FUNCTION: Final = 1
FRAME: Final = 2
TAKEN: Final = 3
GIVEN: Final = 4
POP: Final = 5
PEEK: Final = 6
PUSH: Final = 7
FIRST_POP: Final = 8
FIRST_PEEK: Final = 9
FIRST_PUSH: Final = 10
HAS_FIRST: Final = 11
FIRED: Final = 12
DUE: Final = 13
IS_PACED: Final = 14
#: A mover's order: where in the list its items are told, and how many are a round.
LIST: Final = 15
ROUND: Final = 16
#: How many items it has moved, and how many it may move by now.
MOVED: Final = 17
#: Where its takings begin, and how many it has.
TAKINGS: Final = 18
COUNT: Final = 19
LAST_TIME: Final = 20
PRINTS: Final = 21
#: The times of firings that print, and what is to be put back if there was no room for texts.
TOLD: Final = 22
TOLD_ROOM: Final = 23
TOLD_COUNT: Final = 24
BACKUP_F: Final = 25
SIZE_F: Final = 26
BACKUP_I: Final = 27
SIZE_I: Final = 28
#: How many rows have told a source to fire.
TICKS: Final = 29
TOLD_LAST: Final = 30
MAY_MOVE: Final = 31
COLUMNS: Final = 32
#: What is kept of an actor when a run is taken up again.
KEPT: Final = (FIRED, DUE, MOVED, LAST_TIME, TICKS, TOLD_LAST)

FILTER: Final = 0
MOVER: Final = 1
WALKED: Final = 2

# --- a taking: what a mover takes of one queue in a round
T_QUEUE: Final = 0
#: How much further each item is taken in the next round.
T_STEP: Final = 1
#: Where in the list the places of its items are, and behind them their numbers; how many.
T_LIST: Final = 2
T_COUNT: Final = 3
T_LEAST: Final = 4
T_MOST: Final = 5
#: The number of the first item that it still needs.
T_NEEDED: Final = 6
#: The next taking of the same queue, or -1.
T_NEXT: Final = 7
#: Places and numbers both go up by one.
T_IS_RUN: Final = 8
#: It takes all places of a round, in order.
T_IS_ALL: Final = 9
T_COLUMNS: Final = 10

# --- where the driver is
CURSOR: Final = 0
HAS_RUN: Final = 1
#: Nobody could go on without letting queues grow, or rounds be cut.
IS_EAGER: Final = 2
#: A queue, and behind it how many items it is to hold.
NEEDED: Final = 3
#: Items have their times beside them.
CARRIES: Final = 5
#: Something goes round, so that nobody may wait for others.
HAS_CYCLE: Final = 6
S_COLUMNS: Final = 7

# --- why it comes back
READY: Final = 0
FAULT: Final = 1
#: A queue has no room for what is needed; `NEEDED` says which and how much.
NO_ROOM: Final = 2
NO_PRINT_ROOM: Final = 3
WALK: Final = 4
#: More than the statuses below zero: nothing to do, or something done.
IDLE: Final = 10
RAN: Final = 11
