"""What the documentation shows is run: files, commands and Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from millstream.api import compile as compile_file
from millstream.cli.main import COMMANDS, main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCS = sorted((ROOT / "docs").glob("*.md"))


def blocks(text: str) -> list[str]:
    """The indented blocks of a page, without their indentation."""
    found = re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE)
    return ["\n".join(line[4:] for line in b.split("\n")).strip("\n") + "\n" for b in found]


def block_with(text: str, words: str) -> str:
    return next(b for b in blocks(text) if words in b)


@pytest.fixture
def first_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "large.brook").write_text(block_with(README, "output large;"))
    (tmp_path / "trades.csv").write_text(block_with(README, "_time,symbol,price,volume"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_of_the_first_program_run(
    first_program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = [
        shlex.split(line, comments=True)
        for line in block_with(README, "millstream check").splitlines()
    ]
    assert 4 == len(commands)
    for command in commands:
        # Spark is started by its own tests.
        quick = ["--engine", "local"] if command[1] == "run" and len(command) == 3 else []
        assert 0 == main([*command[1:], *quick]), command
    assert "IBM,300,2" in capsys.readouterr().out


def test_the_rules_of_the_readme_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    section = README.partition("## Rules")[2].partition("\n## ")[0]
    for name, first in re.findall(r"In\s`([\w.]+)`:\n\n    (.*)\n", section):
        (tmp_path / name).write_text(block_with(section, first))
    monkeypatch.chdir(tmp_path)
    for line in block_with(section, "millstream check").splitlines():
        assert 0 == main(shlex.split(line)[1:]), line
    told = capsys.readouterr()
    assert "warning" not in told.err
    for words in ("restricted", "lifted", "reason changed", "clearance = 0.4 m"):
        assert words in told.out


def test_the_python_of_the_readme_runs(
    first_program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = compile(block_with(README, "import millstream"), "README.md", "exec")
    exec(code, {})  # noqa: S102 - our own page, which must run
    assert "'volume': 100" in capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_is_in_the_readme(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stop:
        main([command, "--help"])
    assert 0 == stop.value.code
    assert f"usage: millstream {command}" in capsys.readouterr().out
    assert f"`millstream {command}" in README


def test_the_project_file_of_the_documentation_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (ROOT / "docs" / "projects.md").read_text()
    toml = block_with(page, "[stream.Trades]")
    (tmp_path / "millstream.toml").write_text(toml)
    (tmp_path / "volumes.brook").write_text(
        "output out;\ninput trades(symbol text, volume integer);\n"
        "(all, $all) <- Range[unbounded](trades, $all);\n"
        "(out, $sum) <- Aggregate[by symbol; volume = sum(volume)](all, $sum);\n"
    )
    (tmp_path / "trades").mkdir()
    (tmp_path / "trades" / "one.csv").write_text("at,symbol,price,volume\n1,IBM,119.5,100\n")
    monkeypatch.chdir(tmp_path)
    assert 0 == main(["run", ".", "--engine", "local", "--out", "Volumes=volumes.csv"])
    assert "_time,_weight,symbol,volume\n1,1,IBM,100\n" == Path("volumes.csv").read_text()


@pytest.mark.parametrize("page", [ROOT / "README.md", *DOCS], ids=lambda p: p.name)
def test_every_file_that_is_named_exists(page: Path) -> None:
    for name in re.findall(r"`((?:docs|examples|src|tests|bench)/[\w./-]+)`", page.read_text()):
        assert (ROOT / name).exists(), name


def test_the_query_of_the_readme_gives_what_the_program_gives(first_program: Path) -> None:
    (first_program / "large.cql").write_text(block_with(README, "CREATE STREAM trades"))
    expected = compile_file(first_program / "large.brook").run().rows("large")
    assert expected == compile_file(first_program / "large.cql").run().rows("query1")


def test_the_query_of_the_documentation_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cql.md").read_text()
    (tmp_path / "trades.cql").write_text(block_with(page, "CREATE STREAM trades"))
    (tmp_path / "trades.csv").write_text("at,symbol,price,volume\n1,IBM,119.5,1100\n")
    (tmp_path / "listed.csv").write_text("symbol,name\nIBM,Business Machines\n")
    found = compile_file(tmp_path / "trades.cql").run()
    expected = {"_time": 1, "name": "Business Machines", "volume": 1100, "high": 119.5}
    assert [expected] == found.rows("busy")


def test_the_early_query_of_the_documentation_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "cql.md").read_text()
    (tmp_path / "q.cql").write_text(block_with(page, "EMIT EARLY;"))
    (tmp_path / "trades").mkdir()
    (tmp_path / "trades" / "a.csv").write_text("at,symbol,volume\n61000000,IBM,3\n1,IBM,2\n")
    found = compile_file(tmp_path / "q.cql").run()
    assert [0, 60_000_000] == [row["window_start"] for row in found.rows("per_minute")]


def rules_page() -> str:
    return (ROOT / "docs" / "rules.md").read_text()


def test_the_rules_of_the_documentation_run(tmp_path: Path) -> None:
    (tmp_path / "port.rules").write_text(block_with(rules_page(), "# who may enter the port"))
    compiled = compile_file(tmp_path / "port.rules")
    assert ("status", "warnings") == compiled.program.outputs


def test_the_python_of_the_rules_gives_the_tree_of_the_text() -> None:
    from millstream.languages.rules.read import read_rules
    from millstream.source import Source

    names: dict[str, object] = {}
    code = compile(block_with(rules_page(), "from millstream import rules"), "rules.md", "exec")
    exec(code, names)  # noqa: S102 - our own page, which must run
    text = block_with(rules_page(), "# who may enter the port")
    book = names["book"]
    tree = read_rules(Source("port.rules", text), [], {}).rules
    # The page's text has one requirement more.
    assert tree.statements[1:] == book.tree.statements  # type: ignore[attr-defined]


def test_the_domain_of_the_documentation_is_read(tmp_path: Path) -> None:
    (tmp_path / "trucks.toml").write_text(block_with(rules_page(), 'subject = "truck"'))
    rule = 'domain "trucks.toml"\nrequire weather.temperature - depot.cold <= 9 K\n'
    (tmp_path / "cold.rules").write_text(rule)
    inputs = compile_file(tmp_path / "cold.rules").program.input_names
    assert {"trucks", "depots", "weather", "stations"} == set(inputs)


COOKBOOK = (ROOT / "docs" / "cookbook.md").read_text()
RECIPES = [block.split("\n\n") for block in blocks(COOKBOOK) if ";\n\n_time," in block]


@pytest.mark.parametrize(("query", "answer"), RECIPES, ids=range(len(RECIPES)))
def test_the_recipes_of_the_cookbook_give_what_they_show(
    query: str, answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, first in re.findall(r"[Ii]n `([\w.]+)`.*:\n\n    (.*)\n", COOKBOOK):
        (tmp_path / name).write_text(block_with(COOKBOOK, first))
    (tmp_path / "shop.cql").write_text(block_with(COOKBOOK, "CREATE STREAM trades") + query)
    monkeypatch.chdir(tmp_path)
    compile_file("shop.cql").run(outputs={"query1": "answer.csv"}, engine="reference")
    assert answer == Path("answer.csv").read_text()


def test_the_cookbook_has_recipes() -> None:
    assert len(RECIPES) == COOKBOOK.count("\n    _time,") > 8


def test_every_page_has_its_place_in_the_site() -> None:
    listed = re.findall(r": ([\w-]+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE)
    assert sorted(listed) == [page.name for page in DOCS]


TUTORIAL = (ROOT / "docs" / "tutorial.md").read_text()


def sessions_of(text: str) -> list[tuple[str, str]]:
    """The commands that a page shows, each with what it answers."""
    session = re.compile(r"^\$ millstream (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
    return [found for block in blocks(text) for found in session.findall(block)]


def test_the_tutorial_gives_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without Spark; what is told on standard error comes after the rows."""
    for name, first in re.findall(r"[Ii]n `([\w.]+)`:\n\n    (.*)\n", TUTORIAL):
        (tmp_path / name).write_text(block_with(TUTORIAL, first))
    project = (tmp_path / "millstream.toml").read_text()
    (tmp_path / "millstream.toml").unlink()
    monkeypatch.chdir(tmp_path)
    commands = sessions_of(TUTORIAL)
    assert 8 == len(commands)
    for command, answer in commands:
        if command.startswith("run . "):
            (tmp_path / "millstream.toml").write_text(project)
        capfd.readouterr()
        assert 0 == main(shlex.split(command)), command
        said = capfd.readouterr()
        assert answer.strip() == (said.out + said.err).strip(), command
