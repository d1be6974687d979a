"""Reference values for the tests of `stats`: python3 reference.py > reference.json

Made with Python 3.11, NumPy 2.2.0, SciPy 1.17.1, diptest 0.12.0 and, for the change points, Apache Otava 0.8.0, whose
own pin of SciPy is older (`pip install diptest apache-otava`, then `pip install scipy==1.17.1`).
"""

import csv
import json
from collections import defaultdict
from math import exp, log, sqrt
from pathlib import Path

import diptest
import numpy as np
from otava.analysis import compute_change_points_orig
from scipy import stats
from scipy.optimize import brentq, least_squares

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


def noisy(seed, levels, noise=0.01):
    rng = np.random.default_rng(seed)
    return [round(float(level * exp(noise * rng.standard_normal())), 3) for level in levels]


def change_points():
    """Levels that are far apart beside the noise: whatever differs in detail, the places are the same."""
    for seed, levels in [
        (6, [100] * 30),
        (2, [100] * 20 + [90] * 25),
        (3, [100] * 20 + [90] * 15 + [120] * 30),
        (4, [100] * 12 + [110] * 12 + [121] * 12 + [133] * 12),
        (5, [100] * 50 + [92] * 5),
    ]:
        series = noisy(seed, levels)
        found, _ = compute_change_points_orig(np.log(series), max_pvalue=0.01, seed=1)
        yield {"series": series, "places": sorted(int(change.index) for change in found)}


def usl():
    """SciPy's least squares with bounds, from several starts."""
    clients = np.array([1, 2, 4, 8, 16, 32, 64])
    sweeps = [
        noisy(11, 900 * clients / (1 + 0.03 * (clients - 1) + 2e-4 * clients * (clients - 1)), 0.02),
        noisy(12, 900 * clients / (1 + 0.2 * (clients - 1)), 0.02),
        noisy(13, 900 * clients / (1 + 3e-3 * clients * (clients - 1)), 0.02),
        noisy(14, 900 * clients, 0.02),
        [100.0, 210.0, 380.0, 600.0, 610.0, 580.0, 300.0],
    ]
    for tps in sweeps:
        y = np.log(tps)

        def residuals(p):
            return y - p[0] - np.log(clients) + np.log(1 + p[1] * (clients - 1) + p[2] * clients * (clients - 1))

        fits = [
            least_squares(
                residuals, [y[0], *start], bounds=([-np.inf, 0, 0], np.inf), x_scale=[1, 0.1, 1e-3],
                xtol=1e-14, ftol=1e-14, gtol=1e-14,
            )
            for start in [(0.01, 1e-5), (0.1, 1e-3), (0.5, 1e-2)]
        ]
        fit = min(fits, key=lambda fit: fit.cost)
        yield {
            "clients": clients.tolist(),
            "tps": tps,
            "lambda": exp(fit.x[0]),
            "sigma": fit.x[1],
            "kappa": fit.x[2],
            "rms": sqrt(np.mean(fit.fun**2)),
        }


def autocorrelated(seed, n, rho):
    rng = np.random.default_rng(seed)
    values = [rng.standard_normal()]
    for _ in range(n - 1):
        values.append(rho * values[-1] + rng.standard_normal())
    return [round(1000 + 20 * float(v), 3) for v in values]


def effective_sample_size():
    """Geyer's initial monotone sequence, from the autocovariance by NumPy's correlate."""
    series = [(21, 60, 0.0), (22, 300, 0.5), (23, 600, 0.9), (24, 600, -0.4), (25, 60, -0.6), (26, 300, -0.9)]
    for seed, n, rho in series:
        values = np.array(autocorrelated(seed, n, rho))
        deviations = values - values.mean()
        rho_hat = np.correlate(deviations, deviations, "full")[n - 1 :] / (deviations @ deviations)
        pairs = rho_hat[0 : n - 1 : 2] + rho_hat[1:n:2]
        positive = pairs[: np.argmax(pairs <= 0)]
        tau = -1 + 2 * np.minimum.accumulate(positive).sum()
        yield {"values": values.tolist(), "n": n / max(tau, 1)}


def warmup_cut():
    """MSER-5, as White, Cobb and Spratt write it."""
    for seed, n, slow in [(31, 300, 0), (32, 300, 40), (33, 600, 100)]:
        values = np.array(autocorrelated(seed, n, 0.3))
        values[:slow] -= np.linspace(400, 0, slow)
        batches = values[: n // 5 * 5].reshape(-1, 5).mean(axis=1)
        errors = [
            ((batches[d:] - batches[d:].mean()) ** 2).sum() / (len(batches) - d) ** 2
            for d in range(len(batches) // 2 + 1)
        ]
        yield {"values": values.round(3).tolist(), "cut": 5 * int(np.argmin(errors))}


def percentiles():
    """NumPy's inverted distribution function, of all values of all seconds."""
    rng = np.random.default_rng(41)
    seconds = [np.sort(np.round(rng.lognormal(7, 0.5, rng.integers(0, 30)))).astype(int) for _ in range(70)]
    pooled = np.concatenate(seconds)
    counted = [[[int(v), int(c)] for v, c in zip(*np.unique(second, return_counts=True))] for second in seconds]
    shares = [0.01, 0.5, 0.9, 0.95, 0.99]
    values = [int(np.quantile(pooled, share, method="inverted_cdf")) for share in shares]
    yield {"seconds": counted, "shares": shares, "values": values}


def modes():
    """The dip test of Hartigan and Hartigan (1985), of logarithms: one mode with 2% noise, and two that are 10% apart."""
    rng = np.random.default_rng(51)
    for n in [10, 20, 50]:
        for apart in [0.0, 0.1]:
            for _ in range(100):
                levels = 10_000 * (1 + apart * rng.integers(0, 2, n))
                sample = np.round(levels * np.exp(0.02 * rng.standard_normal(n)))
                dip, p = diptest.diptest(np.log(sample))
                yield {"apart": apart, "sample": sample.astype(int).tolist(), "dip": dip, "p": p}


def main():
    tables = [
        confidence, runs_needed, welch, permutation, smallest_effect, runs_for_effect, change_points, usl,
        effective_sample_size, warmup_cut, percentiles, modes,
    ]
    rows = (f'"{table.__name__}": [\n' + ",\n".join(json.dumps(row) for row in table()) + "\n]" for table in tables)
    print("{\n" + ",\n".join(rows) + "\n}")


if __name__ == "__main__":
    main()
