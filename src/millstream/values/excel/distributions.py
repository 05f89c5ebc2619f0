"""Probability distributions, and the special functions under them."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

from millstream.values.excel.arrays import Operand
from millstream.values.excel.functions_statistics import mean, variance
from millstream.values.excel.gather import numbers
from millstream.values.excel.incomplete import (
    beta_tails,
    binomial_density,
    gamma_tails,
    poisson_density,
)
from millstream.values.excel.registry import Family, spec
from millstream.values.excel.values import NUM, Raised, fail, fail_if, finite

_STANDARD = NormalDist()


def inverted(function: Callable[[float], float], p: float, low: float, high: float) -> float:
    """Where an increasing function reaches p, by halving."""
    while function(high) < p and high < 1e300:
        high = high * 2 + 1
    while function(low) > p and low > -1e300:
        low = low * 2 - 1
    for _ in range(400):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if function(middle) < p:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def falling(function: Callable[[float], float], p: float, low: float, high: float) -> float:
    """Where a decreasing function reaches p."""
    return inverted(lambda x: -function(x), -p, low, high)


def _open(p: float) -> float:
    return p if 0 < p < 1 else fail(NUM)


# --- normal -----------------------------------------------------------------------------


def normal(x: float, middle: float, deviation: float, is_total: bool) -> float:  # noqa: FBT001
    fail_if(deviation <= 0)
    z = (x - middle) / deviation
    return standard(z) if is_total else density(z) / deviation


def standard(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def density(z: float) -> float:
    return math.exp(-z * z / 2) / math.sqrt(2 * math.pi)


def normal_inverse(p: float, middle: float, deviation: float) -> float:
    fail_if(deviation <= 0)
    return middle + deviation * _STANDARD.inv_cdf(_open(p))


def confidence(alpha: float, deviation: float, size: float) -> float:
    fail_if(deviation <= 0 or size < 1)
    return -_STANDARD.inv_cdf(_open(_open(alpha) / 2)) * deviation / math.sqrt(int(size))


def confidence_t(alpha: float, deviation: float, size: float) -> float:
    fail_if(deviation <= 0 or size < 1)
    return t_inverse_two(alpha, size - 1) * deviation / math.sqrt(int(size))


def log_normal(x: float, middle: float, deviation: float, is_total: bool = True) -> float:  # noqa: FBT001, FBT002
    fail_if(x <= 0 or deviation <= 0)
    z = (math.log(x) - middle) / deviation
    return standard(z) if is_total else density(z) / (x * deviation)


def z_test(operand: Operand, x: float, sigma: float | None = None) -> float:
    values = numbers(operand)
    spread = math.sqrt(variance(values, is_sample=True)) if sigma is None else sigma
    return standard((x - mean(values)) / (spread / math.sqrt(len(values))))


# --- Student, F, chi-square -------------------------------------------------------------


def _degrees(given: float) -> int:
    return int(given) if 1 <= given < 1e10 else fail(NUM)


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
    front = math.lgamma((n + 1) / 2) - math.lgamma(n / 2)
    tail = (1 + x * x / n) ** (-(n + 1) / 2)
    return float(math.exp(front) / math.sqrt(n * math.pi) * tail)


def t_old(x: float, degrees: float, tails: float) -> float:
    fail_if(x < 0 or int(tails) not in (1, 2))
    return int(tails) * t_right(x, degrees)


def t_inverse(p: float, degrees: float) -> float:
    n = _degrees(degrees)
    if _open(p) > 0.5:
        return -t_inverse(1 - p, n)
    return -falling(lambda x: t_right(x, n), p, 0.0, 10.0) if p < 0.5 else 0.0


def t_inverse_two(p: float, degrees: float) -> float:
    if p == 1:
        return 0.0
    return -t_inverse(_open(p) / 2, degrees)


def chi_left(x: float, degrees: float, is_total: bool = True) -> float:  # noqa: FBT001, FBT002
    n = _degrees(degrees)
    fail_if(x < 0)
    return gamma_distribution(x, n / 2, 2.0, is_total) if x or is_total else 0.0


def chi_right(x: float, degrees: float) -> float:
    n = _degrees(degrees)
    return gamma_tails(n / 2, x / 2)[1] if x >= 0 else fail(NUM)


def chi_inverse(p: float, degrees: float) -> float:
    fail_if(not 0 <= p < 1)
    return inverted(lambda x: chi_left(max(x, 0.0), degrees), p, 0.0, 10.0)


def chi_inverse_right(p: float, degrees: float) -> float:
    n = _degrees(degrees)
    if p == 1:
        return 0.0
    return falling(lambda x: chi_right(x, n), _open(p), 0.0, 10.0)


def f_left(x: float, one: float, two: float, is_total: bool = True) -> float:  # noqa: FBT001, FBT002
    a, b = _degrees(one), _degrees(two)
    fail_if(x < 0)
    if is_total:
        return _f_tails(x, a, b)[0]
    if x == 0:
        return float(a == 2) if a >= 2 else fail(NUM)
    log_beta = math.lgamma(a / 2) + math.lgamma(b / 2) - math.lgamma((a + b) / 2)
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
    return falling(lambda x: _f_tails(x, a, b)[1], _open(p), 0.0, 10.0)


def f_inverse(p: float, one: float, two: float) -> float:
    fail_if(not 0 <= p < 1)
    return inverted(lambda x: f_left(max(x, 0.0), one, two), p, 0.0, 10.0)


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
    return beta * inverted(lambda x: gamma_tails(alpha, max(x, 0.0))[0], p, 0.0, 10.0)


def gamma(x: float) -> float:
    try:
        return finite(math.gamma(x))
    except (ValueError, OverflowError):
        raise Raised(NUM) from None


def log_gamma(x: float) -> float:
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
    log = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    log += (a - 1) * math.log(share) + (b - 1) * math.log1p(-share)
    return math.exp(log) / (high - low)


def beta_inverse(p: float, a: float, b: float, low: float = 0.0, high: float = 1.0) -> float:
    fail_if(a <= 0 or b <= 0)
    if p == 1:
        return high
    return low + (high - low) * inverted(lambda x: beta_share(a, b, x), _open(p), 0.0, 1.0)


def exponential(x: float, rate: float, is_total: bool) -> float:  # noqa: FBT001
    fail_if(x < 0 or rate <= 0)
    return -math.expm1(-rate * x) if is_total else rate * math.exp(-rate * x)


def weibull(x: float, alpha: float, beta: float, is_total: bool) -> float:  # noqa: FBT001
    fail_if(x < 0 or alpha <= 0 or beta <= 0)
    power = (x / beta) ** alpha
    if is_total:
        return -math.expm1(-power)
    return float(alpha / beta * (x / beta) ** (alpha - 1) * math.exp(-power))


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
    k = int(x)
    fail_if(k < 0 or middle < 0)
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
    "FISHER": spec("n", lambda x: math.atanh(x) if -1 < x < 1 else fail(NUM)),
    "FISHERINV": spec("n", math.tanh),
    "GAMMA": spec("n", gamma),
    "GAMMA.DIST": spec("n n n b", gamma_distribution),
    "GAMMA.INV": spec("n n n", gamma_inverse),
    "GAMMADIST": spec("n n n b", gamma_distribution),
    "GAMMAINV": spec("n n n", gamma_inverse),
    "GAMMALN": spec("n", log_gamma),
    "GAMMALN.PRECISE": spec("n", log_gamma),
    "GAUSS": spec("n", lambda z: standard(z) - 0.5),
    "HYPGEOM.DIST": spec("n n n n b", hypergeometric),
    "HYPGEOMDIST": spec("n n n n", hypergeometric),
    "LOGINV": spec("n n n", lambda p, m, s: math.exp(normal_inverse(p, m, s))),
    "LOGNORM.DIST": spec("n n n b", log_normal),
    "LOGNORM.INV": spec("n n n", lambda p, m, s: math.exp(normal_inverse(p, m, s))),
    "LOGNORMDIST": spec("n n n", log_normal),
    "NEGBINOM.DIST": spec("n n n b", negative_binomial),
    "NEGBINOMDIST": spec("n n n", negative_binomial),
    "NORM.DIST": spec("n n n b", normal),
    "NORM.INV": spec("n n n", normal_inverse),
    "NORM.S.DIST": spec("n b", lambda z, is_total: standard(z) if is_total else density(z)),
    "NORM.S.INV": spec("n", lambda p: normal_inverse(p, 0.0, 1.0)),
    "NORMDIST": spec("n n n b", normal),
    "NORMINV": spec("n n n", normal_inverse),
    "NORMSDIST": spec("n", standard),
    "NORMSINV": spec("n", lambda p: normal_inverse(p, 0.0, 1.0)),
    "PHI": spec("n", density),
    "POISSON": spec("n n b", poisson),
    "POISSON.DIST": spec("n n b", poisson),
    "T.DIST": spec("n n b", t_distribution),
    "T.DIST.2T": spec("n n", lambda x, n: t_old(x, n, 2.0)),
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
