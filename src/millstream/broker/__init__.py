"""A broker: streams that are published to, and views of them that are subscribed to."""
