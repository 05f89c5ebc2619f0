"""StreamIt, as the rest of the house knows it."""

from millstream.languages.language import Language, Option

LANGUAGE = Language(
    "streamit",
    (".str",),
    "streamit",
    load="millstream.languages.streamit.load:load",
    read="millstream.languages.streamit.load:read",
    settings="millstream.languages.streamit.load:settings",
    node_keys=("partition",),
    sees_own_folder=True,
    options=(
        Option(
            "run",
            ("--iterations",),
            "of StreamIt: so many steady states (default: as many as the input allows)",
            metavar="N",
            sets="rounds",
        ),
    ),
)
