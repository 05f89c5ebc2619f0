"""The tokens of a StreamIt text."""

from __future__ import annotations

import re

PATTERN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
  | (?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFi]?(?!\w))
  | (?P<text>"(?:[^"\\\n]|\\.)*")
  | (?P<name>[^\W\d]\w*)
  | (?P<symbol>(?!/\*)(?:<<=|>>=|->|\+\+|--|&&|\|\||<<|>>|<=|>=|==|!=|\+=|-=|\*=|/=|%=|&=|\|=|\^=
       |[-+*/%<>=!~&|^?:;,.(){}\[\]]))
    """,
    re.VERBOSE | re.DOTALL,
)

#: Words that begin something and so can be no names.
RESERVED = frozenset({
    "add", "body", "boolean", "bit", "break", "case", "complex", "continue", "do",
    "duplicate", "else", "enqueue", "false", "feedbackloop", "filter", "float", "for",
    "handler", "helper", "if", "init", "int", "join", "loop", "native", "peek", "pipeline",
    "pop", "portal", "prework", "print", "println", "push", "return", "roundrobin", "split",
    "splitjoin", "static", "stateful", "struct", "switch", "true", "void", "while", "work",
})  # fmt: skip

#: Words of the language that we do not know, and what to do instead.
REFUSED = {
    "native": "functions of other languages cannot be called: write them in StreamIt",
    "switch": "there is no `switch`: write `if ... else if ...`",
    "goto": "there is no `goto`: write a loop",
    "case": "there is no `case`: write `if ... else if ...`",
}
#: Words before a type that promise what nobody checks; elsewhere they are names.
REMARKS = ("final", "const")

#: What other languages call types that we have.
ELSEWHERE = {
    "double": "float", "long": "int", "short": "int", "char": "int", "unsigned": "int",
    "bool": "boolean",
}  # fmt: skip

#: Types that are there without being defined.
PLAIN_TYPES = ("void", "boolean", "bit", "int", "float", "complex")
