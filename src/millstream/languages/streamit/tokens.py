"""The tokens of a StreamIt text."""

from __future__ import annotations

import re

PATTERN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fi]?(?!\w))
  | (?P<text>"(?:[^"\\\n]|\\.)*")
  | (?P<name>[^\W\d]\w*)
  | (?P<symbol><<=|>>=|->|\+\+|--|&&|\|\||<<|>>|<=|>=|==|!=|\+=|-=|\*=|/=|%=|&=|\|=|\^=
       |[-+*/%<>=!~&|^?:;,.(){}\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)

#: Words that begin something and so can be no names.
RESERVED = frozenset({
    "add", "body", "boolean", "bit", "break", "complex", "continue", "do", "duplicate", "else",
    "enqueue", "false", "feedbackloop", "filter", "float", "for", "handler", "helper", "if", "init",
    "int", "join", "loop", "peek", "pipeline", "pop", "portal", "prework", "print", "println",
    "push", "return", "roundrobin", "split", "splitjoin", "static", "stateful", "struct", "true",
    "void", "while", "work",
})  # fmt: skip

#: Types that are there without being defined.
PLAIN_TYPES = ("void", "boolean", "bit", "int", "float", "complex")
