# `make demo` and `make test` need no other set-up: they install what they need.

.DEFAULT_GOAL := build
.PHONY: build web demo test check generated pins dist test-dist test-slow test-reboot soak lint unit program-tests long-tests crate-tests browser site screenshots bench conformance fuzz corpus clean \
	compiler chromium perf kernels clients source cargo-deny cargo-fuzz mdbook codespell

PGDYNO := target/release/pgdyno
REPORT := report.html
MDBOOK := target/mdbook/bin/mdbook
CARGO_DENY_VERSION := 0.20.2
MDBOOK_VERSION := 0.5.4
FUZZ_SECONDS := 600
SOAK_SECONDS := 3600

# The tests that compare generated files with their sources.
GENERATED := setup/built test -p model -p analysis -p report -p pgdyno --lib --test offline -- --quiet generated
# Groups of tests that run in parallel, the longest first, and tests of pgdyno that are a group of their own.
TEST_GROUPS := program-tests crate-tests long-tests browser
LONG_TESTS := bisect fleet kernels shipped tutorials
# What `make test` shows at its end, a line each: tests that can't run on this machine, and those that failed at first and passed
# when they were run once more.
SKIPPED_TESTS := $(CURDIR)/target/skipped-tests
RETRIED_TESTS := $(CURDIR)/target/retried-tests
export PGDYNO_SKIPPED_TESTS := $(SKIPPED_TESTS)
export PGDYNO_RETRIED_TESTS := $(RETRIED_TESTS)
# Programs unpacked for tests: pgbench, promtool, nats-server and pgbouncer, if they are not installed.
export PATH := $(CURDIR)/target/test-programs:$(PATH)

# The report's front end: node_modules is up to date when this file is.
WEB_MODULES := web/node_modules/.package-lock.json
WEB_PAGE := web/dist/index.html
WEB_SOURCES := $(shell find web/src web/index.html web/*.ts web/*.json -type f 2>/dev/null)

## build: the program, target/release/pgdyno
build: compiler $(WEB_PAGE)
	cargo build --release --locked

## demo: the quick campaign on two PostgreSQL majors, with its tables and report
demo: build
	$(PGDYNO) run campaigns/quick.toml
	$(PGDYNO) report --store campaigns/.pgdyno -o $(REPORT)
	@echo "The report is in $(REPORT)"

## test: every check of CI
test: lint unit
	@setup/noted "$(SKIPPED_TESTS)" "$(RETRIED_TESTS)"

## check: lint and all tests that need no server; run it often
check: lint
	setup/built test $$(setup/packages-with-servers not) -- --quiet
	setup/built test $$(setup/packages-with-servers) --lib --bins --test offline -- --quiet --skip server_tests
	cd web && npm run --silent test

## lint: formatting, spelling, clippy, dependencies, types and floors
lint: compiler $(WEB_PAGE) cargo-deny codespell
	cargo fmt --all --check
	codespell --ignore-words setup/words *.md docs
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo deny --log-level error check bans licenses sources
	$(GENERATED) || { echo 'lint: run make generated, and review the changes' >&2; exit 1; }
	cd web && npm run --silent fixture && npm run --silent lint && npm run --silent check

## generated: files generated from the program's types and lists: the page's types, the campaign schema, tables of the docs
generated: compiler $(WEB_PAGE)
	BLESS=1 $(GENERATED)

## pins: add the archive's new releases to the checksums that pgdyno knows, after downloading and hashing each
pins: compiler
	cargo run --locked -p server --example pin_archives -- --download

## unit: Rust and front-end tests, against real PostgreSQL servers. They mostly wait, so groups run in parallel, followed
## by the tests that need the machine for themselves. Whoever shares the machine delays them: a test that fails is run once more,
## by itself, and reported
unit: compiler perf kernels clients source chromium $(WEB_PAGE)
	@mkdir -p target && rm -f "$(SKIPPED_TESTS)" "$(RETRIED_TESTS)"
	@setup/spread "$$(setup/built path bin pgdyno)"
	status=0; $(MAKE) --no-print-directory --keep-going --jobs=3 --output-sync=target $(TEST_GROUPS) || status=1; \
	setup/built test --retry -- alone_ --test-threads=1 || status=1; exit $$status

program-tests:
	setup/built test --retry -p pgdyno $(LONG_TESTS:%=--exclude-test %) -- --skip alone_

long-tests:
	setup/built test --retry -p pgdyno $(LONG_TESTS:%=--test %) -- --skip alone_

crate-tests:
	setup/built test --retry --exclude pgdyno -- --skip alone_
	cd web && npm run --silent test

## browser: the report in a real browser: with test data, then with a small campaign on real servers, as a file and served
browser: compiler $(WEB_PAGE) chromium
	cd web && npm run --silent fixture && npm run --silent test:browser
	cd web && npm run --silent measure && npm run --silent test:real

## site: the documentation as pages with a search, target/site/index.html; it needs no network to read
site: mdbook
	$(MDBOOK) build docs
	@echo "The site is in target/site"

## dist: what is released: a program for every recent Linux, a Debian package, an OCI image, an SBOM, checksums
dist: compiler $(WEB_PAGE)
	setup/dist

## test-dist: these on Debian 11, 12 and 13 without a compiler: from the installation to a report
test-dist:
	setup/test-dist

## test-slow: the tests that take minutes each: bisections of kernels and of PostgreSQL's commits, a counted profile, meson
test-slow: compiler perf kernels source $(WEB_PAGE)
	setup/built test -p server -p pgdyno --test real_source --test kernels --test bisect -- --ignored

## test-reboot: a campaign that reboots into its kernels, in an emulated machine created from Debian packages
test-reboot: compiler
	setup/packages qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap mke2fs:e2fsprogs
	cargo test --locked -p pgdyno --test reboot -- --ignored --nocapture

## soak: campaigns under random faults for SOAK_SECONDS; SOAK_SEED repeats the faults of an earlier run
soak: compiler kernels $(WEB_PAGE)
	SOAK_SECONDS=$(SOAK_SECONDS) setup/built test -p pgdyno --test soak -- --ignored --nocapture

## screenshots: every page, wide and narrow, light and dark: with test data, a running campaign, and REPORT if it exists
screenshots: compiler $(WEB_PAGE) chromium
	cd web && npm run --silent fixture && npm run --silent screenshots
	[ ! -e "$(REPORT)" ] || (cd web && REPORT_HTML="$(abspath $(REPORT))" PICTURES=test-results/pictures/report npm run --silent screenshots)
	cd web && npm run --silent measure && npm run --silent test:real -- live
	@echo "The screenshots are in web/test-results/pictures"

## bench: the cost of the driver, the data sets and the collectors, the error rates of the statistics, and the report's speed
bench: compiler $(WEB_PAGE) chromium
	setup/packages pgbench:postgresql sysbench:sysbench
	cargo build --release --locked -p pgdyno -p null-server -p driver-cost -p dataset-cost -p collector-cost -p verdicts \
		-p report-speed
	target/release/driver-cost
	target/release/dataset-cost
	target/release/collector-cost
	target/release/verdicts
	target/release/report-speed

## conformance: pgbench's own tests, run by the command PGBENCH_TAP on the server in the directory PG_BIN
conformance: build
	@[ -n "$(PGBENCH_TAP)" ] && [ -x "$(PG_BIN)/postgres" ] || { echo "conformance: set PGBENCH_TAP=COMMAND (\
	called as COMMAND PROGRAM MAJOR, with PGBIN in its environment; runs pgbench's tests of that major) and \
	PG_BIN=DIRECTORY with the programs of a server of major 15, 17 or 18" >&2; exit 2; }
	setup/conformance $(PGDYNO) "$(PG_BIN)" $(PGBENCH_TAP)

## fuzz: every fuzz target, or TARGET, for FUZZ_SECONDS each
fuzz: compiler cargo-fuzz $(WEB_PAGE)
	setup/fuzz $(FUZZ_SECONDS) $(TARGET)

## corpus: keeps the inputs that fuzzing found, of every target or TARGET, without those that reach no code of their own
corpus: compiler cargo-fuzz $(WEB_PAGE)
	setup/fuzz keep $(TARGET)

## clean: removes build output, not measurements
clean:
	rm -rf target web/dist web/node_modules

web: $(WEB_PAGE)

$(WEB_MODULES): web/package.json web/package-lock.json
	cd web && npm ci --no-audit --no-fund --loglevel=error
	@touch $@

$(WEB_PAGE): $(WEB_MODULES) $(WEB_SOURCES)
	cd web && npm run --silent build
	@touch $@

# What libclang needs to read C headers; libclang-cpp is another library.
LIBCLANG = $(wildcard /usr/lib*/libclang.so* /usr/lib/*/libclang-[0-9]*.so* /usr/lib/llvm-*/lib/libclang.so*)
CLANG_HEADERS = $(wildcard /usr/lib*/clang/*/include/stdbool.h /usr/lib/llvm-*/lib/clang/*/include/stdbool.h)

compiler:
	@setup/packages cc:build-essential git:git bzip2:bzip2 xz:xz-utils
	@[ -n "$$LIBCLANG_PATH" ] || [ -n "$(LIBCLANG)" ] && [ -n "$(CLANG_HEADERS)" ] || setup/packages libclang:libclang-dev
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || rustup component add rustfmt clippy

chromium:
	@setup/packages chromium:chromium

perf:
	@setup/packages perf:linux-perf

# Programs that boot kernels, and apt's lists for downloading kernels.
kernels:
	@setup/packages --lists-of linux-image- qemu-system-x86_64:qemu-system-x86 busybox:busybox-static dpkg-deb:dpkg
	@[ -x /usr/lib/qemu/virtiofsd ] || setup/packages /usr/libexec/virtiofsd:virtiofsd

# Programs that tests compare with: psql, openssl, pgbench without its server, and promtool without Prometheus; the NATS server of
# fleets, and the pooler of topologies.
clients:
	@setup/packages psql:postgresql-client openssl:openssl cmark-gfm:cmark-gfm
	@setup/pgbench target/test-programs
	@setup/unpacked target/test-programs promtool prometheus
	@setup/unpacked target/test-programs nats-server nats-server
	@setup/unpacked target/test-programs pgbouncer pgbouncer

# Sources of PostgreSQL and pgvector, and what their builds need. The tests that build them are skipped without them.
source:
	@setup/packages make:build-essential bison:bison flex:flex perl:perl meson:meson ninja:ninja-build
	@setup/test-sources target/test-sources || true

cargo-fuzz: compiler
	@cargo fuzz --version >/dev/null 2>&1 || cargo install cargo-fuzz --locked

# Spelling: a few seconds to install, while the crate typos-cli compiles for minutes.
codespell:
	@setup/packages codespell:codespell

# A program of its own, so that tests do not compile it: it takes a minute of CPU time.
mdbook: compiler
	@[ "$$($(MDBOOK) --version 2>/dev/null)" = "mdbook v$(MDBOOK_VERSION)" ] || \
		cargo install mdbook --locked --version $(MDBOOK_VERSION) --no-default-features --features search \
		--root target/mdbook --debug --config profile.dev.debug=false

cargo-deny: compiler
	@cargo deny --version 2>/dev/null | grep -qF "$(CARGO_DENY_VERSION)" || \
		cargo install cargo-deny --locked --version $(CARGO_DENY_VERSION) --debug --config profile.dev.debug=false
