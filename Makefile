# Terrace's commands. `make` alone explains them.

CARGO ?= cargo
# Tests with a size run at this fraction of their full size: TERRACE_TEST_SCALE, CONTRIBUTING.md.
QUICK := 0.02
FULL := 1
# The tests that notice most, for what they take: files of the test program `model`.
TELLING := basics:: operations:: transactions::
# The tests that depend most on what the system has: files of the test program `system`, and
# programs.
OF_THE_SYSTEM := environments:: handles:: read_access::
ALONE := --test fork --test threads
# Loom explores this fraction of its schedules in `make test`; `make crash` explores forty times as
# many.
SCHEDULES := 0.25
# More arguments for the lab in `make bench`, `make bench-all` and `make results`, for example
# BENCH="--engines terrace,leveldb".
BENCH ?=
SUITES := leveldb-2011 wiredtiger-2012 bangdb-2012 configurations basho-2011 modern scale \
    larger-than-memory
LAB = $(CARGO) run --release --quiet --manifest-path lab/Cargo.toml --bin lab --

.PHONY: help check test sanitize bench bench-all results advise perf dropin dropin-speed install uninstall
.PHONY: peers format clean

define HELP
make quick        unit tests and the most telling tests of the engine (two minutes)
make check        formatting, lints with warnings denied, `make quick`, `make targets`
make test         the whole suite, campaigns in their short form (under 30 minutes; apt-get)
make mutants      removes one safety of the engine at a time; its test must fail (ten minutes)
make pace         all tests with background work that runs early, late, or late now and then
make crash        the full campaign of docs/reliability.md: out/crash.txt (half an hour, idle machine)
make soak         rounds of the same campaign with new seeds, HOURS=1 by default: out/soak.txt
make fuzz         nine fuzz targets under AddressSanitizer, MINUTES=10 by default: out/fuzz.txt
make sanitize     the drop-in and its engine under Address- and ThreadSanitizer (three minutes)
make tsan         the engine's tests under ThreadSanitizer
make coverage     lines and branches that tests execute
make audit        licences and advisories of the dependencies
make targets      compiles the library and the command for the systems of docs/platforms.md
make portable     the engine's tests, short, without what only Linux has, and those of zstd
make package      the crates as they would be published, each built and tested by itself
make upstream     LevelDB's own tests and db_bench with either library (three minutes)
make handovers    histories shared with goleveldb, rusty-leveldb and iq80's LevelDB (ten minutes)
make bench        the comparison of 2011, half its entries, one round (10 minutes, 9 of builds first)
make bench-all    suites of the lab in their short form, but against-* (75 to 90 minutes and the builds)
make results      three rounds of the README's engines into docs/results (23 minutes, idle machine)
make advise       three rounds of configurations, for `terrace advise` (idle machine; not timed)
make perf         a short fixed set against LevelDB (two minutes): docs/results/perf.csv
make dropin       libleveldb.so.1d and .so.1 over Terrace, headers, pkg-config and CMake files: out/
make dropin-speed the drop-in beside the native interface, medians (ten minutes, idle machine)
make install      the drop-in into PREFIX (/usr/local); replaces foreign files only with FORCE=1
make uninstall    removes what `make install` listed in PREFIX/lib/terrace-dropin.files
make peers        installs what the tests compare with (LevelDB, its clients), where missing
make bindings     the packages for other languages, built and tested at length, or FORM=short
make python       the package for Python, in place of plyvel
make node         the package for Node, in place of classic-level
make java         the package for Java; make kafka: the stores for Kafka Streams
make format       formats every source file
make clean        removes what was built
endef
export HELP

help:
	@echo "$$HELP"

check: lint quick targets
	@tools/words

.PHONY: quick targets portable
# One build, and a run for each list of tests.
QUICKLY = $(CARGO) test -p terrace --profile quick --quiet
quick: export TERRACE_TEST_SCALE := $(QUICK)
quick:
	$(QUICKLY) --no-run --lib --test model
	$(QUICKLY) --lib
	$(QUICKLY) --test model -- $(TELLING)

targets:
	@tools/targets

portable: export TERRACE_TEST_SCALE := $(QUICK)
portable: export RUSTFLAGS := --cfg terrace_portable
portable: export CARGO_TARGET_DIR := target/portable
portable: QUICKLY += --features zstd
portable:
	$(QUICKLY) --no-run --lib --test model --test system --test features $(ALONE)
	$(QUICKLY) --lib $(ALONE)
	$(QUICKLY) --test model -- $(TELLING)
	$(QUICKLY) --test system -- $(OF_THE_SYSTEM)
	$(QUICKLY) --test features -- codecs

.PHONY: lint
lint:
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || \
	    rustup component add rustfmt clippy
	$(CARGO) fmt --all --check
	cd lab && $(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	$(CARGO) clippy --workspace --all-features --quiet -- -D warnings
	cd lab && $(CARGO) clippy --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --lib --quiet

# Runs both parts at once, because each has phases that use one core or none. The output of the
# second part follows that of the first.
test: peers
	@mkdir -p out; \
	$(MAKE) --no-print-directory test-rest >out/test-rest.txt 2>&1 & rest=$$!; \
	trap 'kill $$rest' INT TERM; \
	$(MAKE) --no-print-directory test-engine; engine=$$?; \
	wait $$rest; rest=$$?; cat out/test-rest.txt; \
	[ $$engine -eq 0 ] && [ $$rest -eq 0 ]

.PHONY: test-engine test-rest
test-engine:
	TERRACE_TEST_SCALE=$(FULL) $(CARGO) test --workspace --profile checked --no-fail-fast

test-rest: lint
	RUSTFLAGS="--cfg loom" TERRACE_TEST_SCALE=$(SCHEDULES) \
	    $(QUICKLY) --lib --target-dir target/loom interleavings
	$(MAKE) --no-print-directory portable
	cd lab && $(CARGO) test --quiet
	tools/sanitize
	@tools/install-peers upstream
	DROPIN_PROFILE=checked tools/upstream/run
	$(MAKE) --no-print-directory bindings FORM=short

.PHONY: package mutants pace crash handovers upstream soak fuzz tsan coverage audit
package:
	@tools/package

mutants: peers
	@tools/mutants

pace: peers
	@tools/pace

FACTOR ?= 1
crash: peers
	@tools/campaign crash $(FACTOR)

HISTORIES ?= 200
handovers:
	@tools/handovers/run $(HISTORIES)

upstream: peers
	@tools/install-peers upstream
	@tools/upstream/run

HOURS ?= 1
soak: peers
	@tools/campaign soak $(HOURS)

MINUTES ?= 10
fuzz: peers
	@tools/fuzz $(MINUTES)

tsan:
	@tools/tsan

coverage: peers
	@tools/coverage

audit:
	@tools/audit

bench: lab-peers dropin
	$(LAB) run leveldb-2011 --reps 1 --num 500000 --time-limit 10 --budget 9 $(BENCH)

# Goes on after a suite that fails, stops at an interrupt (130), and ends with one report of all.
bench-all: lab-peers-all dropin
	@out=out/lab/all-$$(date -u +%Y%m%d-%H%M%S); failed=; done=; \
	for suite in $(SUITES); do \
	    echo "== $$suite"; \
	    $(LAB) run $$suite --short --out $$out/$$suite $(BENCH); status=$$?; \
	    [ $$status -ne 130 ] || exit 130; \
	    [ $$status -eq 0 ] || failed="$$failed $$suite"; \
	    [ ! -e $$out/$$suite/report.html ] || done="$$done $$out/$$suite"; \
	done; \
	$(LAB) report $$done --out $$out/report >/dev/null && \
	    echo "report of all: $$out/report/report.html"; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# The figures of the README, of few enough engines to measure all of them to the end. Resumes an
# interrupted run. Keeps figures and the chart that documents show; the report stays in out/lab.
RESULTS := docs/results/leveldb-2011
RESULTS_OF := terrace,leveldb*,rocksdb*,fjall*,lmdb-nosync,lmdb-writemap
results: lab-peers-all dropin
	@out=out/lab/results; resume=; [ ! -e $$out/run.json ] || resume=--resume; \
	$(LAB) run leveldb-2011 --engines '$(RESULTS_OF)' --reps 3 --time-limit 30 --budget 38 \
	    --out $$out $$resume $(BENCH) && \
	mkdir -p $(RESULTS) && cp $$out/run.json $$out/results.csv $$out/charts/summary.svg $(RESULTS) && \
	kept=out/lab/results-$$(date -u +%Y%m%d-%H%M%S) && mv $$out $$kept && \
	echo "$(RESULTS) is new; its report: $$kept/report.html"

# The figures that `terrace advise` quotes. Resumes an interrupted run.
advise: lab-peers
	@out=out/lab/advise; resume=; [ ! -e $$out/run.json ] || resume=--resume; \
	$(LAB) run configurations --reps 3 --engines terrace,leveldb --out $$out $$resume $(BENCH) && \
	tools/advise-figures $$out && mv $$out $$out-$$(date -u +%Y%m%d-%H%M%S)

perf: peers
	@tools/perf

dropin:
	@tools/build-dropin

sanitize:
	@tools/sanitize

dropin-speed: peers dropin
	@tools/dropin-speed

# Each builds its package, runs the tests of the package that it replaces and its own, and installs
# what it lacks. FORM=short has fewer cycles of everything.
FORM ?= long
.PHONY: bindings python node java kafka
bindings: python node
	@bindings/java/test $(FORM) java kafka

python:
	@tools/python $(FORM)

node:
	@bindings/node/check $(FORM)

java kafka:
	@bindings/java/test $(FORM) $@

PREFIX ?= /usr/local
install:
	@DROPIN_PREFIX="$(PREFIX)" FORCE="$(FORCE)" tools/build-dropin --install "$(DESTDIR)$(PREFIX)"

uninstall:
	@tools/build-dropin --remove "$(DESTDIR)$(PREFIX)"

peers:
	@tools/install-peers
	@tools/fetch-clients

.PHONY: lab-peers lab-peers-all
lab-peers:
	@tools/install-peers lab
	@tools/build-peers leveldb sqlite lmdb

# What takes half an hour of a processor, once for a machine and version.
lab-peers-all: lab-peers
	@tools/build-peers rocksdb wiredtiger

format:
	$(CARGO) fmt --all
	cd lab && $(CARGO) fmt --all

clean:
	$(CARGO) clean
	cd lab && $(CARGO) clean
	rm -rf out
