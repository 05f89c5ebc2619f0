"""Functions of numbers of which the definition itself is compiled, as statements.

Where a definition has no value it raises, and all that is known in the loop is that it did: then
the loop asks for the part, as for one that has no compiled form, and is told which error it is.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from millstream.kernels.sheets.formulas_base import NUMBER, FormulasBase
from millstream.kernels.sheets.operands import FIRST_ERROR, UNTOLD, Operand, refuse_if
from millstream.values.excel.registry import SCALAR_KINDS
from millstream.values.excel.syntax import Call, Literal, Node
from millstream.values.excel.table import FUNCTIONS

_NUM = FIRST_ERROR + 5
_MONEY = {
    "CUMIPMT": "total_interest", "CUMPRINC": "total_principal", "DB": "fixed_declining",
    "DDB": "double_declining", "DOLLARDE": "dollar_decimal", "DOLLARFR": "dollar_fraction",
    "EFFECT": "effective", "FV": "future_value", "IPMT": "interest", "IRR": "rate_of_flows",
    "ISPMT": "interest_paid", "NOMINAL": "nominal_rate", "NPER": "periods",
    "NPV": "present_worth", "PDURATION": "duration", "PMT": "payment",
    "PPMT": "principal", "PV": "present_value", "RATE": "rate", "RRI": "equivalent_rate",
    "SLN": "straight_line", "SYD": "sum_of_years", "VDB": "variable_declining",
}  # fmt: skip
_STATISTICS = {
    "BETA.DIST": "beta_distribution", "BETA.INV": "beta_inverse", "BETADIST": "beta_total",
    "BETAINV": "beta_inverse", "CHIDIST": "chi_right", "CHIINV": "chi_inverse_right",
    "CHISQ.DIST": "chi_left", "CHISQ.DIST.RT": "chi_right", "CHISQ.INV": "chi_inverse",
    "CHISQ.INV.RT": "chi_inverse_right", "CONFIDENCE": "confidence",
    "CONFIDENCE.NORM": "confidence", "CONFIDENCE.T": "confidence_t", "EXPON.DIST": "exponential",
    "EXPONDIST": "exponential", "F.DIST": "f_left", "F.DIST.RT": "f_right", "F.INV": "f_inverse",
    "F.INV.RT": "f_inverse_right", "FDIST": "f_right", "FINV": "f_inverse_right",
    "FISHER": "fisher", "GAMMA.DIST": "gamma_distribution", "GAMMA.INV": "gamma_inverse",
    "GAMMADIST": "gamma_distribution", "GAMMAINV": "gamma_inverse", "GAUSS": "beside_middle",
    "LOGINV": "log_normal_inverse", "LOGNORM.DIST": "log_normal",
    "LOGNORM.INV": "log_normal_inverse", "LOGNORMDIST": "log_normal", "NORM.DIST": "normal_share",
    "NORM.INV": "normal_inverse", "NORM.S.DIST": "standard_or_density",
    "NORM.S.INV": "standard_inverse", "NORMDIST": "normal_share", "NORMINV": "normal_inverse",
    "NORMSDIST": "standard", "NORMSINV": "standard_inverse", "PHI": "density",
    "POISSON": "poisson", "POISSON.DIST": "poisson", "T.DIST": "t_distribution",
    "T.DIST.2T": "t_two_tails", "T.DIST.RT": "t_right", "T.INV": "t_inverse",
    "T.INV.2T": "t_inverse_two", "TDIST": "t_old", "TINV": "t_inverse_two",
    "WEIBULL": "weibull", "WEIBULL.DIST": "weibull",
}  # fmt: skip
#: They have no other error than #NUM!, and to look for it again would take long.
_ONLY_NUM = frozenset({"IRR", "RATE"})
#: Where definitions are compiled, and those of which functions.
_HOMES = {
    "millstream.kernels.sheets.defined_money": _MONEY,
    "millstream.kernels.sheets.defined_statistics": _STATISTICS,
}


@dataclass(frozen=True)
class Defined:
    """A compiled definition: the kinds of what it takes, and what stands for the last ones."""

    name: str
    home: str
    #: The function of a loop that catches what the definition raises.
    caught: str
    kinds: tuple[str, ...]
    defaults: tuple[float | bool, ...]
    #: Does it also take numbers that were gathered, and how many they are?
    takes_numbers: bool = False
    #: The status where there is no value.
    without_value: int = UNTOLD


@cache
def defined_form(function: str) -> Defined | None:
    """The compiled definition of a function, if it has one."""
    for home, names in _HOMES.items():
        if function in names:
            spec = FUNCTIONS[function]
            parameters = list(inspect.signature(spec.call).parameters.values())
            defaults = tuple(p.default for p in parameters[spec.least : len(spec.kinds)])
            scalars = tuple(kind for kind in spec.kinds if kind in SCALAR_KINDS)
            caught = f"caught_{function.replace('.', '_')}"
            has_more = len(scalars) < len(spec.kinds)
            status = _NUM if function in _ONLY_NUM else UNTOLD
            return Defined(names[function], home, caught, scalars, defaults, has_more, status)
    return None


DEFINED = frozenset(function for names in _HOMES.values() for function in names)


class Definitions(FormulasBase):
    """The functions whose definition is compiled."""

    def defined(self, function: str, compiled: Defined, arguments: tuple[Node, ...]) -> Operand:
        left_out = len(compiled.kinds) - len(arguments)
        refuse_if(not 0 <= left_out <= len(compiled.defaults), f"{function} of so many values")
        is_date = "d" in compiled.kinds
        refuse_if(is_date and self.around.uses_1904, f"{function} in the 1904 system")
        given = [
            self._given(kind, node) for kind, node in zip(compiled.kinds, arguments, strict=False)
        ]
        given += [(repr(d), "0") for d in compiled.defaults[len(compiled.defaults) - left_out :]]
        parts = ", ".join(part for pair in given for part in pair)
        self.lines.used.add(compiled.caught)
        value, status = self.lines.made(f"{compiled.caught}({parts})")
        return self.told(Operand(NUMBER, value, status, may_be_empty=False), function, arguments)

    def _given(self, kind: str, node: Node) -> tuple[str, str]:
        operand = self.operand(node)
        if kind != "b":
            operand = self.number(operand)
            return operand.value, operand.status
        if isinstance(node, Literal) and node.value is None:
            return "False", "0"
        operand = self.truth(operand)
        return f"{operand.value} != 0.0", operand.status

    def told(self, made: Operand, function: str, arguments: tuple[Node, ...]) -> Operand:
        """What is made; if that has no value, which error it is."""
        form = defined_form(function)
        if form is not None and form.without_value != UNTOLD:
            return made
        refuse_if(self.is_array, f"{function} in an array formula")
        site = self.around.called_otherwise(
            Call(function, arguments),
            f"which error it is where {function} has no value",
            is_seldom=True,
        )
        value, status = self.lines.fresh()
        self.lines.add(f"{value}, {status} = {made.value}, {made.status}")
        self.lines.add(f"if {status} == {UNTOLD}:")
        self.lines.depth += 1
        called = self.called_operand(site)
        self.lines.add(f"{value}, {status} = {called.value}, {called.status}")
        self.lines.depth -= 1
        return Operand(NUMBER, value, status, may_be_empty=False)


def catching(used: set[str]) -> tuple[list[str], list[str]]:
    """What a loop imports of definitions, and the functions that catch what they raise."""
    forms = [form for function in sorted(DEFINED) if (form := defined_form(function)) is not None]
    wanted = [form for form in forms if form.caught in used]
    imports = sorted({f"from {form.home} import {form.name}" for form in wanted})
    used -= {form.caught for form in wanted}
    if wanted:
        used.add("first_error")
    return imports, [line for form in wanted for line in _catching(form)]


def _catching(form: Defined) -> Iterator[str]:
    count = len(form.kinds)
    values, statuses = _names("x", count), _names("s", count)
    taken = ", ".join(f"{v}, {s}" for v, s in zip(values, statuses, strict=True))
    worst = "0"
    for status in reversed(statuses):
        worst = f"first_error({status}, {worst})"
    given = list(values)
    if form.takes_numbers:
        taken, worst = f"{taken}, numbers, count, wrong", f"first_error({statuses[0]}, wrong)"
        given += ["numbers", "count"]
    yield "@apart"
    yield f"def {form.caught}({taken}):"
    yield f"    error = {worst}"
    yield "    if error != 0:"
    yield "        return 0.0, np.int64(error)"
    yield "    try:"
    yield f"        value = {form.name}({', '.join(given)}) + 0.0"
    yield "    except Exception:"
    yield f"        return 0.0, np.int64({form.without_value})"
    yield "    if value - value != 0.0:"
    yield f"        return 0.0, np.int64({form.without_value})"
    yield "    return value, np.int64(0)"
    yield ""
    yield ""


def _names(letter: str, count: int) -> Sequence[str]:
    return [f"{letter}{n}" for n in range(count)]
