"""`millstream`, whose messages to other brokers are lost and doubled, for benchmarks.

    python smile_lossy.py 0.1 serve FILE --broker NAME ...

loses each of them with this probability, and of the others sends as many twice.
"""

from __future__ import annotations

import random
import sys

from millstream.broker.messages import Message
from millstream.cli.main import main
from millstream.server.linking import Peers


def lose(share: float) -> None:
    send, chance = Peers.send, random.Random(1)

    def sent(self: Peers, name: str, message: Message) -> None:
        if chance.random() >= share:
            send(self, name, message)
            if chance.random() < share:
                send(self, name, message)

    Peers.send = sent  # type: ignore[method-assign]


if __name__ == "__main__":
    lose(float(sys.argv[1]))
    sys.exit(main(sys.argv[2:]))
