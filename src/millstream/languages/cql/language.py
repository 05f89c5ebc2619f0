"""CQL, as the rest of the house knows it."""

from millstream.languages.language import Language

LANGUAGE = Language(
    "cql", (".cql",), "cql", load="millstream.languages.cql.load:load",
    read="millstream.languages.cql.load:read",
)  # fmt: skip
