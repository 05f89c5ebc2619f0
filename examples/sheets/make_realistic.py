"""Writes three workbooks as they are met at work, with tables beside them, and small inputs.

    python examples/sheets/make_realistic.py [FOLDER]

An order book (texts looked up in 1,000 instruments, top of the book, imbalance), sensors
(deviations from a moving average, hysteresis, alarms as messages) and bills over three worksheets
(tariffs of 1,000 meters, rates by weekday, totals by month). The expected outputs beside them
were made by the reference engine.
"""

from __future__ import annotations

import csv
import datetime as dt
import random
import sys
from pathlib import Path
from typing import Any

import openpyxl

Cells = dict[str, Any]
Rows = list[dict[str, Any]]
SECOND = 1_000_000


def instruments() -> Cells:
    cells: Cells = {"A1": "symbol", "B1": "name", "C1": "tick"}
    for n in range(1, 1001):
        cells |= {f"A{n + 1}": f"S{n:04d}", f"B{n + 1}": f"Company {n}",
                  f"C{n + 1}": (0.01, 0.05, 0.5)[n % 3]}  # fmt: skip
    return cells


ORDERS: Cells = {
    "A1": "input Orders", "A2": "symbol", "B2": "side", "C2": "price", "D2": "quantity",
    "A3": "S0001", "B3": "bid", "C3": 10.5, "D3": 100,
    "A5": "tick", "A6": "=IFERROR(XLOOKUP(A3,Instruments!A2:A1001,Instruments!C2:C1001),0.01)",
    "B5": "name",
    "B6": '=IFERROR(INDEX(Instruments!B2:B1001,MATCH(A3,Instruments!A2:A1001,0)),"unlisted")',
    "C5": "rounded", "C6": "=ROUND(C3/A6,0)*A6",
    "A8": "is bid", "A9": '=B3="bid"', "B8": "is ask", "B9": '=B3="ask"',
    "A11": "bids", "A12": "=WINDOWROWS(SELECT(C6,A9),20)", "B11": "asks",
    "B12": "=WINDOWROWS(SELECT(C6,B9),20)",
    "C11": "bid quantities", "C12": "=WINDOWROWS(SELECT(D3,A9),20)", "D11": "ask quantities",
    "D12": "=WINDOWROWS(SELECT(D3,B9),20)",
    "A14": "best bid", "A15": "=IF(COUNT(A12)=0,0,MAX(A12))", "B14": "best ask",
    "B15": "=IF(COUNT(B12)=0,0,MIN(B12))",
    "C14": "spread in ticks", "C15": "=ROUND((B15-A15)/A6,0)",
    "D14": "imbalance", "D15": "=IFERROR((SUM(C12)-SUM(D12))/(SUM(C12)+SUM(D12)),0)",
    "E14": "pressure", "E15": '=IF(D15>0.5,"buying",IF(D15<-0.5,"selling","balanced"))',
    "F14": "turned", "F15": '=IF(E15<>PRE(E15,A3,"balanced"),1,0)',
}  # fmt: skip

SENSORS: Cells = {
    "A1": "input Readings", "A2": "device", "B2": "value", "A3": "D01", "B3": 20.5,
    "A5": "last values", "A6": "=WINDOWROWS(B3,30)", "B5": "average", "B6": "=AVERAGE(A6)",
    "C5": "deviation", "C6": "=IFERROR(STDEV(A6),0)",
    "D5": "score", "D6": "=IF(C6=0,0,(B3-B6)/C6)",
    "A8": "state before", "A9": '=PRE(B9,A3,"OK")',
    "B8": "state", "B9": '=IF(D6>2.5,"HIGH",IF(D6<-2.5,"LOW",IF(ABS(D6)<1.5,"OK",A9)))',
    "A11": "alarm", "A12": "=B9<>A9",
    "B11": "message",
    "B12": '=IF(A12,A3&": "&A9&" -> "&B9&", "&TEXT(B3,"0.00")&" (score "&TEXT(D6,"0.0")&")","")',
    "C11": "alarms so far", "C12": "=PRE(C12,A3,0)+IF(A12,1,0)",
}  # fmt: skip


def tariffs() -> Cells:
    cells: Cells = {"A1": "meter", "B1": "region", "C1": "plan", "D1": "price"}
    for n in range(1, 1001):
        cells |= {f"A{n + 1}": f"M{n:04d}", f"B{n + 1}": ("north", "south", "islands")[n % 3],
                  f"C{n + 1}": n % 4 + 1, f"D{n + 1}": round(0.11 + n % 37 / 500, 4)}  # fmt: skip
    return cells


CALCULATION: Cells = {
    "A1": "price", "A2": "=XLOOKUP(Invoice!A3,Tariffs!A2:A1001,Tariffs!D2:D1001,0.3)",
    "B1": "plan", "B2": "=IFERROR(VLOOKUP(Invoice!A3,Tariffs!A2:D1001,3,FALSE),1)",
    "C1": "region", "C2": '=XLOOKUP(Invoice!A3,Tariffs!A2:A1001,Tariffs!B2:B1001,"north")',
    "D1": "weekday", "D2": "=WEEKDAY(Invoice!C3,2)",
    "E1": "night", "E2": "=OR(HOUR(Invoice!C3)>=22,HOUR(Invoice!C3)<6)",
    "F1": "factor", "F2": "=CHOOSE(B2,1,IF(E2,0.7,1.1),IF(D2>5,0.8,1.05),0.95)",
    "G1": "tax", "G2": '=SWITCH(C2,"north",0.19,"south",0.16,"islands",0.07)',
}  # fmt: skip
INVOICE: Cells = {
    "A1": "input Usage", "A2": "meter", "B2": "kilowatt hours", "C2": "read at",
    "A3": "M0001", "B3": 1.5, "C3": dt.datetime(2026, 1, 31, 22, 15),  # noqa: DTZ001
    "A5": "net", "A6": "=ROUND(B3*Calculation!A2*Calculation!F2,4)",
    "B5": "gross", "B6": "=ROUND(A6*(1+Calculation!G2),4)",
    "C5": "month", "C6": "=YEAR(C3)*100+MONTH(C3)",
    "D5": "due", "D6": "=EOMONTH(C3,0)+14",
    "A8": "total of the month", "A9": "=IF(PRE(C6,A3,0)=C6,PRE(A9,A3,0),0)+B6",
    "B8": "bill", "B9": '=A3&"-"&C6', "C8": "region", "C9": "=UPPER(Calculation!C2)",
    "D8": "due on", "D9": '=TEXT(D6,"yyyy-mm-dd")',
}  # fmt: skip

BOOKS: dict[str, dict[str, Cells]] = {
    "orderbook": {"Book": ORDERS, "Instruments": instruments()},
    "sensors": {"Sensors": SENSORS},
    "billing": {"Invoice": INVOICE, "Calculation": CALCULATION, "Tariffs": tariffs()},
}


def order_rows(random_: random.Random) -> Rows:
    return [
        {"ts": n * SECOND, "symbol": random_.choice(["S0001", "S0007", "S1000", "XXXX"]),
         "side": random_.choice(["bid", "ask", "Bid"]),
         "price": round(random_.uniform(9, 11), 3), "quantity": random_.randint(1, 500)}
        for n in range(80)
    ]  # fmt: skip


def reading_rows(random_: random.Random) -> Rows:
    return [
        {"ts": n * SECOND, "device": random_.choice(["D01", "D02"]),
         "value": round(random_.gauss(20, 1) + (9 if n % 23 == 0 else 0), 2)}
        for n in range(120)
    ]  # fmt: skip


def usage_rows(random_: random.Random) -> Rows:
    start = dt.datetime(2026, 1, 28, 5, 30, tzinfo=dt.UTC)
    return [
        {"ts": n * SECOND, "meter": random_.choice(["M0001", "M0002", "M0999", "M7777"]),
         "used": round(random_.uniform(0, 4), 3),
         "at": (start + dt.timedelta(hours=3 * n)).strftime("%Y-%m-%dT%H:%M:%SZ")}
        for n in range(80)
    ]  # fmt: skip


ROWS = {
    "orderbook": ("Orders", order_rows),
    "sensors": ("Readings", reading_rows),
    "billing": ("Usage", usage_rows),
}


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for name, sheets in BOOKS.items():
        folder = root / name
        folder.mkdir(exist_ok=True, parents=True)
        book = openpyxl.Workbook()
        book.remove(book.worksheets[0])
        for title, cells in sheets.items():
            sheet = book.create_sheet(title)
            for place, value in cells.items():
                sheet[place] = value
        book.properties.created = book.properties.modified = dt.datetime(2026, 1, 1)  # noqa: DTZ001
        book.save(folder / f"{name}.xlsx")
        stream, make = ROWS[name]
        rows = make(random.Random(name))
        with (folder / f"{stream}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
