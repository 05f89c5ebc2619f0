"""Whatever a function is given, it answers soon: with a value, or an error of Excel's or ours."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.values.excel.values import Scalar
from tests.languages.sheets.any_arguments import DATA, NAMES, answer, calls, is_answer
from tests.languages.sheets.books import value
from tests.seeds import TODAY

ROOT = Path(__file__).parents[3]

#: Formulas that once took for ever, or broke down.
ONCE_BAD = [
    ("=PERMUT(1E15,1E15)", "#NUM!"),
    ("=COMBINA(1E15,1E15)", "#NUM!"),
    ("=MULTINOMIAL(0,1E15,0)", 1.0),
    ("=MULTINOMIAL(2,3,4)", 1260.0),
    ("=WORKDAY(1,1E308)", "#NUM!"),
    ("=NEGBINOMDIST(12345678,1E308,1)", 0.0),
    ("=POISSON(1E308,5,TRUE)", 1.0),
    ("=TINV(1E-300,1E308)", "#NUM!"),
    ("=VDB(40000,255,1E15,255,1E15)", "#NUM!"),
    ("=INDEX(WRAPROWS(TRUE,3E9),1)", "#NUM!"),
    ("=FIXED(0.5,1E15)", "#VALUE!"),
    ("=VAR(1E308,-1E308)", "#NUM!"),
    ("=ZTEST(B1:B5,255,0)", "#DIV/0!"),
    ("=ARABIC(A6)", 0.0),
    ("=ADDRESS(,2)", "#VALUE!"),
    ('=TEXTBEFORE(,"x")', "#N/A"),
    ("=IMSUB(A6,3)", "-3"),
    ("=RRI(3,10,-10)", "#NUM!"),
    ('{=SUM(--TEXTSPLIT({"1,2";"3,4"},","))}', 4.0),
    ("{=SUM(INDEX(B1:B5,{1,2}))}", 7.0),
    ("{=LAMBDA(x,x)}", "#CALC!"),
    ("=GAMMADIST(255,3,A8,TRUE)", 1.0),
    ("=ROUND(LAMBDA(x,x),1)", "#VALUE!"),
    ("=LAMBDA(x,x)+1", "#VALUE!"),
    ('=LAMBDA(x,x)&"a"', "#VALUE!"),
    ("=LAMBDA(x,x)=LAMBDA(y,y)", "#VALUE!"),
    ("=IF(LAMBDA(x,x),1,2)", "#VALUE!"),
    ("=CHOOSE(SEQUENCE(3,3),LAMBDA(x,1/0),FALSE)", "#CALC!"),
    ("=SWITCH({1;1},{0},LAMBDA(x,x),1,5)", 5.0),
    ("=EXPAND(LAMBDA(x,x))", "#VALUE!"),
    ("=IMPOWER(-1,1E308)", "#NUM!"),
    ("=BESSELI(5E-324,1)", 5e-324),
    ("=NEGBINOMDIST(0,1E5,5E-324)", 0.0),
    ("=BINOMDIST(1E15,1E15,1E-300,FALSE)", 0.0),
    ("=F.DIST(0,4,3,FALSE)", 0.0),
    ("=F.DIST(0,2,3,FALSE)", 1.0),
    ("=F.DIST(0,1,3,FALSE)", "#NUM!"),
    ("=BETA.INV(1E-300,1E308,1E5)", "#NUM!"),
    ("=LINEST(12345678,A8,A6,C1:C9)", "#NUM!"),
    ("=INDEX(SEQUENCE(3,1,1E308,1E308),3)", "#NUM!"),
    ("=AMORLINC(60,1E-300,60,3,1,1E308)", "#NUM!"),
    ("=AMORDEGRC(2400,40000,40100,0,9E15,0.15)", 0.0),
    ("=AMORDEGRC(1E308,40000,40100,0,9E15,1E-9)", "#NUM!"),
    ("=DB(16,12345678,3E9,3E9)", "#NUM!"),
    ("=MIRR(B1:B5,1,-2)", "#NUM!"),
    ("=TREND(2147483648,10,-1E308,0)", "#NUM!"),
    ("=TBILLYIELD(2958460,2958465,99)", (100 - 99) / 99 * 360 / 5),
    ("=INDEX(WRAPCOLS(36,2958466),1)", "#NUM!"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_function_answers(name: str) -> None:
    for formula in calls(name, 8):
        assert is_answer(answer(formula)), formula


@pytest.mark.proof
def test_functions_answer_soon_and_in_little_memory() -> None:
    command = [sys.executable, "-W", "error", "-m", "tests.languages.sheets.any_arguments"]
    done = subprocess.run(
        [*command, "400", str(TODAY)],
        cwd=ROOT, capture_output=True, text=True, timeout=3600, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(("formula", "wanted"), ONCE_BAD)
def test_what_once_was_bad(formula: str, wanted: Scalar) -> None:
    assert value(formula, DATA) == wanted


@pytest.mark.parametrize(("x", "n"), [(1e5, 0), (1e5, 2), (4e4, 10), (12345.6, 3)])
def test_bessel_functions_of_large_arguments_are_waves(x: float, n: int) -> None:
    turn, first = x - n * math.pi / 2 - math.pi / 4, (4 * n * n - 1) / (8 * x)
    height = math.sqrt(2 / (math.pi * x))
    cosine, sine = math.cos(turn), math.sin(turn)
    waves = {"BESSELJ": cosine - first * sine, "BESSELY": sine + first * cosine}
    for name, wave in waves.items():
        told = value(f"={name}({x!r},{n})".replace("e", "E"))
        assert told == pytest.approx(height * wave, rel=1e-5)


def test_bessel_functions_of_tiny_arguments_are_logarithms() -> None:
    euler = 0.5772156649015329
    assert value("=BESSELK(1E-300,0)") == pytest.approx(-math.log(0.5e-300) - euler, rel=1e-12)
    assert value("=BESSELK(5E-324,0)") == pytest.approx(-math.log(5e-324) + math.log(2) - euler)
    assert value("=BESSELY(1E-300,0)") == pytest.approx(
        2 / math.pi * (math.log(0.5e-300) + euler), rel=1e-12
    )
