"""The rule language, as the rest of the house knows it."""

from millstream.languages.language import Language, Option

LANGUAGE = Language(
    "rules",
    (".rules",),
    "rules",
    load="millstream.languages.rules.load:load",
    options=(
        Option(
            "explain",
            ("--vessel", "--subject"),
            "of rules: how each line stands for this one at the end of the inputs",
            metavar="KEY",
            view="millstream.languages.rules.situation:view",
        ),
    ),
)
