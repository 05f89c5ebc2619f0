"""What comes from other brokers: what is here of each relation, what is missing, and asking for it.

A relation is taken on in the order of its numbers: what comes early waits. So it is at any time
the relation as its sender had it at one number, and how far streams are known counts only
when every smaller number has come. From another incarnation a relation is taken as a whole, and
only if that is made of no less than what is here: nobody goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from millstream.broker.knowledge import NOTHING, HeldRelation, Knowledge
from millstream.broker.messages import Curiosity, Numbers, Wish
from millstream.broker.records import KnownRecord
from millstream.calculus.types import START_OF_TIME
from millstream.languages.served import BrokerPart, Imported

#: How long is waited before one asks again, at first and at most, in microseconds.
FIRST, LONGEST = 50_000, 2_000_000
#: Who is interested says so at least as often.
REFRESH = 1_000_000
#: How long it is wanted what somebody has asked for, on a lazy link.
WANTED = 30_000_000
#: So many messages that come early are kept.
_MOST_EARLY = 256


class Incoming:
    """Mutable: one relation of another broker."""

    def __init__(self, one: Imported, edition: str) -> None:
        self.one = one
        self.edition = edition
        #: The largest number that was heard of, and the incarnation that it is of.
        self.heard = 0
        self.incarnation = ""
        self.early: list[KnownRecord] = []
        self.next_ask = 0
        self.wait = FIRST
        self.wanted_until = 0
        self.is_final = False
        #: Logs that what is here is made of, and that are gone: the sender began anew.
        self.lost: tuple[str, ...] = ()

    # --- what comes ---

    def look_for_losses(self, held: HeldRelation, message: KnownRecord | Numbers) -> None:
        """Whether what is here can ever go on, as far as a message tells."""
        if isinstance(message, KnownRecord):
            if message.incarnation != held.incarnation:
                self.lost = held.lost_to(message)
        elif message.incarnation == held.incarnation:
            self.lost = message.lost

    def hear_of(self, incarnation: str, through: int, now: int) -> None:
        """There is something up to a number."""
        is_new = incarnation != self.incarnation
        if is_new or through > self.heard:
            self.incarnation = incarnation
            self.heard = through if is_new else max(self.heard, through)
            if self.wish(now) is Wish.ROWS:  # else it is known now, and that is all that is wanted
                self._ask_by(now + FIRST)

    def taken(self, held: HeldRelation, known: Iterable[KnownRecord]) -> list[KnownRecord]:
        """What can be taken on now, in order; what is early waits."""
        waiting = [*self.early, *known]
        ready: list[KnownRecord] = []
        while fitting := [one for one in waiting if held.fits(one)]:
            best = max(fitting, key=lambda one: one.through)
            ready.append(best)
            waiting.remove(best)
            held = HeldRelation(best.incarnation, best.through, best.progress, best.stand)
        self.early = [one for one in waiting if self._is_early(one, held)][-_MOST_EARLY:]
        return ready

    @staticmethod
    def _is_early(known: KnownRecord, held: HeldRelation) -> bool:
        return known.incarnation == held.incarnation and known.after > held.through

    def gaps(self, held: HeldRelation) -> list[tuple[int, int]]:
        """What is missing between what is here and the largest number that was heard of."""
        if self.incarnation not in ("", held.incarnation):
            return [(0, self.heard)]
        made: list[tuple[int, int]] = []
        at = held.through
        for known in sorted(self.early, key=lambda one: one.after):
            if known.after > at:
                made.append((at, known.after))
            if known.after >= at:
                at = known.through
        if at < self.heard:
            made.append((at, self.heard))
        return made

    # --- asking ---

    def settled(self, held: HeldRelation, *, has_moved: bool, now: int) -> None:
        """After some of it has been taken on, or could not be."""
        self.early = [one for one in self.early if self._is_early(one, held)]
        if has_moved:
            self.wait = FIRST
            self.next_ask = now + (FIRST if self.gaps(held) else REFRESH)

    def want(self, now: int) -> None:
        """Somebody reads what is made of it."""
        if self.one.is_lazy and self.wanted_until < now:
            self._ask_by(now)
            self.wait = FIRST
        self.wanted_until = now + WANTED

    def wish(self, now: int) -> Wish:
        if self.is_final:
            return Wish.NOTHING
        return Wish.ROWS if not self.one.is_lazy or self.wanted_until > now else Wish.NUMBERS

    def question(self, held: HeldRelation, now: int) -> Curiosity | None:
        """What to ask for now, if it is time."""
        if now < self.next_ask:
            return None
        wish = self.wish(now)
        gaps = self.gaps(held) if wish is Wish.ROWS else []
        is_quiet = not gaps and (held.through > 0 or wish is Wish.NUMBERS)
        self.next_ask = now + (REFRESH if is_quiet else self.wait)
        self.wait = FIRST if is_quiet else min(2 * self.wait, LONGEST)
        if wish is Wish.NOTHING:
            self.next_ask = 1 << 62  # until it comes again
        heard = self.heard if self.incarnation == held.incarnation else held.through
        return Curiosity(self.one.name, self.edition, held.incarnation, held.through,
                         max(heard, held.through), tuple(gaps), wish)  # fmt: skip

    def _ask_by(self, time: int) -> None:
        self.next_ask = min(self.next_ask, time)


class Imports:
    """Mutable: all that other brokers send."""

    def __init__(self, part: BrokerPart) -> None:
        self.part = part
        self.incoming = {n: Incoming(one, part.edition) for n, one in part.imports.items()}
        #: Brokers that have another file, or another `brokers.toml`.
        self.others: set[str] = set()

    def hear(
        self, knowledge: Knowledge, messages: Iterable[tuple[str, KnownRecord | Numbers]], now: int
    ) -> list[KnownRecord]:
        """What is to be written down now of what has come."""
        known: dict[str, list[KnownRecord]] = {}
        for sender, message in messages:
            one = self.incoming.get(message.relation)
            if message.edition != self.part.edition or one is None or one.one.sender != sender:
                self.others.add(sender)
                continue
            self.others.discard(sender)
            held = knowledge.held.get(message.relation, NOTHING)
            one.look_for_losses(held, message)
            if message.incarnation != held.incarnation or message.through > held.through:
                one.hear_of(message.incarnation, message.through, now)
            if one.is_final:
                one.next_ask = now  # it was told, and is told again
            if isinstance(message, KnownRecord):
                known.setdefault(message.relation, []).append(message)
        ready: list[KnownRecord] = []
        for name, some in known.items():
            ready += self.incoming[name].taken(knowledge.held.get(name, NOTHING), some)
        return ready

    def settle(self, knowledge: Knowledge, moved: Iterable[str], now: int) -> None:
        """What was to be written down is, or could not be."""
        for name in dict.fromkeys(moved):
            held = knowledge.held.get(name, NOTHING)
            one = self.incoming[name]
            one.settled(held, has_moved=True, now=now)
            if self._is_over(one.one, held) and not one.gaps(held):
                one.is_final = True
                one.next_ask = now

    def _is_over(self, one: Imported, held: HeldRelation) -> bool:
        """Whether all ticks of all streams that it is made of are known in it."""
        for stream in one.streams:
            until = self.part.until.get(stream)
            if until is None or held.progress.get(stream, START_OF_TIME) < until:
                return False
        return True

    def ask(
        self, knowledge: Knowledge, now: int, send: Callable[[str, Curiosity], None]
    ) -> None:  # fmt: skip
        for name, one in self.incoming.items():
            question = one.question(knowledge.held.get(name, NOTHING), now)
            if question is not None:
                send(one.one.sender, question)
