"""Project files: programs of any language wired into one graph."""
