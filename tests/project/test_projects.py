"""Project files: wiring, and all faults at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import millstream
from millstream.errors import MillstreamError

FIRST = """
output big, all;
input trades(symbol text, volume integer);
(a, all) <- Duplicate(trades);
(big)    <- Filter[volume > 10](a);
"""
SECOND = """
output counts;
input big(symbol text);
variable $n(n integer = 0);
(counts, $n) <- Fold[by symbol; set $n.n = $n.n + 1; emit symbol, n = $n.n](big, $n);
"""
PROJECT = """
[stream.Trades]
source = "trades.csv"
columns = { symbol = "text", price = "number", volume = "integer" }

[node.first]
brook = "first.brook"
inputs.trades = "Trades"

[node.second]
brook = "second.brook"

[sink.Trades]
to = "copy.csv"
"""
TRADES = "_time,symbol,price,volume\n1,IBM,1.5,5\n2,IBM,2.5,50\n3,XYZ,3.5,11\n4,IBM,1,12\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in {
        "first.brook": FIRST, "second.brook": SECOND, "millstream.toml": PROJECT,
        "trades.csv": TRADES,
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("engine", ["reference", "local"])
def test_nodes_read_what_other_nodes_give(project: Path, engine: str) -> None:
    finished = millstream.compile(project).run(engine=engine)
    assert [
        {"_time": 2, "symbol": "IBM", "n": 1},
        {"_time": 3, "symbol": "XYZ", "n": 1},
        {"_time": 4, "symbol": "IBM", "n": 2},
    ] == finished.rows("counts")
    assert 4 == len(finished.rows("all"))
    assert "1,IBM,1.5,5" in (project / "copy.csv").read_text()


def faults(project: Path) -> list[str]:
    with pytest.raises(MillstreamError) as caught:
        millstream.compile(project)
    return [fault.render().replace(str(project) + "/", "") for fault in caught.value.faults]


def test_a_syntax_error_is_told_with_its_place(project: Path) -> None:
    (project / "millstream.toml").write_text('[stream.Trades]\nsource = "x\n')
    (fault,) = faults(project)
    assert fault.startswith("millstream.toml:2:")


def test_unknown_keys_sections_and_types_are_told_together(project: Path) -> None:
    (project / "millstream.toml").write_text(
        PROJECT.replace("columns", "colums").replace("[sink.Trades]", "[sinks.Trades]")
        + '[stream.Other]\nsource = "o.csv"\ncolumns = { x = "string" }\n'
    )
    told = "\n".join(faults(project))
    assert 'unknown section "sinks"' in told
    assert 'Did you mean "sink"?' in told
    assert 'unknown key "colums" in [stream.Trades]' in told
    assert 'Did you mean "columns"?' in told
    assert 'Did you mean "text"?' in told


def test_a_name_that_nothing_provides_is_told(project: Path) -> None:
    (project / "millstream.toml").write_text(PROJECT.replace('"Trades"', '"Trade"'))
    assert any('nothing provides "Trade"' in fault for fault in faults(project))


def test_columns_that_do_not_fit_are_told(project: Path) -> None:
    (project / "second.brook").write_text(SECOND.replace("symbol text", "symbol text, x number"))
    assert any('"big", which has no such column' in fault for fault in faults(project))


def test_a_stream_that_is_read_as_a_relation_is_told_with_what_to_write(project: Path) -> None:
    (project / "millstream.toml").write_text(
        PROJECT.replace("[stream.Trades]", "[relation.Trades]")
    )
    (told,) = {fault for fault in faults(project) if "as a stream, but it is a relation" in fault}
    assert "write [stream.Trades] in place of [relation.Trades]" in told


def test_the_faults_of_all_programs_are_told_together(project: Path) -> None:
    (project / "first.brook").write_text(FIRST.replace("volume > 10", "volme > 10"))
    (project / "second.brook").write_text(SECOND.replace("Fold", "Fld"))
    told = faults(project)
    assert any(f.startswith("first.brook:5:") for f in told)
    assert any(f.startswith("second.brook:5:") for f in told)


def test_a_missing_program_is_told(project: Path) -> None:
    (project / "first.brook").unlink()
    assert any("first.brook: cannot read this file" in fault for fault in faults(project))


PIPES = 'readFromWrapper("Trades") -> filter $.volume > 10 -> transform {$.symbol};'
TOLD = """
[stream.Trades]
source = "trades.csv"

[node.large]
pipes = "large.jaql"
"""


def test_columns_that_nobody_declares_are_told_by_the_source_and_noted(project: Path) -> None:
    (project / "large.jaql").write_text(PIPES)
    (project / "millstream.toml").write_text(TOLD)
    (project / "trades.csv").write_text("at,symbol,volume\n2026-01-05,IBM,5\n2026-01-06,XYZ,11\n")
    compiled = millstream.compile(project)
    (input_,) = compiled.program.inputs
    assert ("at", ("at", "symbol", "volume")) == (input_.time, input_.type.schema.names)
    assert ["XYZ"] == [row["symbol"] for row in compiled.run(engine="reference").rows("query1")]
    (note,) = compiled.warnings()
    assert 'columns of "Trades" by 2 rows of trades.csv: at time, symbol text' in note.message


def test_a_source_that_tells_no_columns_is_one_fault(project: Path) -> None:
    (project / "large.jaql").write_text(PIPES)
    (project / "millstream.toml").write_text(TOLD.replace("trades", "tradez"))
    with pytest.raises(MillstreamError) as caught:
        millstream.compile(project)
    (fault,) = caught.value.faults
    assert 'there is no file "tradez.csv"' == fault.message
    (project / "millstream.toml").write_text(TOLD)
    (project / "trades.csv").write_text("symbol,volume\nIBM,5\n")
    with pytest.raises(MillstreamError, match="none holds times"):
        millstream.compile(project)


def test_what_a_faulty_node_would_have_given_is_not_missing(project: Path) -> None:
    (project / "first.brook").write_text(FIRST.replace("volume > 10", "volum > 10"))
    (project / "after.szl").write_text('r: { symbol: string } = input;\nemit stdout <- "a";\n')
    more = '[node.after]\nsawzall = "after.szl"\ninputs.input = "big"\n'
    (project / "millstream.toml").write_text(PROJECT + more)
    with pytest.raises(MillstreamError) as raised:
        millstream.compile(project)
    assert ['unknown column "volum"'] == [fault.message for fault in raised.value.faults]


def test_an_unknown_stream_is_told_by_its_name_in_the_project(project: Path) -> None:
    (project / "after.szl").write_text("emit stdout <- string(input);\n")
    more = '[node.after]\nsawzall = "after.szl"\ninputs.input = "bigg"\n'
    (project / "millstream.toml").write_text(PROJECT + more)
    with pytest.raises(MillstreamError, match='node "after" reads "bigg"') as raised:
        millstream.compile(project)
    assert 'Did you mean "big"?' in str(raised.value)


#: Nobody declares a column, and names differ in case and blanks.
UNDECLARED = """
[stream.Orders]
source = "orders.csv"

[relation.Regions]
source = "regions.csv"
once = true

[node.priced]
cql = "priced.cql"

[node.large]
cql = "large.cql"

[node.log]
sawzall = "log.szl"
inputs.input = "Orders"
"""
ORDERS = "at,Country,Unit Price,Qty\n2026-01-05,NL,1.5,2\n2026-01-06,FR,2.5,4\n2026-01-07,NL,,6\n"
LOG = """
r: { country: string, unit_price: float, qty: float } = input;
total: table sum[country: string] of float;
emit total[r.country] <- r.qty * r.unit_price;
"""


@pytest.fixture
def undeclared(tmp_path: Path) -> Path:
    for name, text in {
        "millstream.toml": UNDECLARED, "orders.csv": ORDERS, "log.szl": LOG,
        "regions.csv": "country,region\nNL,Benelux\n",
        "priced.cql": "CREATE OUTPUT Priced AS SELECT ISTREAM(region, qty * unit_price AS amount) "
                      "FROM Orders [Now], Regions WHERE Orders.country = Regions.country;",
        "large.cql": "WITH l AS (SELECT amount FROM Priced) SELECT amount FROM l WHERE amount > 1;",
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


def test_queries_read_what_the_project_and_other_nodes_have(undeclared: Path) -> None:
    finished = millstream.compile(undeclared).run(engine="reference")
    assert [3.0] == [row["amount"] for row in finished.rows("query1")]


def test_what_other_nodes_read_leaves_if_it_is_asked_for(undeclared: Path) -> None:
    assert "Priced" not in millstream.compile(undeclared).program.outputs
    compiled = millstream.compile(undeclared, outputs=["Priced", "query1"])
    finished = compiled.run(engine="reference")
    assert [3.0, None] == [row["amount"] for row in finished.rows("Priced")]
    assert [3.0] == [row["amount"] for row in finished.rows("query1")]


def test_a_record_that_a_program_rejects_is_counted_of_the_stream_of_the_project(
    undeclared: Path,
) -> None:
    finished = millstream.compile(undeclared).run(engine="local")
    totals = {row["country"]: row["value"] for row in finished.state("total")}
    assert {"FR": 10.0, "NL": 3.0} == totals
    orders = finished.report.inputs["Orders"]
    assert (3, 2, 1) == (orders.read, orders.processed, orders.rejected)
    assert orders.is_conserved


def test_a_record_that_another_node_gives_is_rejected_as_a_fault(undeclared: Path) -> None:
    file = undeclared / "millstream.toml"
    file.write_text(file.read_text().replace('inputs.input = "Orders"', 'inputs.input = "Priced"'))
    (undeclared / "log.szl").write_text(
        "r: { amount: float } = input;\nassert(r.amount > 5.0);\nemit stdout <- string(r.amount);\n"
    )
    finished = millstream.compile(undeclared).run(engine="local")
    assert {'rejected, of "Priced"': 2} == dict(finished.report.faults)
    assert all(one.is_conserved for one in finished.report.inputs.values())


def test_columns_that_a_record_does_not_have_are_told_with_their_place(undeclared: Path) -> None:
    (undeclared / "log.szl").write_text(LOG.replace("country: string, unit", "county: string, unit")
                                        .replace("r.country", "r.county")
                                        .replace("qty: float", "qty: string")
                                        .replace("r.qty", "float(r.qty)"))  # fmt: skip
    missing, unfit = faults(undeclared)
    assert missing.startswith('log.szl:2:57: the record has no column "county"')
    assert 'Did you mean "Country"?' in missing
    assert 'the record has "Qty" as integer, not as a string' in unfit


def test_an_undeclared_name_that_nobody_has_is_told_with_what_there_is(undeclared: Path) -> None:
    (undeclared / "large.cql").write_text("SELECT amount FROM Pricd;")
    (fault,) = faults(undeclared)
    assert fault.startswith('large.cql:1:20: unknown stream or relation "Pricd"')
    assert 'Did you mean "Priced"?' in fault


def test_a_cube_over_a_relation_is_told_with_what_to_write(undeclared: Path) -> None:
    (undeclared / "c.conf").write_text("Dimensions = country\nTimeGrain = Day\nCWindow = 2\n")
    file = undeclared / "millstream.toml"
    file.write_text(file.read_text() + '[cube.c]\nover = "Regions"\nconfig = "c.conf"\n')
    (fault,) = faults(undeclared)
    assert 'a cube is made of a stream, but "Regions" is a relation' in fault
    assert "-> istream" in fault


def test_what_a_faulty_node_would_have_given_brings_no_other_faults(undeclared: Path) -> None:
    (undeclared / "priced.cql").write_text("CREATE OUTPUT Priced AS SELECT qtty FROM Orders [Now];")
    (fault,) = faults(undeclared)
    assert 'unknown column "qtty"' in fault
