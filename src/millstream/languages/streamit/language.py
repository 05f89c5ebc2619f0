"""StreamIt, as the rest of the house knows it."""

from millstream.languages.language import Language, Option


def _iterations(command: str, otherwise: str) -> Option:
    return Option(
        command,
        ("--iterations",),
        f"of StreamIt: so many steady states ({otherwise})",
        metavar="N",
        sets="rounds",
    )


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
        _iterations("run", "default: as many as the input allows"),
        _iterations("explore", "a few are enough"),
    ),
)
