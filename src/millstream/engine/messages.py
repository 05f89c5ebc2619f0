"""What tasks tell each other: a message for a stage, or for whoever runs the batch.

The number of the latter comes after that of the last stage. A message is a small record; rows
travel in it as parcels, and large parcels only by name (see `parcels`). `from` says whose it
is, so that messages can be put into an order that does not depend on who was first.
"""

from __future__ import annotations

from typing import Any

Message = dict[str, Any]
#: Whom a message is for, and the message.
Sent = tuple[int, Message]
