"""All that becomes of a program as one page: as it is written, each rewrite, the plan.

The page needs nothing beside it. Buttons and arrow keys step through it; where a program is not too
large there is a picture of it after every step.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template

from millstream.calculus.graph import Program
from millstream.optimiser.optimise import Rewrite

#: Of larger programs only what is written and what is left in the end are drawn: a picture for
#: each of hundreds of rewrites would be more than a browser likes.
_DRAWN_OPERATORS = 60


@dataclass(frozen=True, slots=True)
class Shown:
    """A step of the page: what it is, why, and what it shows."""

    title: str
    reason: str = ""
    #: Lines that are no more, and lines that have come.
    gone: Sequence[str] = ()
    come: Sequence[str] = ()
    text: str = ""
    picture: str = ""


@dataclass(frozen=True, slots=True)
class Story:
    """What the page is made of; how things are written and drawn is told from outside."""

    name: str
    program: Program
    optimised: Program
    rewrites: Sequence[Rewrite]
    #: What was not done, and why.
    stayed: Sequence[str]
    #: The plans, by what runs them.
    plans: Mapping[str, str]


def page(
    story: Story,
    rule: Callable[[str], str],
    changed: Callable[[Rewrite], tuple[list[str], list[str]]],
    written: Callable[[Program], str],
    drawn: Callable[[Program], str],
) -> str:
    """The page as HTML."""
    is_small = len(story.program.operators) <= _DRAWN_OPERATORS
    steps = [Shown("As it is written", text=written(story.program), picture=drawn(story.program))]
    for number, rewrite in enumerate(story.rewrites, 1):
        gone, come = changed(rewrite)
        title = f"Rewrite {number}: {rule(rewrite.name)}"
        picture = drawn(rewrite.after) if is_small else ""
        steps.append(Shown(title, f"because {rewrite.reason}", gone, come, picture=picture))
    steps.append(
        Shown("Optimised", "" if story.rewrites else "no rewrite applies",
              text=written(story.optimised), picture=drawn(story.optimised))
    )  # fmt: skip
    if story.stayed:
        steps.append(Shown("What stays as it is", text="\n".join(story.stayed)))
    steps += [Shown(f"Plan: {engine}", text=text) for engine, text in story.plans.items()]
    contents = "".join(
        f'<li><a href="#{n}">{escape(step.title)}</a></li>' for n, step in enumerate(steps)
    )
    sections = "".join(_section(number, step) for number, step in enumerate(steps))
    whole = Template(Path(__file__).with_name("page.html").read_text())
    return whole.substitute(title=escape(story.name), contents=contents, sections=sections)


def _section(number: int, step: Shown) -> str:
    parts = [f'<section id="step{number}"><h2>{escape(step.title)}</h2>']
    if step.reason:
        parts.append(f"<p>{escape(step.reason)}</p>")
    if step.gone or step.come:
        lines = [f"<del>- {escape(line)}</del>" for line in step.gone]
        lines += [f"<ins>+ {escape(line)}</ins>" for line in step.come]
        changes = "\n".join(lines)
        parts.append(f"<pre>{changes}</pre>")
    if step.picture:
        # As a document of its own the picture is moved and made larger by itself.
        data = base64.b64encode(step.picture.encode()).decode()
        parts.append(f'<iframe title="picture" src="data:image/svg+xml;base64,{data}"></iframe>')
    if step.text:
        parts.append(f"<pre>{escape(step.text)}</pre>")
    return "".join([*parts, "</section>\n"])
