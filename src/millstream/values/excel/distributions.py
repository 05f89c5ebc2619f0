"""Probability distributions, and the special functions under them."""

from __future__ import annotations

import math

from millstream.values.excel.arrays import Operand
from millstream.values.excel.functions_financial import raised
from millstream.values.excel.functions_statistics import mean, variance
from millstream.values.excel.gather import numbers
from millstream.values.excel.incomplete import (
    beta_tails,
    binomial_density,
    gamma_tails,
    log_gamma,
    poisson_density,
)
from millstream.values.excel.normal import (
    beside_middle,
    between_0_and_1,
    confidence,
    density,
    log_normal,
    log_normal_inverse,
    normal,
    normal_inverse,
    standard,
    standard_inverse,
    standard_or_density,
)
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import NUM, Raised, fail, fail_if, finite

#: What grows with a number: shares of distributions, falling ones with the other sign.
_STUDENT, _CHI, _CHI_RIGHT, _F, _F_RIGHT, _GAMMA, _BETA = range(7)


def _share(kind: int, x: float, a: float, b: float) -> float:
    if kind == _STUDENT:
        return -t_right(x, a)
    if kind == _CHI:
        return chi_left(max(x, 0.0), a)
    if kind == _CHI_RIGHT:
        return -chi_right(x, a)
    if kind == _F:
        return f_left(max(x, 0.0), a, b)
    if kind == _F_RIGHT:
        return -f_right(x, a, b)
    return gamma_tails(a, max(x, 0.0))[0] if kind == _GAMMA else beta_share(a, b, x)


#: A search ends where both sides are so near to each other, as a share.
_NEAR = 2.0**-52


def _inverted(kind: int, p: float, high: float, a: float, b: float) -> float:
    """Where a share reaches p: between two numbers, by a curve through three (Chandrupatla)."""
    low = 0.0
    while _share(kind, high, a, b) < p and high < 1e300:
        high = high * 2 + 1
    while _share(kind, low, a, b) > p and low > -1e300:
        low = low * 2 - 1
    x, other, part = low, high, 0.5
    over, over_other = _share(kind, x, a, b) - p, _share(kind, other, a, b) - p
    for _ in range(400):
        if over == 0 or over_other == 0:
            break
        between = x + part * (other - x)
        over_between = _share(kind, between, a, b) - p
        if (over_between > 0) == (over > 0):
            third, over_third = x, over
        else:
            third, over_third, other, over_other = other, over_other, x, over
        x, over = between, over_between
        nearest = x if abs(over) < abs(over_other) else other
        least = _NEAR * abs(nearest) / abs(other - x) if other != x else 1.0
        if least > 0.5:
            break
        part = _curved(x, over, other, over_other, third, over_third)
        part = min(1 - least, max(least, part))
    return x if abs(over) < abs(over_other) else other


def _curved(x: float, at_x: float, y: float, at_y: float, third: float, at_third: float) -> float:
    """Where between two numbers a curve through three is zero; the middle if it bends too much."""
    if at_third in (at_x, at_y):
        return 0.5
    share, risen = (x - y) / (third - y), (at_x - at_y) / (at_third - at_y)
    if risen * risen >= share or (1 - risen) * (1 - risen) >= 1 - share:
        return 0.5
    first = at_x / (at_y - at_x) * at_third / (at_y - at_third)
    rest = (third - x) / (y - x) * at_x / (at_third - at_x) * at_y / (at_third - at_y)
    return first + rest


def confidence_t(alpha: float, deviation: float, size: float) -> float:
    fail_if(deviation <= 0 or size < 1)
    return t_inverse_two(alpha, size - 1) * deviation / math.sqrt(size // 1.0)


def z_test(operand: Operand, x: float, sigma: float | None = None) -> float:
    values = numbers(operand)
    spread = math.sqrt(variance(values, is_sample=True)) if sigma is None else sigma
    return standard((x - mean(values)) / (spread / math.sqrt(len(values))))


# --- Student, F, chi-square -------------------------------------------------------------


def _degrees(given: float) -> int:
    fail_if(not 1 <= given < 1e10)
    return int(given)


def t_right(x: float, degrees: float) -> float:
    n = _degrees(degrees)
    tail = 0.5 * beta_tails(n / 2, 0.5, n / (n + x * x), x * x / (n + x * x))[0]
    return tail if x > 0 else 1 - tail


def t_left(x: float, degrees: float) -> float:
    return t_right(-x, degrees)


def t_distribution(x: float, degrees: float, is_total: bool) -> float:  # noqa: FBT001
    n = _degrees(degrees)
    if is_total:
        return t_left(x, n)
    front = log_gamma((n + 1) / 2) - log_gamma(n / 2)
    tail = raised(1 + x * x / n, -(n + 1) / 2)
    return finite(math.exp(front) / math.sqrt(n * math.pi) * tail)


def t_old(x: float, degrees: float, tails: float) -> float:
    fail_if(x < 0 or not 1 <= tails < 3)
    return tails // 1.0 * t_right(x, degrees)


def t_two_tails(x: float, degrees: float) -> float:
    return t_old(x, degrees, 2.0)


def t_inverse(p: float, degrees: float) -> float:
    n = _degrees(degrees)
    if between_0_and_1(p) == 0.5:
        return 0.0
    size = _inverted(_STUDENT, -min(p, 1 - p), 10.0, n, 0.0)
    return size if p > 0.5 else -size


def t_inverse_two(p: float, degrees: float) -> float:
    if p == 1:
        return 0.0
    return -t_inverse(between_0_and_1(p) / 2, degrees)


def chi_left(x: float, degrees: float, is_total: bool = True) -> float:  # noqa: FBT001, FBT002
    n = _degrees(degrees)
    fail_if(x < 0)
    return gamma_distribution(x, n / 2, 2.0, is_total) if x or is_total else 0.0


def chi_right(x: float, degrees: float) -> float:
    n = _degrees(degrees)
    return gamma_tails(n / 2, x / 2)[1] if x >= 0 else fail(NUM)


def chi_inverse(p: float, degrees: float) -> float:
    fail_if(not 0 <= p < 1)
    return _inverted(_CHI, p, 10.0, degrees, 0.0)


def chi_inverse_right(p: float, degrees: float) -> float:
    n = _degrees(degrees)
    if p == 1:
        return 0.0
    return _inverted(_CHI_RIGHT, -between_0_and_1(p), 10.0, n, 0.0)


def f_left(x: float, one: float, two: float, is_total: bool = True) -> float:  # noqa: FBT001, FBT002
    a, b = _degrees(one), _degrees(two)
    fail_if(x < 0)
    if is_total:
        return _f_tails(x, a, b)[0]
    if x == 0:
        fail_if(a < 2)
        return 1.0 if a == 2 else 0.0
    log_beta = log_gamma(a / 2) + log_gamma(b / 2) - log_gamma((a + b) / 2)
    log = a / 2 * math.log(a / b) + (a / 2 - 1) * math.log(x) - log_beta
    return math.exp(log - (a + b) / 2 * math.log1p(a * x / b))


def _f_tails(x: float, a: int, b: int) -> tuple[float, float]:
    return beta_tails(a / 2, b / 2, a * x / (a * x + b), b / (a * x + b))


def f_right(x: float, one: float, two: float) -> float:
    a, b = _degrees(one), _degrees(two)
    return _f_tails(x, a, b)[1] if x >= 0 else fail(NUM)


def f_inverse_right(p: float, one: float, two: float) -> float:
    a, b = _degrees(one), _degrees(two)
    if p == 1:
        return 0.0
    return _inverted(_F_RIGHT, -between_0_and_1(p), 10.0, a, b)


def f_inverse(p: float, one: float, two: float) -> float:
    fail_if(not 0 <= p < 1)
    return _inverted(_F, p, 10.0, one, two)


# --- gamma, beta, exponential, Weibull --------------------------------------------------


def gamma_distribution(x: float, alpha: float, beta: float, is_total: bool) -> float:  # noqa: FBT001
    fail_if(x < 0 or alpha <= 0 or beta <= 0)
    if is_total:
        return gamma_tails(alpha, x / beta)[0]
    if x == 0:
        return 1 / beta if alpha == 1 else 0.0
    return poisson_density(alpha, x / beta) * alpha / x


def gamma_inverse(p: float, alpha: float, beta: float) -> float:
    fail_if(not 0 <= p < 1 or alpha <= 0 or beta <= 0)
    return beta * _inverted(_GAMMA, p, 10.0, alpha, 0.0)


def gamma(x: float) -> float:
    try:
        return finite(math.gamma(x))
    except (ValueError, OverflowError):
        raise Raised(NUM) from None


def log_of_gamma(x: float) -> float:
    return math.lgamma(x) if x > 0 else fail(NUM)


def beta_share(a: float, b: float, x: float) -> float:
    return beta_tails(a, b, x, 1 - x)[0]


def beta_total(x: float, a: float, b: float, low: float = 0.0, high: float = 1.0) -> float:
    fail_if(a <= 0 or b <= 0 or not low <= x <= high or low == high)
    return beta_share(a, b, (x - low) / (high - low))


def beta_distribution(
    x: float,
    a: float,
    b: float,
    is_total: bool,  # noqa: FBT001
    low: float = 0.0,
    high: float = 1.0,
) -> float:
    if is_total:
        return beta_total(x, a, b, low, high)
    fail_if(a <= 0 or b <= 0 or not low < x < high)
    share = (x - low) / (high - low)
    if not 0 < share < 1:
        fail(NUM)
    log = log_gamma(a + b) - log_gamma(a) - log_gamma(b)
    log += (a - 1) * math.log(share) + (b - 1) * math.log1p(-share)
    return math.exp(log) / (high - low)


def beta_inverse(p: float, a: float, b: float, low: float = 0.0, high: float = 1.0) -> float:
    fail_if(a <= 0 or b <= 0)
    if p == 1:
        return high
    return low + (high - low) * _inverted(_BETA, between_0_and_1(p), 1.0, a, b)


def exponential(x: float, rate: float, is_total: bool) -> float:  # noqa: FBT001
    fail_if(x < 0 or rate <= 0)
    return -math.expm1(-rate * x) if is_total else rate * math.exp(-rate * x)


def weibull(x: float, alpha: float, beta: float, is_total: bool) -> float:  # noqa: FBT001
    fail_if(x < 0 or alpha <= 0 or beta <= 0)
    power = finite(raised(x / beta, alpha))
    if is_total:
        return -math.expm1(-power)
    return alpha / beta * finite(raised(x / beta, alpha - 1)) * math.exp(-power)


def fisher(x: float) -> float:
    return math.atanh(x) if -1 < x < 1 else fail(NUM)


# --- counting ---------------------------------------------------------------------------


#: Up to this, ways to choose are counted, which is exact.
_COUNTED = 1000


def binomial(successes: float, trials: float, p: float, is_total: bool) -> float:  # noqa: FBT001
    k, n = int(successes), int(trials)
    fail_if(k < 0 or k > n or not 0 <= p <= 1)
    return _binomial_total(k, n, p) if is_total else _binomial(k, n, p)


def _binomial(k: int, n: int, p: float) -> float:
    if p in (0, 1):
        return float(k == (n if p else 0))
    if n < _COUNTED:
        return math.comb(n, k) * p**k * (1 - p) ** (n - k)
    return binomial_density(k, n - k, p, 1 - p)


def _binomial_total(k: int, n: int, p: float) -> float:
    if n < _COUNTED:
        return min(1.0, math.fsum(_binomial(i, n, p) for i in range(k + 1)))
    return _binomial_tails(k, n, p)[0]


def _binomial_tails(k: int, n: int, p: float) -> tuple[float, float]:
    """How likely there are up to k of n, and how likely more."""
    if k < 0:
        return 0.0, 1.0
    if k == n:
        return 1.0, 0.0
    more, up_to = beta_tails(k + 1.0, float(n - k), p, 1 - p)
    return up_to, more


def binomial_range(trials: float, p: float, first: float, last: float | None = None) -> float:
    n, k = int(trials), int(first)
    end = k if last is None else int(last)
    fail_if(n < 0 or not 0 <= p <= 1 or not 0 <= k <= end <= n)
    if end - k < _COUNTED:
        return min(1.0, math.fsum(_binomial(i, n, p) for i in range(k, end + 1)))
    below, above = _binomial_tails(k - 1, n, p)
    up_to, beyond = _binomial_tails(end, n, p)
    # What is small is not lost as the difference of two that are nearly 1.
    return above - beyond if above < below else up_to - below


def binomial_inverse(trials: float, p: float, alpha: float) -> float:
    n = int(trials)
    fail_if(n < 0 or not 0 <= p <= 1 or not 0 < alpha < 1)
    low, high = 0, n
    while low < high:
        middle = (low + high) // 2
        if _binomial_total(middle, n, p) >= alpha:
            high = middle
        else:
            low = middle + 1
    return float(low)


def negative_binomial(failures: float, successes: float, p: float, is_total: bool = False) -> float:  # noqa: FBT001, FBT002
    f, s = int(failures), int(successes)
    fail_if(f < 0 or s < 1 or not 0 <= p <= 1)
    if is_total:
        return beta_share(s, f + 1, p)
    if p in (0, 1):
        return float(p == 1 and f == 0)
    if f + s < _COUNTED:
        return math.comb(f + s - 1, s - 1) * p**s * (1 - p) ** f
    return binomial_density(s, f, p, 1 - p) * s / (f + s)


def hypergeometric(
    drawn: float,
    sample: float,
    marked: float,
    size: float,
    is_total: bool = False,  # noqa: FBT001, FBT002
) -> float:
    k, n, m, all_ = int(drawn), int(sample), int(marked), int(size)
    if not 0 <= k <= min(n, m) or k < n + m - all_ or n > all_ or m > all_ or not 0 < all_ < 1e15:
        fail(NUM)
    if all_ < _COUNTED:
        whole = math.comb(all_, n)
        low = k if not is_total else max(0, n + m - all_)
        return sum(math.comb(m, i) * math.comb(all_ - m, n - i) for i in range(low, k + 1)) / whole
    if n == all_:
        return float(is_total or k == m)
    density = _hypergeometric(k, n, m, all_)
    return _hypergeometric_total(k, n, m, all_, density) if is_total else density


def _hypergeometric(k: int, n: int, m: int, all_: int) -> float:
    """How many of n are marked, as binomials of one share: it drops out."""
    if n == 0:
        return 1.0
    p, q = n / all_, (all_ - n) / all_
    marked = binomial_density(k, m - k, p, q)
    others = binomial_density(n - k, all_ - m - n + k, p, q)
    return marked * others / binomial_density(n, all_ - n, p, q)


def _hypergeometric_total(k: int, n: int, m: int, all_: int, density: float) -> float:
    """The sum of the densities up to k, or 1 less those above, from k on while they count."""
    is_below = k * (all_ + 2) < (n + 1) * (m + 1)
    total, term, i = (density if is_below else 0.0), density, k
    while term > total * 1e-17 or not total:
        if is_below:
            term *= i * (all_ - m - n + i) / ((m - i + 1) * (n - i + 1))
            i -= 1
        else:
            term *= (m - i) * (n - i) / ((i + 1) * (all_ - m - n + i + 1))
            i += 1
        if term == 0:
            break
        total += term
    return total if is_below else 1 - total


def poisson(x: float, middle: float, is_total: bool) -> float:  # noqa: FBT001
    fail_if(x <= -1 or middle < 0)
    k = math.copysign(abs(x) // 1.0, x)
    return gamma_tails(k + 1.0, middle)[1] if is_total else poisson_density(k, middle)


DISTRIBUTIONS: Family = {
    "BETA.DIST": spec("n n n b n? n?", beta_distribution),
    "BETA.INV": spec("n n n n? n?", beta_inverse),
    "BETADIST": spec("n n n n? n?", beta_total),
    "BETAINV": spec("n n n n? n?", beta_inverse),
    "BINOM.DIST": spec("n n n b", binomial),
    "BINOM.DIST.RANGE": spec("n n n n?", binomial_range),
    "BINOM.INV": spec("n n n", binomial_inverse),
    "BINOMDIST": spec("n n n b", binomial),
    "CHIDIST": spec("n n", chi_right),
    "CHIINV": spec("n n", chi_inverse_right),
    "CHISQ.DIST": spec("n n b", chi_left),
    "CHISQ.DIST.RT": spec("n n", chi_right),
    "CHISQ.INV": spec("n n", chi_inverse),
    "CHISQ.INV.RT": spec("n n", chi_inverse_right),
    "CONFIDENCE": spec("n n n", confidence),
    "CONFIDENCE.NORM": spec("n n n", confidence),
    "CONFIDENCE.T": spec("n n n", confidence_t),
    "CRITBINOM": spec("n n n", binomial_inverse),
    "EXPON.DIST": spec("n n b", exponential),
    "EXPONDIST": spec("n n b", exponential),
    "F.DIST": spec("n n n b", f_left),
    "F.DIST.RT": spec("n n n", f_right),
    "F.INV": spec("n n n", f_inverse),
    "F.INV.RT": spec("n n n", f_inverse_right),
    "FDIST": spec("n n n", f_right),
    "FINV": spec("n n n", f_inverse_right),
    "FISHER": spec("n", fisher),
    "FISHERINV": spec("n", math.tanh),
    "GAMMA": spec("n", gamma),
    "GAMMA.DIST": spec("n n n b", gamma_distribution),
    "GAMMA.INV": spec("n n n", gamma_inverse),
    "GAMMADIST": spec("n n n b", gamma_distribution),
    "GAMMAINV": spec("n n n", gamma_inverse),
    "GAMMALN": spec("n", log_of_gamma),
    "GAMMALN.PRECISE": spec("n", log_of_gamma),
    "GAUSS": spec("n", beside_middle),
    "HYPGEOM.DIST": spec("n n n n b", hypergeometric),
    "HYPGEOMDIST": spec("n n n n", hypergeometric),
    "LOGINV": spec("n n n", log_normal_inverse),
    "LOGNORM.DIST": spec("n n n b", log_normal),
    "LOGNORM.INV": spec("n n n", log_normal_inverse),
    "LOGNORMDIST": spec("n n n", log_normal),
    "NEGBINOM.DIST": spec("n n n b", negative_binomial),
    "NEGBINOMDIST": spec("n n n", negative_binomial),
    "NORM.DIST": spec("n n n b", normal),
    "NORM.INV": spec("n n n", normal_inverse),
    "NORM.S.DIST": spec("n b", standard_or_density),
    "NORM.S.INV": spec("n", standard_inverse),
    "NORMDIST": spec("n n n b", normal),
    "NORMINV": spec("n n n", normal_inverse),
    "NORMSDIST": spec("n", standard),
    "NORMSINV": spec("n", standard_inverse),
    "PHI": spec("n", density),
    "POISSON": spec("n n b", poisson),
    "POISSON.DIST": spec("n n b", poisson),
    "T.DIST": spec("n n b", t_distribution),
    "T.DIST.2T": spec("n n", t_two_tails),
    "T.DIST.RT": spec("n n", t_right),
    "T.INV": spec("n n", t_inverse),
    "T.INV.2T": spec("n n", t_inverse_two),
    "TDIST": spec("n n n", t_old),
    "TINV": spec("n n", t_inverse_two),
    "WEIBULL": spec("n n n b", weibull),
    "WEIBULL.DIST": spec("n n n b", weibull),
    "Z.TEST": spec("r n n?", z_test),
    "ZTEST": spec("r n n?", z_test),
}
