"""Writes the workbooks of the streaming spreadsheets paper, and small inputs for them.

    python examples/sheets/make_workbooks.py [FOLDER]

They are written after the paper's descriptions: its eight benchmarks (twitter is two sheets)
and the Mandelbrot sheet of 400 cells. The expected outputs beside them were made by the
reference engine.
"""

from __future__ import annotations

import csv
import datetime as dt
import math
import random
import sys
from pathlib import Path
from typing import Any

import openpyxl

Cells = dict[str, Any]
Rows = list[dict[str, Any]]

SECOND = 1_000_000


def write_workbook(path: Path, cells: Cells, streams: list[tuple[str, ...]] | None = None) -> None:
    """A workbook of one worksheet, and one named `streams` if it binds its own cells."""
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    sheet = book.create_sheet("Sheet1")
    for place, value in cells.items():
        sheet[place] = value
    if streams:
        bindings = book.create_sheet("streams")
        for row in streams:
            bindings.append([value or None for value in row])
    book.properties.created = book.properties.modified = dt.datetime(2026, 1, 1)  # noqa: DTZ001
    book.save(path)


def write_rows(path: Path, rows: Rows) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


# --- the workbooks ----------------------------------------------------------------------

VWAP: Cells = {
    "A1": "input Trades", "A2": "sym", "B2": "price", "C2": "vol", "G1": "calculation",
    "G2": "price*vol", "A3": "ACME", "B3": 196.73, "C3": 736, "G3": "=B3*C3",
    "C5": "vol window", "G5": "price*vol window", "C6": "=WINDOW(C3,300)",
    "G6": "=WINDOW(G3,300)", "C8": "sum", "G8": "sum", "C9": "=SUM(C6)", "G9": "=SUM(G6)",
    "A10": "input Quotes", "E10": "output Bargains", "A11": "sym", "B11": "price",
    "C11": "seller", "E11": "sym", "F11": "seller", "G11": "vwap", "H11": "isBargain",
    "A12": "ACME", "B12": 196.96, "C12": "Alice", "E12": "=A12", "F12": "=C12",
    "G12": "=G9/C9", "H12": "=B12<G12",
}  # fmt: skip

VWAP_STREAMS = [
    ("stream", "direction", "attribute", "cell", "type", "role"),
    ("Trades", "input", "ts", "", "", "time"),
    ("Trades", "input", "sym", "A3", "text", "partition"),
    ("Trades", "input", "price", "B3", "number", ""),
    ("Trades", "input", "vol", "C3", "number", ""),
    ("Quotes", "input", "ts", "", "", "time"),
    ("Quotes", "input", "sym", "A12", "text", "partition"),
    ("Quotes", "input", "price", "B12", "number", ""),
    ("Quotes", "input", "seller", "C12", "text", ""),
    ("Bargains", "output", "sym", "E12", "", ""),
    ("Bargains", "output", "seller", "F12", "", ""),
    ("Bargains", "output", "vwap", "G12", "", ""),
    ("Bargains", "output", "bargain", "H12", "", ""),
]

LANGUAGES: Cells = {
    "A1": "input Tweets", "A2": "lang", "B2": "text", "A3": "en", "B3": "hello",
    "D2": "length", "D3": "=LEN(B3)", "D5": "last 5 minutes", "D6": "=WINDOW(D3,300)",
    "E1": "output Averages", "E2": "lang", "F2": "average", "G2": "tweets",
    "E3": "=A3", "F3": "=AVERAGE(D6)", "G3": "=COUNT(D6)",
}  # fmt: skip

VERBOSE: Cells = {
    "A1": "input Averages", "A2": "lang", "B2": "average", "A3": "en", "B3": 12.5,
    "A5": "last 5 minutes", "A6": "=WINDOW(A3,300)", "B6": "=WINDOW(B3,300)",
    "D1": "output Top", "D2": "rank", "E2": "average", "F2": "lang",
    "D3": 1, "D4": 2, "D5": 3,
    "E3": "=LARGE($B$6,D3)", "E4": "=IFERROR(LARGE($B$6,D4),0)", "E5": "=IFERROR(LARGE($B$6,D5),0)",
    "F3": "=INDEX($A$6,MATCH(E3,$B$6,0))", "F4": '=IFERROR(INDEX($A$6,MATCH(E4,$B$6,0)),"")',
    "F5": '=IFERROR(INDEX($A$6,MATCH(E5,$B$6,0)),"")',
}  # fmt: skip

LINEARROAD: Cells = {
    "A1": "input Cars", "A2": "segment", "B2": "car", "C2": "speed", "A3": 7, "B3": 1, "C3": 55,
    "E5": "last 30 s", "E6": "=WINDOW(B3,30)", "F6": "=WINDOW(C3,30)", "G6": "=WINDOW(C3,30)",
    "H5": "last 5 min", "H6": "=WINDOW(C3,300)", "I6": "=WINDOW(B3,300)",
    "E8": "cars", "E9": "=COUNT(E6)", "F8": "fastest", "F9": "=MAX(F6)", "G8": "slowest",
    "G9": "=MIN(G6)", "H8": "mean speed", "H9": "=AVERAGE(H6)", "I8": "cars", "I9": "=COUNT(I6)",
    "E11": "accident", "E12": "=AND(F9=0,E9>=2)", "F11": "free", "F12": 4,
    "A11": "output Tolls", "A12": "=A3", "B11": "mean", "B12": "=ROUND(H9,3)", "C11": "toll",
    "C12": "=IF(OR(E12,H9>=40,E9<=F12),0,2*(E9-F12)^2)",
}  # fmt: skip


def history(cell: str, column: str, row: int, count: int) -> Cells:
    """The last values of a cell, one below the other, by PRE."""
    cells: Cells = {f"{column}{row}": f"={cell}"}
    for n in range(1, count):
        cells[f"{column}{row + n}"] = f"=PRE({column}{row + n - 1},{cell},0)"
    return cells


AVERAGE: Cells = {
    "A1": "input Readings", "A2": "value", "A3": 20.5, "C1": "history", "D1": "weight",
    **history("A3", "C", 2, 6), **{f"D{n + 2}": 6 - n for n in range(6)},
    **{f"E{n + 2}": f"=C{n + 2}*D{n + 2}" for n in range(6)},
    "G1": "change", **{f"G{n + 2}": f"=C{n + 2}-C{n + 3}" for n in range(5)},
    "A5": "output Averages", "A6": "weighted", "A7": "=SUM(E2:E7)/SUM(D2:D7)",
    "B6": "trend", "B7": "=AVERAGE(G2:G6)", "A8": "plain", "A9": "=AVERAGE(C2:C7)",
}  # fmt: skip

KALMAN: Cells = {
    "A1": "input Measurements", "A2": "target", "B2": "position", "A3": 1, "B3": 4.2,
    "D1": "process noise", "D2": 0.01, "E1": "measurement noise", "E2": 0.25,
    "D4": "predicted", "D5": "=PRE(D11,B3,0)", "E4": "uncertainty", "E5": "=PRE(E11,B3,1)+D2",
    "D7": "gain", "D8": "=E5/(E5+E2)", "E7": "innovation", "E8": "=B3-D5",
    "D10": "estimate", "D11": "=D5+D8*E8", "E10": "uncertainty", "E11": "=(1-D8)*E5",
    "A10": "output Estimates", "A11": "=A3",
}  # fmt: skip

TAX: Cells = {
    "A1": "input People", "A2": "name", "B2": "income", "A3": "Ann", "B3": 52000,
    "D1": "above", "E1": "base", "F1": "rate",
    "D2": 0, "E2": 0, "F2": 0.1, "D3": 9525, "E3": 952.5, "F3": 0.12, "D4": 38700, "E4": 4453.5,
    "F4": 0.22, "D5": 82500, "E5": 14089.5, "F5": 0.24, "D6": 157500, "E6": 32089.5, "F6": 0.32,
    "D7": 200000, "E7": 45689.5, "F7": 0.35, "D8": 500000, "E8": 150689.5, "F8": 0.37,
    "A5": "taxable", "A6": "=MAX(0,B3-12000)", "B5": "bracket", "B6": "=MATCH(A6,D2:D8)",
    "A8": "output Taxes", "A9": "=A3",
    "B9": "=ROUND(VLOOKUP(A6,D2:F8,2)+(A6-VLOOKUP(A6,D2:F8,1))*VLOOKUP(A6,D2:F8,3),2)",
    "C9": "=IF(B3>0,ROUND(B9/B3,4),0)", "D9": "=B3-B9",
}  # fmt: skip

PONG: Cells = {
    "A1": "input Balls", "A2": "game", "B2": "x", "C2": "y", "D2": "vx", "E2": "vy",
    "A3": 1, "B3": 10, "C3": 40, "D3": 3, "E3": -2,
    "G1": "field", "G2": 100, "H2": 60, "I1": "paddle", "I2": 12,
    "A5": "steps to the wall", "A6": "=IF(D3>0,(G2-B3)/D3,IF(D3<0,-B3/D3,0))",
    "B5": "unfolded", "B6": "=C3+E3*A6", "C5": "bounces", "C6": "=INT(B6/H2)",
    "D5": "rest", "D6": "=B6-C6*H2", "E5": "hits at", "E6": "=IF(MOD(C6,2)=0,D6,H2-D6)",
    "A8": "paddle now", "A9": "=PRE(C9,A3,30)", "B8": "way", "B9": "=E6-A9",
    "C8": "moves to", "C9": "=A9+IF(ABS(B9)<=1.5*A6,B9,SIGN(B9)*1.5*A6)",
    "D8": "in the field", "D9": "=MIN(MAX(C9,I2/2),H2-I2/2)",
    "A11": "output Moves", "A12": "=A3", "B12": "=ROUND(D9,4)", "C12": "=ABS(E6-D9)<=I2/2",
    "D12": "=PRE(D12,A3,0)+IF(C12,1,0)",
}  # fmt: skip

FORECAST: Cells = {
    "A1": "input Weather", "A2": "location", "B2": "temperature", "A3": "Oslo", "B3": 4.5,
    "D1": "x", **{f"D{n + 2}": -n for n in range(6)}, "E1": "y", **history("B3", "E", 2, 6),
    **{f"F{n + 2}": f"=D{n + 2}*E{n + 2}" for n in range(6)},
    **{f"G{n + 2}": f"=D{n + 2}^2" for n in range(6)},
    "D9": "=SUM(D2:D7)", "E9": "=SUM(E2:E7)", "F9": "=SUM(F2:F7)", "G9": "=SUM(G2:G7)",
    "D11": "slope", "D12": "=(6*F9-D9*E9)/(6*G9-D9^2)", "E11": "intercept",
    "E12": "=(E9-D12*D9)/6", "A5": "output Forecasts", "A6": "=A3",
    "B6": "=ROUND(E12+D12,6)", "C6": "=ROUND(E12+3*D12,6)", "D14": "rising", "D15": "=D12>0",
}  # fmt: skip


def mandelbrot() -> Cells:
    """Ninety-eight steps of four cells, and eight around them: 400 cells."""
    cells: Cells = {"A1": "input Pixels", "A2": -0.5, "B2": 0.25, "E2": 4,
                    "A3": "=A2", "B3": "=B2", "C3": "=A3*A3+B3*B3", "D3": 0}  # fmt: skip
    for row in range(4, 102):
        above = row - 1
        cells[f"A{row}"] = f"=IF(C{above}>$E$2,A{above},A{above}*A{above}-B{above}*B{above}+$A$2)"
        cells[f"B{row}"] = f"=IF(C{above}>$E$2,B{above},2*A{above}*B{above}+$B$2)"
        cells[f"C{row}"] = f"=IF(C{above}>$E$2,C{above},A{row}*A{row}+B{row}*B{row})"
        cells[f"D{row}"] = f"=IF(C{above}>$E$2,D{above},D{above}+1)"
    cells |= {"G1": "output Colours", "G2": "=MOD(D101*5,256)", "H2": "=MOD(D101*7,256)",
              "I2": "=IF(C101>E2,MOD(D101*11,256),0)"}  # fmt: skip
    return cells


# --- their inputs -----------------------------------------------------------------------


def vwap_rows(random_: random.Random) -> dict[str, Rows]:
    trades = [
        {"ts": n * 9 * SECOND, "sym": random_.choice(["ACME", "IBM"]),
         "price": round(random_.uniform(190, 200), 2), "vol": random_.randint(1, 1000)}
        for n in range(60)
    ]  # fmt: skip
    quotes = [
        {"ts": n * 31 * SECOND + 1, "sym": random_.choice(["ACME", "IBM"]),
         "price": round(random_.uniform(190, 200), 2),
         "seller": random_.choice(["Alice", "Bob", "Cleo"])}
        for n in range(18)
    ]  # fmt: skip
    return {"Trades": trades, "Quotes": quotes}


def twitter_rows(random_: random.Random) -> dict[str, Rows]:
    words = ["stream", "sheet", "window", "of", "the", "a", "tick", "cell"]
    return {
        "Tweets": [
            {"ts": n * 11 * SECOND, "lang": random_.choice(["en", "de", "fr", "it"]),
             "text": " ".join(random_.choices(words, k=random_.randint(1, 9)))}
            for n in range(50)
        ]
    }  # fmt: skip


def linearroad_rows(random_: random.Random) -> dict[str, Rows]:
    return {
        "Cars": [
            {"ts": n * 2 * SECOND, "segment": random_.randint(1, 2), "car": random_.randint(1, 20),
             "speed": random_.choice([0, 20, 30, 45, 60])}
            for n in range(60)
        ]
    }  # fmt: skip


def average_rows(random_: random.Random) -> dict[str, Rows]:
    return {
        "Readings": [{"ts": n * SECOND, "value": random_.randint(0, 40) / 2} for n in range(30)]
    }


def kalman_rows(random_: random.Random) -> dict[str, Rows]:
    return {
        "Measurements": [
            {"ts": n * SECOND, "target": n % 2 + 1,
             "position": round(n / 10 + random_.gauss(0, 0.5), 3)}
            for n in range(40)
        ]
    }  # fmt: skip


def tax_rows(random_: random.Random) -> dict[str, Rows]:
    incomes = [0, 12000, 21525, 50700, 94500, 169500, 212000, 600000]
    names = ["Ann", "Ben", "Cem", "Dan", "Eva", "Fay", "Gus", "Hal"]
    return {
        "People": [
            {"ts": n * SECOND, "name": name, "income": income}
            for n, (name, income) in enumerate(zip(names, incomes, strict=True))
        ]
    }


def pong_rows(random_: random.Random) -> dict[str, Rows]:
    return {
        "Balls": [
            {"ts": n * SECOND, "game": n % 3, "x": random_.randint(0, 100),
             "y": random_.randint(0, 60), "vx": random_.choice([-4, -2, 1, 3]),
             "vy": random_.choice([-3, -1, 0, 2])}
            for n in range(30)
        ]
    }  # fmt: skip


def forecast_rows(random_: random.Random) -> dict[str, Rows]:
    return {
        "Weather": [
            {"ts": n * 3600 * SECOND, "location": random_.choice(["Oslo", "Rome"]),
             "temperature": round(10 + 8 * math.sin(n / 4), 1)}
            for n in range(30)
        ]
    }  # fmt: skip


def mandelbrot_rows(random_: random.Random) -> dict[str, Rows]:
    points = [(x / 2 - 2, y / 2 - 1) for y in range(5) for x in range(6)]
    return {"Pixels": [{"ts": n, "re": x, "im": y} for n, (x, y) in enumerate(points)]}


EXAMPLES: dict[str, tuple[dict[str, Cells], Any]] = {
    "vwap": ({"vwap": VWAP}, vwap_rows),
    "twitter": ({"languages": LANGUAGES, "verbose": VERBOSE}, twitter_rows),
    "linearroad": ({"linearroad": LINEARROAD}, linearroad_rows),
    "average": ({"average": AVERAGE}, average_rows),
    "kalman": ({"kalman": KALMAN}, kalman_rows),
    "tax": ({"tax": TAX}, tax_rows),
    "pong": ({"pong": PONG}, pong_rows),
    "forecast": ({"forecast": FORECAST}, forecast_rows),
    "mandelbrot": ({"mandelbrot": mandelbrot()}, mandelbrot_rows),
}


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, (books, rows) in EXAMPLES.items():
        folder = root / name
        folder.mkdir(exist_ok=True, parents=True)
        for book, cells in books.items():
            streams = VWAP_STREAMS if book == "vwap" else None
            write_workbook(folder / f"{book}.xlsx", cells, streams)
        for stream, found in rows(random.Random(name)).items():
            write_rows(folder / f"{stream}.csv", found)


if __name__ == "__main__":
    main()
