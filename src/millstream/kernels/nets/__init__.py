"""Nets of filters, splits and joins: flat buffers, and one compiled loop that drives all actors."""
