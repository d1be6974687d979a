# Reference values for the tests of `stats`: Rscript --vanilla reference.R > reference-r.json, in this folder
#
# Made with R 4.2.2. It takes nothing but base R. Tables that `reference.py` has too have the same fields.

# Numbers with 15 digits, all that R promises. A vector of one number is a number, of several an array.
json <- function(x) {
  fields <- if (is.list(x)) vapply(x, json, "") else sprintf("%.15g", x)
  if (!is.null(names(x))) return(paste0("{", paste0('"', names(x), '": ', fields, collapse = ", "), "}"))
  if (is.list(x) || length(x) > 1) paste0("[", paste(fields, collapse = ", "), "]") else fields
}

sweep_runs <- read.csv("client-sweep-2008.csv")
runs <- function(kernel, clients) sweep_runs$tps[sweep_runs$kernel == kernel & sweep_runs$clients == clients]

RNGkind("Mersenne-Twister", "Inversion", "Rejection")
set.seed(2008)
lognormal <- function(n, sd) round(10000 * exp(rnorm(n, sd = sd)), 3)

samples <- list(
  runs("2.6.25-remote", 1), runs("2.6.25", 20), runs("2.6.24.4", 10), runs("2.6.22.19", 4),
  c(100, 101), c(100, 100, 101, 101, 101), lognormal(10, 0.02), lognormal(31, 0.05)
)
pairs <- list(
  list(runs("2.6.22.19", 1), runs("2.6.24.4", 1)),
  list(runs("2.6.22.19", 2), runs("2.6.24.4", 2)),
  list(runs("2.6.25", 30), runs("2.6.25-remote", 30)),
  list(runs("2.6.25", 20), runs("2.6.26-rc2", 20)),
  list(c(100, 101), c(100.5, 103, 99)),
  list(samples[[7]], round(samples[[8]][1:6] * 1.02, 3))
)

confidence <- function() {
  each <- expand.grid(level = c(0.95, 0.99), sample = seq_along(samples))
  Map(function(i, level) {
    interval <- exp(t.test(log(samples[[i]]), conf.level = level)$conf.int)
    list(sample = samples[[i]], level = level, low = interval[1], high = interval[2])
  }, each$sample, each$level)
}

runs_needed <- function() {
  each <- expand.grid(half_width = c(0.1, 0.02), sample = c(1:4, 6:8))
  Map(function(i, half_width) {
    n <- 3
    while (qt(0.975, n - 1) * sd(log(samples[[i]])) / sqrt(n) > log(1 + half_width)) n <- n + 1
    list(sample = samples[[i]], half_width = half_width, runs = n)
  }, each$sample, each$half_width)
}

welch <- function() lapply(pairs, function(pair) {
  test <- function(level) t.test(log(pair[[2]]), log(pair[[1]]), conf.level = level)
  interval <- function(level) {
    ends <- exp(test(level)$conf.int)
    list(level = level, low = ends[1], high = ends[2])
  }
  means <- unname(test(0.95)$estimate)
  list(
    a = pair[[1]], b = pair[[2]], ratio = exp(means[1] - means[2]), df = unname(test(0.95)$parameter),
    p = test(0.95)$p.value, intervals = list(interval(0.95), interval(0.99))
  )
})

# Every way to deal the logarithms out.
permutation <- function() lapply(pairs, function(pair) {
  y <- log(unlist(pair))
  n <- length(pair[[1]])
  distance <- function(of_a) abs(mean(y[of_a]) - mean(y[-of_a]))
  list(a = pair[[1]], b = pair[[2]], p = mean(combn(length(y), n, distance) >= distance(1:n) - 1e-12))
})

# Welch's test of two samples of n values that spread alike. With variances s1 and s2, r = s1/(s1 + s2) has a beta
# distribution and gives the degrees of freedom of the critical value; t itself is noncentral with 2n - 2.
power_of_welch <- function(noncentrality, n, alpha) {
  at <- function(r) {
    critical <- qt(alpha / 2, (n - 1) / (r^2 + (1 - r)^2), lower.tail = FALSE)
    found <- pt(critical, 2 * n - 2, noncentrality, lower.tail = FALSE) + pt(-critical, 2 * n - 2, noncentrality)
    found * dbeta(r, (n - 1) / 2, (n - 1) / 2)
  }
  # r and 1 - r are alike.
  2 * integrate(at, 0, 0.5, rel.tol = 1e-9, subdivisions = 1000)$value
}

smallest_effect <- function() {
  each <- expand.grid(power = c(0.8, 0.95), alpha = c(0.05, 0.01), n = c(3, 5, 10, 20))
  Map(function(n, alpha, power) {
    lacking <- function(noncentrality) power_of_welch(noncentrality, n, alpha) - power
    noncentrality <- uniroot(lacking, c(0.5, 30), tol = 1e-10)$root
    list(log_sd = 0.02, n = n, alpha = alpha, power = power, effect = expm1(noncentrality * 0.02 * sqrt(2 / n)))
  }, each$n, each$alpha, each$power)
}

runs_for_effect <- function() {
  each <- expand.grid(alpha = c(0.05, 0.01), effect = c(0.02, -0.05, 0.1), log_sd = c(0.01, 0.02, 0.04))
  Map(function(log_sd, effect, alpha) {
    n <- 3
    while (power_of_welch(abs(log(1 + effect)) / log_sd * sqrt(n / 2), n, alpha) < 0.9) n <- n + 1
    list(log_sd = log_sd, effect = effect, alpha = alpha, power = 0.9, runs = n)
  }, each$log_sd, each$effect, each$alpha)
}

# The law's logarithm by nls, sigma and kappa not negative.
usl <- function() {
  clients <- c(1, 2, 4, 8, 16, 32, 64)
  law <- function(sigma, kappa) 900 * clients / (1 + sigma * (clients - 1) + kappa * clients * (clients - 1))
  swept <- function(tps) list(clients = clients, tps = round(tps * exp(rnorm(length(tps), sd = 0.02)), 3))
  kernel <- function(name) {
    medians <- aggregate(tps ~ clients, sweep_runs[sweep_runs$kernel == name, ], median)
    list(clients = medians$clients, tps = medians$tps)
  }
  sweeps <- list(
    swept(law(0.03, 2e-4)), swept(law(0.2, 0)), swept(law(0, 3e-3)), kernel("2.6.25-remote"), kernel("2.6.22.19")
  )
  lapply(sweeps, function(sweep) {
    fits <- lapply(list(c(0.01, 1e-5), c(0.1, 1e-3), c(0.5, 1e-2)), function(start) nls(
      log(tps) ~ a + log(clients) - log(1 + sigma * (clients - 1) + kappa * clients * (clients - 1)),
      sweep, list(a = log(sweep$tps[1]), sigma = start[1], kappa = start[2]),
      algorithm = "port", lower = c(-Inf, 0, 0), control = nls.control(maxiter = 1000, tol = 1e-12, warnOnly = TRUE)
    ))
    fit <- fits[[which.min(vapply(fits, deviance, 0))]]
    by_name <- as.list(coef(fit))
    c(sweep, list(
      lambda = exp(by_name$a), sigma = by_name$sigma, kappa = by_name$kappa,
      rms = sqrt(deviance(fit) / length(sweep$tps))
    ))
  })
}

# Geyer's initial monotone sequence of acf's autocorrelations, worth at most n.
effective_sample_size <- function() Map(function(n, rho) {
  values <- round(1000 + 20 * as.vector(filter(rnorm(n), rho, "recursive")), 3)
  correlations <- acf(values, lag.max = n - 1, plot = FALSE)$acf
  first <- seq(1, n - 1, by = 2)
  pairs <- correlations[first] + correlations[first + 1]
  positive <- pairs[cumsum(pairs <= 0) == 0]
  list(values = values, n = n / max(1, 2 * sum(cummin(positive)) - 1))
}, c(60, 301, 600, 200), c(0, 0.5, 0.8, -0.8))

holm <- function() {
  of_welch <- vapply(welch(), function(row) row$p, 0)
  lapply(list(of_welch, c(0.01, 0.04, 0.03, 0.005), runif(20)^4, c(0.02, 0.02, 0.5, 0.9)), function(p) {
    p <- signif(p, 12)
    list(p = p, adjusted = p.adjust(p, "holm"))
  })
}

# Mann and Kendall's test is Kendall's of values and time.
trend <- function() {
  ties <- c(3, 5, 5, 4, 6, 5, 7, 6, 6, 8, 7, 9)
  falling <- round(1000 - 2 * 1:20 + rnorm(20, sd = 10), 3)
  level <- round(rnorm(25, 1000, 10), 3)
  lapply(list(falling, level, ties, rev(ties), runs("2.6.25", 1)[rep(1:5, 3)]), function(values) {
    n <- length(values)
    slopes <- outer(values, values, "-") / outer(1:n, 1:n, "-")
    test <- cor.test(1:n, values, method = "kendall", exact = FALSE, continuity = TRUE)
    list(values = values, p = test$p.value, slope = median(slopes[lower.tri(slopes)]))
  })
}

# The largest t of all splits of the sorted logarithms in two, by the two-sample test with equal variances.
split_in_two <- function() lapply(samples[-(5:6)], function(sample) {
  y <- sort(log(sample))
  t <- vapply(seq_len(length(y) - 1), function(k) t.test(y[-(1:k)], y[1:k], var.equal = TRUE)$statistic, 0)
  k <- which.max(t)
  list(sample = sample, lower = k, t = t[k], ratio = exp(mean(y[-(1:k)]) - mean(y[1:k])))
})

median_of <- function() lapply(samples, function(sample) list(sample = sample, median = median(sample)))

# Inverse of the distribution function, which is R's type 1. Each value is of one second, and there once.
percentiles <- function() lapply(c(40, 101), function(n) {
  values <- round(rlnorm(n, 7, 0.5))
  shares <- c(0.01, 0.5, 0.9, 0.95, 0.99)
  seconds <- lapply(values, function(value) list(c(value, 1)))
  list(seconds = seconds, shares = shares, values = unname(quantile(values, shares, type = 1)))
})

# Where a change lies with 95% confidence (Hansen 2000): the splits whose likelihood ratio is at most
# -2 log(1 - sqrt(0.95)).
within <- function() Map(function(n, at, ratio) {
  series <- round(1000 * ifelse(seq_len(n) > at, ratio, 1) * exp(rnorm(n, sd = 0.01)), 3)
  squares <- vapply(seq_len(n - 1), function(k) deviance(lm(log(series) ~ seq_len(n) > k)), 0)
  least <- min(squares)
  possible <- which((n - 2) * (squares - least) / least <= -2 * log(1 - sqrt(0.95)))
  # As indices from 0: the last point before, the first one after.
  list(series = series, before = min(possible) - 1, after = max(possible))
}, c(40, 60, 80, 60), c(20, 25, 60, 30), c(0.95, 0.985, 1.012, 1.015))

tables <- list(
  confidence = confidence(), runs_needed = runs_needed(), welch = welch(), permutation = permutation(),
  smallest_effect = smallest_effect(), runs_for_effect = runs_for_effect(), usl = usl(),
  effective_sample_size = effective_sample_size(), percentiles = percentiles(), holm = holm(), trend = trend(),
  split = split_in_two(), median = median_of(), within = within()
)
rows <- vapply(tables, function(table) paste(vapply(table, json, ""), collapse = ",\n"), "")
cat("{\n", paste0('"', names(tables), '": [\n', rows, "\n]", collapse = ",\n"), "\n}\n", sep = "")
