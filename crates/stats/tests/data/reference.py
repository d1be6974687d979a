"""Reference values for the tests of `stats`, by SciPy: python3 reference.py > reference.json

Made with Python 3.11 and SciPy 1.17.1.
"""

import csv
import json
from collections import defaultdict
from math import exp, log, sqrt
from pathlib import Path

import numpy as np
from scipy import stats
from scipy.optimize import brentq

FOLDER = Path(__file__).parent


def sweep():
    runs = defaultdict(list)
    with open(FOLDER / "client-sweep-2008.csv") as file:
        for row in csv.DictReader(file):
            runs[row["kernel"], int(row["clients"])].append(float(row["tps"]))
    return runs


RUNS = sweep()
SAMPLES = [
    RUNS["2.6.25-remote", 1],
    RUNS["2.6.25-remote", 30],
    RUNS["2.6.25", 20],
    RUNS["2.6.25", 1],
    RUNS["2.6.24.4", 10],
    [100.0, 101.0],
    [300.0, 700.0],
    [100.0, 100.0, 101.0, 101.0, 101.0],
    [float(v) for v in np.round(np.random.default_rng(4).lognormal(9, 0.03, 30), 3)],
]
PAIRS = [
    (RUNS["2.6.22.19", 1], RUNS["2.6.24.4", 1]),
    (RUNS["2.6.25", 30], RUNS["2.6.25-remote", 30]),
    (RUNS["2.6.25", 20], RUNS["2.6.26-rc2", 20]),
    ([100.0, 101.0], [100.5, 103.0, 99.0]),
    ([100.0, 100.0, 100.0], [100.0, 101.0, 103.0]),
    (SAMPLES[-1], [v * 1.01 for v in SAMPLES[-1][:20]]),
]
DEALT = PAIRS[:-1] + [
    ([1.0, 2.0, 2.0, 4.0], [2.0, 4.0, 8.0, 8.0, 16.0, 1.0, 2.0]),
    ([10.0, 11.0, 12.0, 13.0], [20.0, 21.0, 22.0, 90.0, 95.0]),
    (SAMPLES[-1][:8], [v * 1.03 for v in SAMPLES[-1][8:17]]),
]


def confidence():
    for sample in SAMPLES:
        y = np.log(sample)
        for level in [0.5, 0.8, 0.95, 0.99, 0.999, 0.999999]:
            low, high = stats.t.interval(level, len(y) - 1, y.mean(), stats.sem(y))
            if high < 100:
                yield {"sample": sample, "level": level, "low": exp(low), "high": exp(high)}


def runs_needed():
    for sample in SAMPLES:
        sd = np.log(sample).std(ddof=1)
        for half_width in [0.1, 0.02, 0.005]:
            n = 3
            while stats.t.ppf(0.975, n - 1) * sd / sqrt(n) > log(1 + half_width) and n < 30_000:
                n += 1
            if n < 30_000:
                yield {"sample": sample, "half_width": half_width, "runs": n}


def welch():
    for a, b in PAIRS:
        result = stats.ttest_ind(np.log(b), np.log(a), equal_var=False)
        intervals = []
        for level in [0.95, 0.99]:
            low, high = result.confidence_interval(level)
            intervals.append({"level": level, "low": exp(low), "high": exp(high)})
        ratio = exp(np.log(b).mean() - np.log(a).mean())
        yield {"a": a, "b": b, "ratio": ratio, "df": result.df, "p": result.pvalue, "intervals": intervals}


def permutation():
    for a, b in DEALT:
        result = stats.permutation_test(
            (np.log(a), np.log(b)),
            lambda x, y, axis: abs(x.mean(axis=axis) - y.mean(axis=axis)),
            vectorized=True,
            n_resamples=np.inf,
            alternative="greater",
        )
        yield {"a": a, "b": b, "p": result.pvalue}


NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def power(noncentrality, n, alpha):
    """Welch's test: the mean over r, the first variance's share in the sum of both, of the power of its own level."""
    # From 0 to 1/2, as r and 1 - r are alike, and not where there is nothing; squared, as the density is steep at 0.
    root = sqrt(stats.beta.ppf(1e-15, (n - 1) / 2, (n - 1) / 2))
    x = root + (sqrt(0.5) - root) * (NODES + 1) / 2
    r = x * x
    weights = WEIGHTS * stats.beta.pdf(r, (n - 1) / 2, (n - 1) / 2) * x
    critical = stats.t.isf(alpha / 2, (n - 1) / (r**2 + (1 - r) ** 2))
    df = 2 * n - 2
    other = stats.nct.cdf(-critical, df, noncentrality)
    # SciPy has none of the other tail in places, all of them where it no longer counts.
    small = stats.norm.cdf(-noncentrality) * stats.t.sf(critical, df) < 1e-6
    assert np.all(~np.isnan(other) | small)
    return np.average(stats.nct.sf(critical, df, noncentrality) + np.nan_to_num(other), weights=weights)


def smallest_effect():
    for n in [3, 4, 5, 10, 50, 1000]:
        for alpha in [0.05, 0.01]:
            for wanted in [0.5, 0.8, 0.95]:
                noncentrality = brentq(lambda x: power(x, n, alpha) - wanted, 0.01, 20, xtol=1e-10)
                effect = exp(noncentrality * 0.02 * sqrt(2 / n)) - 1
                yield {"log_sd": 0.02, "n": n, "alpha": alpha, "power": wanted, "effect": effect}


def runs_for_effect():
    for log_sd in [0.005, 0.02, 0.05]:
        for effect in [0.01, 0.05, -0.05, 0.2]:
            for alpha in [0.05, 0.01, 1e-6]:
                for wanted in [0.8, 0.95]:
                    n = 3
                    while power(abs(log(1 + effect)) / log_sd * sqrt(n / 2), n, alpha) < wanted:
                        n += 1
                    yield {"log_sd": log_sd, "effect": effect, "alpha": alpha, "power": wanted, "runs": n}


def main():
    tables = [confidence, runs_needed, welch, permutation, smallest_effect, runs_for_effect]
    rows = (f'"{table.__name__}": [\n' + ",\n".join(json.dumps(row) for row in table()) + "\n]" for table in tables)
    print("{\n" + ",\n".join(rows) + "\n}")


if __name__ == "__main__":
    main()
