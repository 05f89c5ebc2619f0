"""Definitions of financial functions, compiled: see `raised`."""

from __future__ import annotations

from millstream.kernels.sheets.raised import defined
from millstream.values.excel import functions_financial as money

dollar_decimal = defined(money.dollar_decimal)
dollar_fraction = defined(money.dollar_fraction)
double_declining = defined(money.double_declining)
duration = defined(money.duration)
effective = defined(money.effective)
equivalent_rate = defined(money.equivalent_rate)
fixed_declining = defined(money.fixed_declining)
future_value = defined(money.future_value)
interest = defined(money.interest)
interest_paid = defined(money.interest_paid)
nominal_rate = defined(money.nominal_rate)
payment = defined(money.payment)
periods = defined(money.periods)
present_value = defined(money.present_value)
present_worth = defined(money.present_worth)
principal = defined(money.principal)
rate = defined(money.rate)
rate_of_flows = defined(money.rate_of_flows)
straight_line = defined(money.straight_line)
sum_of_years = defined(money.sum_of_years)
total_interest = defined(money.total_interest)
total_principal = defined(money.total_principal)
variable_declining = defined(money.variable_declining)
