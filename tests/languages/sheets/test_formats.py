"""Number formats, as Excel has shown numbers in them."""

from __future__ import annotations

import pytest

from millstream.values.excel.formats import formatted
from millstream.values.excel.values import Raised, Scalar

PLAIN = [
    (1234567.0, ",#", ",1234567"),
    (1234567.0, "?,?????????", "    1,234,567"),
    (-1234567.0, "?,?????????", "-    1,234,567"),
    (123.0, "0,000", "0,123"),
    (0.285, "0.0%", "28.5%"),
    (1.7e308, "0%", "17" + "0" * 309 + "%"),
]

CHOSEN = [
    (10.0, '[<10]#" Wow"', "10"),
    (9.0, '[<10]#" Wow"', "9 Wow"),
    (9.0, '[<   10]#" Wow"', "9 Wow"),
    (11.5, '[>100]#" Big"', "11.5"),
    (11.0, '[>100]#" Big";#" Small"', "11 Small"),
    (True, ";;;-@-", "-TRUE-"),
    (False, '0;0;0;"no"', "no"),
    (True, "0.00", "TRUE"),
]

SCIENTIFIC = [
    (123456.789, "|#|e-|#|", "|1|e|5|"),
    (123456.789, "|#.#|e+|#|", "|1.2|e|+5|"),
    (1.23456789e-05, "|#.#|E+|#|", "|1.2|E|-5|"),
    (123456.789, "|#######.####|e-|#|", "|123456.789|e|0|"),
    (123456.789, "|?,??????.????|e-|?|", "|  123,456.789 |e|0|"),
    (1.23456789e-05, "|?,??????.????|e-|?|", "|      123.4568|e|-7|"),
    (123456.789, "#,e-#", "1e5"),
    (123456.789, "#e-#,", "1e5"),
    (123456.789, "#%e-#", "1%e5"),
    (0.0, "#.#e+???", "0.e+  0"),
    (0.0, "#,######.####e-#", "0,000,000.e0"),
    (1.2345678e142, "|#.#|e+|0000|", "|1.2|e|+0142|"),
]

FRACTIONS = [
    (23.75, "# ?/?", "23 3/4"),
    (0.75, "# ?/?", " 3/4"),
    (0.75, "# #/#", "3/4"),
    (5.25, "# ??/??", "5  1/4 "),
    (5.0, "# ?/?", "5    "),
    (5.0, "# #/#", "5"),
    (0.0, "# #/#", "0"),
    (5.3, "# ?/10", "5 3/10"),
    (23.75, "|#\\:#/#|", "|23:3/4|"),
    (0.75, "|#\\:#/#|", "|3/4|"),
    (23.75, "|#-#-#\\:#/#|", "|-2-3:3/4|"),
    (0.0, "|#-#-#\\:#/#|", "|--0|"),
    (1.0, "|#\\:#=/=?|", "|1      |"),
    (0.0, "|#\\:0=/=#|", "|0=/=1|"),
    (0.0, "|?\\:0=/=#|", "|0:0=/=1|"),
    (1.0, "|?\\:0=/=#|", "|1:0=/=1|"),
    (0.75, "|?\\:0=/=#|", "|  3=/=4|"),
    (-0.75, "|0\\:?=/=#|", "-|0:3=/=4|"),
    (23.75, "|#\\:? ?0#/000", "|2:3  03/004"),
    (1.0, "|#\\:? ?0#/000", "|:1  00/001"),
    (3.75, "|#_#/#|", "|15 /4|"),
    (3.0, "/x", "/x"),
]

MOMENTS = [
    (17816.607951388887, "hh:mm:ss a/p", "02:35:27 p"),
    (17816.607951388887, "hh:mm:ss A/P", "02:35:27 P"),
    (3.14159, "[h]:m:s.000", "75:23:53.376"),
    (3.14159, "[ss].000", "271433.376"),
    (3.14159, 's:m" @ hour "[hh]', "53:23 @ hour 75"),
    (3.14159, '[h]" or "hh', "75 or 75"),
    (0.0, '[s]" [yes, "ss"]"', "0 [yes, 00]"),
]


@pytest.mark.parametrize(
    ("value", "pattern", "wanted"), [*PLAIN, *CHOSEN, *SCIENTIFIC, *FRACTIONS, *MOMENTS]
)
def test_a_value_is_shown_as_excel_shows_it(value: Scalar, pattern: str, wanted: str) -> None:
    assert formatted(value, pattern) == wanted


@pytest.mark.parametrize(
    ("value", "pattern", "wanted"),
    [
        (3.14159, "[h]:mm", "75:23"),
        (-3.14159, "[h]:m:s.000", "-75:23:53.376"),
        (-0.5, "h:mm", "-12:00"),
        (0.0, "yyyy-mm-dd", "1904-01-01"),
    ],
)
def test_since_1904_times_may_be_negative(value: float, pattern: str, wanted: str) -> None:
    assert formatted(value, pattern, uses_1904=True) == wanted


@pytest.mark.parametrize(("value", "pattern"), [(-0.5, "[h]:mm"), (1.0, "0" * 256)])
def test_what_cannot_be_shown_is_an_error(value: float, pattern: str) -> None:
    with pytest.raises(Raised):
        formatted(value, pattern)
