"""Configurations of cubes: what they mean, and everything that is wrong with them at once."""

from __future__ import annotations

import pytest

from millstream.calculus.cube import Cubify, Vertex
from millstream.calculus.cube_text import cube_lines
from millstream.calculus.grains import Grain
from millstream.calculus.library.cube import cube_of
from millstream.calculus.types import NUMBER, TEXT, TIME, Field, Schema
from millstream.errors import Fault
from millstream.source import Source

APPENDIX_A = """\
# Dimension attributes with hierarchy
Dimensions = productID, productName | supplierID, supplierName, supplierAddress | customerID, customerName, customerAddress
MVertices = productID, Minute | productName, supplierName, Hour
TimeGrain = Minute
CWindow = 500
OutputVertices = productName, customerName
"""  # noqa: E501
_NAMES = ("productID productName supplierID supplierName supplierAddress customerID customerName "
          "customerAddress")  # fmt: skip
SALES = Schema((*(Field(n, TEXT) for n in _NAMES.split()), Field("amount", NUMBER)))
MINUTE, HOUR = Grain(60_000_000), Grain(3_600_000_000)


def cube(text: str, schema: Schema = SALES) -> Cubify:
    faults: list[Fault] = []
    made = cube_of(Source("config.conf", text), schema, faults)
    assert made is not None and not faults, faults
    return made


def faults_of(text: str, schema: Schema = SALES) -> list[str]:
    faults: list[Fault] = []
    assert cube_of(Source("config.conf", text), schema, faults) is None
    return [fault.render() for fault in faults]


def test_appendix_a_is_read_as_it_stands() -> None:
    made = cube(APPENDIX_A)
    assert [2, 3, 3] == [len(levels) for levels in made.dimensions]
    assert (MINUTE, 500, False) == (made.grain, made.window, made.is_live)
    assert made.kept == (
        Vertex(("productID", "supplierID", "customerID"), MINUTE),
        Vertex(("productID",), MINUTE),
        Vertex(("productName", "supplierName"), HOUR),
    )
    assert (Vertex(("productName", "customerName"), MINUTE),) == made.outputs
    assert ["sum_amount", "count_amount", "min_amount", "max_amount"] == [
        m.name for m in made.measures
    ]


def test_keys_of_the_authors_files_are_read() -> None:
    made = cube(
        "Dimensions = productID, supplierID\nDimensionNames = product, supplier\n"
        "TimeGrain = second\nIoA = 60\nLatticeOutputVertices = none\n"
    )
    assert (("productID",), ("supplierID",)) == made.dimensions
    assert (60, ()) == (made.window, made.outputs)


def test_as_many_sizes_as_attributes_make_each_a_dimension() -> None:
    text = "Dimensions = productID, supplierID\nTimeGrain = Second\nCWindow = 60\n"
    assert (("productID", "supplierID"),) == cube(text).dimensions
    assert (("productID",), ("supplierID",)) == cube(text + "DimensionSizes = 9, 8").dimensions


def test_a_cube_is_printed_as_the_configuration_that_makes_it() -> None:
    text = APPENDIX_A + "Output = live\nMeasures = total: sum(amount), count(), "
    text += (
        "distinct(customerID), approx_distinct(amount), quantile(amount, 0.999), median(amount)\n"
    )
    made = cube(text)
    assert made == cube("\n".join(cube_lines(made)))


def test_attributes_of_a_vertex_are_in_the_order_of_the_dimensions() -> None:
    text = APPENDIX_A.replace("productName, customerName", "customerName, productName | all, Hour")
    assert (Vertex(("productName", "customerName"), MINUTE), Vertex((), HOUR)) == cube(text).outputs


def test_all_faults_are_told_at_once_with_near_misses() -> None:
    told = faults_of(
        APPENDIX_A.replace("= Minute", "= Minite").replace("productID, Minute", "prodctID, Minute")
        + "Mesures = x\nMeasures = sum(productID), summ(amount), min(amout)\nblah\n"
    )
    assert [
        "3:13: unknown attribute", "4:13: unknown grain", "7:1: unknown key",
        "8:12: sum cannot aggregate a text", "8:28: unknown measure", "8:46: unknown column",
        "9:1: expected `key = value`",
    ] == [" ".join(t.removeprefix("config.conf:").split("\n")[0].split()[:n])
          for t, n in zip(told, (3, 3, 3, 6, 3, 3, 6), strict=True)]  # fmt: skip
    assert all("Did you mean" in told[n] for n in (0, 1, 2, 4, 5))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("CWindow = 500\n", ""), 'there is no "CWindow"'),
        (("CWindow = 500", "CWindow = none"), "expected a whole number above 0"),
        (("| supplierID", "| productID"), '"productID" is in two dimensions'),
        (("Hour", "Second"), "a grain of Second is finer than TimeGrain"),
        (("Hour", "Day"), "a grain of Day is longer than the c-window"),
        (("Hour", "Hours | productID, productName"), "are levels of one dimension"),
        (("CWindow =", "IoA = 400\nCWindow ="), '"CWindow" is said twice'),
        (("CWindow", "DimensionSizes = 3, 4\nCWindow"), "here are 2 sizes for 3 dimensions"),
        (("CWindow", "DimensionNames = a\nCWindow"), "here are 1 name for 3 dimensions"),
        (("CWindow", "Measures = min(customerID)\nCWindow"), "min cannot aggregate a text"),
        (("CWindow", "Measures = a: sum(amount), a: count()\nCWindow"), 'two columns "a"'),
        (("CWindow", "Output = lively\nCWindow"), 'unknown output "lively"'),
        (("CWindow", "MMode = Measured\nCWindow"), 'unknown word "Measured"'),
    ],
)
def test_bad_input_is_told(change: tuple[str, str], told: str) -> None:
    (fault,) = faults_of(APPENDIX_A.replace(*change))
    assert told in fault


def test_no_attribute_is_named_as_the_time_of_a_cell() -> None:
    schema = Schema((Field("time", TIME),))
    (fault,) = faults_of("Dimensions = time\nTimeGrain = Second\nCWindow = 5\n", schema)
    assert '"time" cannot be an attribute' in fault


def test_memory_is_for_a_server_to_choose_with() -> None:
    made = cube(f"{APPENDIX_A}MaxMemory = 64 MB\n")
    assert made.memory == 64 << 20
    assert made == cube("\n".join(cube_lines(made)))
    measured = cube(f"{APPENDIX_A}MMode = Optimized\nOptMethod = Measured\nMaxMemory = 1 KB\n")
    assert measured.memory == 1 << 10
    counted = f"{APPENDIX_A}MMode = SmallestVertices\nMVerticesNum = 2\nMaxMemory = 1 KB\n"
    assert cube(counted).memory == 0
