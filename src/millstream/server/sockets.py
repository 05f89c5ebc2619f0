"""WebSockets that are closed with a reason also when the other side does not read.

A close frame stands behind what was written before, so it need not wait until that is taken. And
nothing is kept for ever for one who never takes it.
"""

from __future__ import annotations

import logging
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

#: So long there is to take what was written, in seconds.
_LEFT_SECONDS = 30.0
#: What uvicorn says when we end an answer as we mean to: one is refused, or is too slow.
_MEANT = ("without completing handshake", "without completing response")


class ClosingSocket(WebSocketsSansIOProtocol):
    """Mutable: one connection."""

    async def send(self, message: Any) -> None:
        is_close = message["type"] == "websocket.close"
        if is_close and not self.writable.is_set():
            self.writable.set()
            self.loop.call_later(_LEFT_SECONDS, self.transport.abort)
        await super().send(message)


def quiet_about_what_is_meant() -> None:
    """Whoever is refused, or takes nothing, should not fill our terminal."""
    logger = logging.getLogger("uvicorn.error")
    if _is_news not in logger.filters:
        logger.addFilter(_is_news)


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().rstrip(".").endswith(_MEANT)
