"""Versioned state on disk: what a job needs to go on after it was stopped, in any way."""
