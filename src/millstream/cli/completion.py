"""`millstream completion SHELL`: a script that completes commands, options and their values."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from millstream.engines import ENGINES


@dataclass(frozen=True, slots=True)
class Completion:
    """What can be written: an option or a command, what it is for, and its values if known."""

    text: str
    help: str
    values: tuple[str, ...] = ()
    takes_value: bool = False


def run(arguments: argparse.Namespace) -> int:
    from millstream.cli.main import make_parser

    commands = dict(_commands(make_parser()))
    script = {"bash": _bash, "zsh": _zsh, "fish": _fish}[arguments.shell](commands)
    sys.stdout.write(script)
    return 0


def _commands(parser: argparse.ArgumentParser) -> Iterator[tuple[Completion, list[Completion]]]:
    """Every command with its options, and with the values of its first argument."""
    (commands,) = (a for a in parser._actions if isinstance(a, argparse._SubParsersAction))  # noqa: SLF001
    helps = {one.dest: one.help or "" for one in commands._choices_actions}  # noqa: SLF001
    for name, command in commands.choices.items():
        actions = command._actions  # noqa: SLF001
        options = [
            Completion(flag, action.help or "", _values(name, action), action.nargs != 0)
            for action in actions
            for flag in action.option_strings
            if flag.startswith("--")
        ]
        positional = next((a for a in actions if not a.option_strings), None)
        first = () if positional is None else _values(name, positional)
        yield Completion(name, helps.get(name, ""), first), options


def _values(command: str, action: argparse.Action) -> tuple[str, ...]:
    from millstream.cli.shipped import shipped_examples, starters

    if action.choices is not None:
        return tuple(map(str, action.choices))
    match command, action.dest:
        case "serve", "engine":
            return ("local", "spark")
        case _, "engine":
            return tuple(ENGINES)
        case "init", "kind":
            return tuple(starters())
        case "examples", "name":
            return tuple(shipped_examples())
    return ()


def _bash(commands: dict[Completion, list[Completion]]) -> str:
    lines = [
        "# Completion of millstream for bash: source <(millstream completion bash)",
        "_millstream() {",
        '  local words="" current="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}"',
        '  if [ "$COMP_CWORD" -eq 1 ]; then',
        f'    words="{" ".join(c.text for c in commands)}"',
        "  else",
        '    case "${COMP_WORDS[1]} $before" in',
    ]
    for command, options in commands.items():
        lines += [
            f'      "{command.text} {option.text}") words="{" ".join(option.values)}" ;;'
            for option in options
            if option.takes_value
        ]
        flags = " ".join(option.text for option in options)
        first = f' words="{" ".join(command.values)}";' if command.values else ""
        lines += [
            f'      "{command.text} "*) case "$current" in',
            f'        -*) words="{flags}" ;;',
            f"        *){first} ;;",
            "      esac ;;",
        ]
    lines += [
        "    esac",
        "  fi",
        '  COMPREPLY=($(compgen -W "$words" -- "$current"))',
        "}",
        "complete -o default -o bashdefault -F _millstream millstream",
    ]
    return "\n".join(lines) + "\n"


def _zsh(commands: dict[Completion, list[Completion]]) -> str:
    lines = [
        "#compdef millstream",
        "# Completion of millstream for zsh: source <(millstream completion zsh)",
        "_millstream() {",
        "  local -a commands",
        "  commands=(",
        *(f"    {_quoted(f'{c.text}:{c.help}')}" for c in commands),
        "  )",
        "  if (( CURRENT == 2 )); then _describe command commands; return; fi",
        "  case $words[2] in",
    ]
    for command, options in commands.items():
        first = f":value:({' '.join(command.values)})" if command.values else ":file:_files"
        lines.append(f"    {command.text}) _arguments -S \\")
        for option in options:
            values = f"({' '.join(option.values)})" if option.values else "_files"
            value = f":value:{values}" if option.takes_value else ""
            text = option.help.replace("[", "(").replace("]", ")").replace(":", ";")
            lines.append(f"      {_quoted(f'*{option.text}[{text}]{value}')} \\")
        lines.append(
            f"      {_quoted('1:command:')} {_quoted(f'2{first}')} {_quoted('*:file:_files')} ;;"
        )
    lines += ["  esac", "}", "compdef _millstream millstream"]
    return "\n".join(lines) + "\n"


def _fish(commands: dict[Completion, list[Completion]]) -> str:
    lines = ["# Completion of millstream for fish: millstream completion fish | source"]
    for command, options in commands.items():
        lines.append(
            "complete -c millstream -n __fish_use_subcommand -f "
            f"-a {command.text} -d {_quoted(command.help)}"
        )
        seen = f"-n '__fish_seen_subcommand_from {command.text}'"
        if command.values:
            values = _quoted(" ".join(command.values))
            lines.append(f"complete -c millstream {seen} -a {values}")
        for option in options:
            value = " -r" if option.takes_value else ""
            value += f" -f -a {_quoted(' '.join(option.values))}" if option.values else ""
            name = option.text.removeprefix("--")
            lines.append(
                f"complete -c millstream {seen} -l {name}{value} -d {_quoted(option.help)}"
            )
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return "'" + text.replace("%%", "%").replace("'", "'\\''") + "'"
