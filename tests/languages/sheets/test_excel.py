"""What Excel itself has computed, where it does something else than one might expect."""

from __future__ import annotations

import pytest

from tests.languages.sheets.books import value

DATA = {
    "A1": 2, "A2": 3, "A3": 5, "A4": 2, "A5": 4, "A6": 6, "A7": 3, "A8": 2, "A9": 5, "A10": 1,
    "B1": "x", "B2": "y", "B3": "z", "C1": "black", "C2": "red", "C3": "green", "C4": "yellow",
    "C5": "violet", "C6": "brown", "D2": "4", "D3": 7, "E1": "1", "E2": 1, "E3": "q",
    "F1": "kind", "F2": "a", "F3": "a", "F4": "b", "G1": "size", "G2": None, "G3": "big",
    "G4": 1, "H1": "kind", "H2": "a", "I1": "size", "I2": "1", "J1": "G!", "K1": -5, "K2": -3,
    "L1": "on", "L2": True, "L3": False, "M1": "on", "M2": "true",
    "N1": 1, "N2": 2, "O1": 2, "O2": 5, "O3": "=NA()",
}  # fmt: skip

LOOKUPS = [
    # A search that halves stops where it meets the value, even if the values are in no order.
    ("=MATCH(5,A1:A10,1)", 9.0),
    ("=MATCH(3,{1,2,3,3,3,4},1)", 5.0),
    ('=LOOKUP("red",{"m","k","red","a","b"},{1,2,3,4,5})', 3.0),
    ('=HLOOKUP("b",{"a","z","b","c","d";1,2,3,4,5},2)', 3.0),
    ('=MATCH("black",C1:C6,-1)', 1.0),
    ("=MATCH(4,{9,4,4,2},-1)", 2.0),
    ("=SUM(INDEX({1,2;3,4},2))", 7.0),
    ("=INDEX({1,2;3,4},2)", 3.0),
    ("=INDEX(N1:O2,2)", "#REF!"),
    ('=VLOOKUP(2,A1:B3,"abc")', "#REF!"),
    ("=VLOOKUP(2,A1:B3,1/0)", "#REF!"),
    ("=VLOOKUP(NA(),A1:B3,1/0)", "#N/A"),
    ('=VLOOKUP(2,A1:B3,"abc",NA())', "#N/A"),
    ("=VLOOKUP(2,A1:B3,0)", "#VALUE!"),
    ('=VLOOKUP(2,A1:B3,"2",FALSE)', "x"),
    ("=ADDRESS(1,2,5)", "$B$1"),
    ("=ADDRESS(1,2,7,FALSE)", "R[1]C2"),
    ("=ADDRESS(1,2,9)", "#VALUE!"),
    ('=ADDRESS(2,3,3,TRUE,"[Book1]Sheet1")', "[Book1]Sheet1!$C2"),
]  # fmt: skip

#: A date without a year would be one of the year in which the formula is computed.
DATES = [
    ('="2/1"+0', "#VALUE!"),
    ('="1-Feb"+0', "#VALUE!"),
    ('=DATEVALUE("FEB-01")', "#VALUE!"),
    ('=VALUE("2/1 12:00")', "#VALUE!"),
    ('=COUNTIF(C1:C6,"2/1")', 0.0),
    ('=DATEVALUE("FEB-2024")', 45323.0),
    ('=DATEVALUE("2/99")', 36192.0),
    ('=DATEVALUE("2/1/24")', 45323.0),
]

REFERENCES = [
    # A range of which no cell is in this row or column is an error, which functions may ask for.
    ("=ISERROR(A2:A5)", True),
    ("=ISBLANK(A2:B5)", False),
    ("=ISNONTEXT(A2:A5)", True),
    ("=A2:A5+1", "#VALUE!"),
    ('=_xlfn._LONGTEXT("a long ","text")&"!"', "a long text!"),
    ("=T(B1:B3)", "x"),
    ("=T(A1:B1)", ""),
    ("=N(A2:A5)", 3.0),
]

NUMBERS = [
    ("=DEC2BIN(-1,0)", "#NUM!"),
    ("=DEC2HEX(-1,11)", "#NUM!"),
    ('=DEC2OCT("E",0)', "#NUM!"),
    ('=DEC2OCT("E",3)', "#VALUE!"),
    ("=DEC2HEX(-1,3)", "FFFFFFFFFF"),
    ('=HEX2DEC("-A")', "#NUM!"),
    ('=HEX2BIN("1_0")', "#NUM!"),
    ("=VDB(1,0,14,2.5,3.5,1.25)", 0.0707476519386454),
    ("=VDB(1,0,14,11.5,12.5,1.25)", 0.0687262904546841),
    ("=VDB(1,0,14,11,12,1.25)", 0.0686678993837795),
    ("=MIRR(K1:K2,0.1,0.1)", -1.0),
    ("=LARGE(A1:A10,0.99)", "#NUM!"),
    ("=SMALL(A1:A10,1.5)", 2.0),
]

COUNTED = [
    # A text that reads like a number is equal to it, and is not.
    ('=COUNTIF(E1:E3,"=1")', 2.0),
    ('=COUNTIF(E1:E3,"<>1")', 2.0),
    ('=MODE(1,1,"1")', "#VALUE!"),
    ("=MODE(2,2,G2)", "#VALUE!"),
    ("=MODE(A1:A10,B1:B3)", 2.0),
    ("=SUMPRODUCT(D2:D2,D3:D3)", "#VALUE!"),
    ("=SUMPRODUCT(D2:D3,D2:D3)", 49.0),
    # Records whose field is empty do not count for DGET.
    ('=DGET(F1:G4,"size",H1:H2)', "big"),
    ('=DGET(F1:G4,"kind",I1:I2)', "b"),
    ('=DCOUNTA(L1:L3,"on",M1:M2)', 1.0),
]

SAMPLES = [
    ("=TREND(-20,-7)", -20.0),
    ("=INDEX(TREND({1;2;3},{1;2;3},{4,5;6,7}),2,1)", 6.0),
    ("=COLUMNS(GROWTH({1;2;4},{1;2;3},{4,5,6}))", 3.0),
    ("=INDEX(TREND({3,5,8,9},{1,2,3,4;2,1,5,3},{6;7}),1,1)", 99 / 7),
    # Pairs with an empty cell or a text do not count, but the shape tells the degrees of freedom.
    ('=CHITEST({1;"x";3;4},{1;2;3.1;4})', 0.999951319389085),
    ("=CHITEST({1;2.1},{1,2.2})", 0.946247358663803),
    ("=CHITEST({1;2},{1,2,3})", "#N/A"),
    ("=CHITEST({1;2;4},{1.1;-1;0})", "#DIV/0!"),
    ("=CHITEST({1;2;4},{1.1;-1;5})", "#NUM!"),
    ("=CORREL(N1:N3,O1:O3)", "#N/A"),
    ("=TTEST(N1:N3,O1:O3,2,1)", "#N/A"),
]


@pytest.mark.parametrize(
    ("formula", "wanted"), [*LOOKUPS, *DATES, *REFERENCES, *NUMBERS, *COUNTED, *SAMPLES]
)
def test_a_formula_gives_what_excel_gives(formula: str, wanted: object) -> None:
    found = value(formula, DATA)
    if isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-13)
    else:
        assert found == wanted


# Longley's data on employment, as statisticians use it to try programs: the columns are all
# but sums of one another. The coefficients and errors are those the NIST has certified.
LONGLEY = [
    (60323, 83.0, 234289, 2356, 1590, 107608, 1947),
    (61122, 88.5, 259426, 2325, 1456, 108632, 1948),
    (60171, 88.2, 258054, 3682, 1616, 109773, 1949),
    (61187, 89.5, 284599, 3351, 1650, 110929, 1950),
    (63221, 96.2, 328975, 2099, 3099, 112075, 1951),
    (63639, 98.1, 346999, 1932, 3594, 113270, 1952),
    (64989, 99.0, 365385, 1870, 3547, 115094, 1953),
    (63761, 100.0, 363112, 3578, 3350, 116219, 1954),
    (66019, 101.2, 397469, 2904, 3048, 117388, 1955),
    (67857, 104.6, 419180, 2822, 2857, 118734, 1956),
    (68169, 108.4, 442769, 2936, 2798, 120445, 1957),
    (66513, 110.8, 444546, 4681, 2637, 121950, 1958),
    (68655, 112.6, 482704, 3813, 2552, 123366, 1959),
    (69564, 114.2, 502601, 3931, 2514, 125368, 1960),
    (69331, 115.7, 518173, 4806, 2572, 127852, 1961),
    (70551, 116.9, 554894, 4007, 2827, 130081, 1962),
]
CERTIFIED = [
    (-3482258.63459582, 890420.383607373), (15.0618722713733, 84.9149257747669),
    (-0.358191792925910e-1, 0.334910077722432e-1), (-2.02022980381683, 0.488399681651699),
    (-1.03322686717359, 0.214274163161675), (-0.511041056535807e-1, 0.226073200069370),
    (1829.15146461355, 455.478499142212),
]  # fmt: skip


@pytest.mark.parametrize("number", range(7))
def test_regression_keeps_its_digits_where_columns_are_nearly_sums_of_others(number: int) -> None:
    cells = {f"{'ABCDEFG'[c]}{r}": v for r, row in enumerate(LONGLEY, 1) for c, v in enumerate(row)}
    found = [
        value(f"=INDEX(LINEST(A1:A16,B1:G16,TRUE,TRUE),{row},{7 - number})", cells)
        for row in (1, 2)
    ]
    assert found == pytest.approx(CERTIFIED[number], rel=1e-11)


def test_a_column_that_is_a_sum_of_others_has_no_part_in_a_regression() -> None:
    cells = {"A1": 1, "A2": 3, "A3": 4, "A4": 8, "B1": 1, "B2": 2, "B3": 3, "B4": 4,
             "C1": 2.1, "C2": 4.2, "C3": 6.3, "C4": 8.4}  # fmt: skip
    assert value("=INDEX(LINEST(A1:A4,B1:C4,TRUE,TRUE),1,1)", cells) == 0.0
    assert value("=INDEX(LINEST(A1:A4,B1:C4,TRUE,TRUE),1,2)", cells) == pytest.approx(2.2)
    assert value("=INDEX(LINEST(A1:A4,B1:C4,TRUE,TRUE),4,2)", cells) == 2.0


RECORDS = {
    "A1": "name", "B1": "size", "A2": "x", "B2": 3, "A3": "y", "B3": 5, "A4": "z", "B4": 9,
    "D1": "large", "D2": "=B2>$F$1", "E1": "name", "E2": "<>z", "F1": 4, "G1": "name", "G2": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("formula", "expected"),
    [('=DGET(A1:B4,"name",D1:E2)', "y"), ('=DSUM(A1:B4,"size",D1:D2)', 14.0),
     ("=DCOUNT(A1:B4,,D1:D2)", 2.0), ('=DMAX(A1:B4,"size",G1:G2)', 9.0)],
)  # fmt: skip
def test_a_criterion_may_be_a_formula_of_the_first_record(formula: str, expected: object) -> None:
    assert expected == value(formula, RECORDS)
