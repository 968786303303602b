# Terrace's commands. `make` alone explains them.

CARGO ?= cargo
# Tests that take their size from the environment run at this fraction of their full size; see CONTRIBUTING.md.
QUICK := 0.02
FULL := 1
# Every commit explores schedules of its own, and `make crash` forty times as many.
SCHEDULES := 0.25
# More arguments for `make bench`, `make bench-all` and `make results`, for example BENCH="--engines terrace,leveldb".
BENCH ?=
SUITES := leveldb-2011 wiredtiger-2012 bangdb-2012 configurations basho-2011 modern
LAB = $(CARGO) run --release --quiet --manifest-path lab/Cargo.toml --bin lab --

.PHONY: help check test sanitize bench bench-all results perf dropin dropin-speed install uninstall peers format clean

help:
	@echo "make check   formatting, lints with warnings denied, quick tests: about two minutes"
	@echo "make test    everything: installs what the tests need, then all tests at full size, optimised"
	@echo "make mutants  removes the engine's safeties one at a time; a test must miss each (ten minutes)"
	@echo "make pace    all tests with background work that comes early, late, or now and then late"
	@echo "make crash   the full campaign of docs/reliability.md: out/crash.txt (10 to 25 minutes)"
	@echo "make upstream   LevelDB's own tests and db_bench, of Debian's source package, with either library (three minutes)"
	@echo "make handovers  histories that Terrace shares with goleveldb, rusty-leveldb and iq80's LevelDB (ten minutes)"
	@echo "make soak    rounds of the same with new seeds, HOURS=1 by default: out/soak.txt"
	@echo "make tsan, make coverage, make audit   data races; lines and branches that tests run; dependencies"
	@echo "make package  the crates as they would be published, built and tested by themselves"
	@echo "make fuzz    nine fuzz targets under AddressSanitizer, MINUTES=10 by default: out/fuzz.txt"
	@echo "make bench   the comparison of 2011 with every engine that can be had, 1,000,000 entries (under 20 minutes)"
	@echo "make bench-all  every suite of the lab in its short form (under 90 minutes)"
	@echo "make results  three rounds of the comparison of 2011 into docs/results/leveldb-2011 (an hour, quiet machine)"
	@echo "make perf    a short fixed set against LevelDB (two minutes); appends ratios to docs/results/perf.csv"
	@echo "make dropin  libleveldb.so.1d and .so.1 over Terrace, headers, pkg-config and CMake files, in out/"
	@echo "make dropin-speed  its speed beside the engine's own interface, interleaved, medians (ten minutes, quiet machine)"
	@echo "make sanitize  the drop-in and the engine under it, with AddressSanitizer and ThreadSanitizer (three minutes)"
	@echo "make install the same into PREFIX, /usr/local by default, with a list of what it put there: lib/terrace-dropin.files;"
	@echo "             stops before it replaces what is not in that list, a LevelDB's files say, but for FORCE=1"
	@echo "make uninstall removes from PREFIX what that list names, and fails without one"
	@echo "make peers   install what the tests compare with (the real LevelDB, clients of it), where missing"
	@echo "make format  format every source file"
	@echo "make clean   remove what was built"

check: lint
	TERRACE_TEST_SCALE=$(QUICK) $(CARGO) test --workspace --quiet
	cd lab && $(CARGO) test --quiet

.PHONY: lint
lint:
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || rustup component add rustfmt clippy
	$(CARGO) fmt --all --check
	cd lab && $(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	cd lab && $(CARGO) clippy --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --lib --quiet

# Both parts at a time, what the second one prints last: each has stretches that keep one core busy, or none.
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
	RUSTFLAGS="--cfg loom" TERRACE_TEST_SCALE=$(SCHEDULES) $(CARGO) test -p terrace --lib --target-dir target/loom --quiet interleavings
	cd lab && $(CARGO) test --quiet
	tools/sanitize
	@tools/install-peers upstream
	DROPIN_PROFILE=checked tools/upstream/run

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
	$(LAB) run leveldb-2011 --reps 1 --time-limit 10 --budget 13 $(BENCH)

# A suite that fails does not keep the others away; an interrupt (130) does. In the end one page shows all of them.
bench-all: lab-peers dropin
	@out=out/lab/all-$$(date -u +%Y%m%d-%H%M%S); failed=; done=; \
	for suite in $(SUITES); do \
	    echo "== $$suite"; \
	    $(LAB) run $$suite --short --out $$out/$$suite $(BENCH) && done="$$done $$out/$$suite" || \
	        { [ $$? -ne 130 ] || exit 130; failed="$$failed $$suite"; }; \
	done; \
	$(LAB) report $$done --out $$out/report >/dev/null && echo "report of all: $$out/report/report.html"; \
	[ -z "$$failed" ] || { echo "failed:$$failed"; exit 1; }

# What an earlier session was interrupted in is gone on with. Data, report and the README's chart; without the engines' logs.
RESULTS := docs/results/leveldb-2011
results: lab-peers dropin
	@out=out/lab/results; resume=; [ ! -e $$out/run.json ] || resume=--resume; \
	$(LAB) run leveldb-2011 --reps 3 --time-limit 10 --budget 60 --out $$out $$resume $(BENCH) && \
	mkdir -p $(RESULTS) && rm -rf $(RESULTS)/* && \
	cp $$out/run.json $$out/measurements.jsonl $$out/results.csv $$out/results.json $$out/report.html $(RESULTS) && \
	cp -r $$out/charts $(RESULTS) && mv $(RESULTS)/charts/summary.svg $(RESULTS) && \
	sed -i 's,charts/summary.svg,summary.svg,' $(RESULTS)/report.html && mv $$out out/lab/results-$$(date -u +%Y%m%d-%H%M%S) && \
	echo "$(RESULTS) is new: $$(du -sh $(RESULTS) | cut -f1)"

perf: peers
	@tools/perf

dropin:
	@tools/build-dropin

sanitize:
	@tools/sanitize

dropin-speed: peers dropin
	@tools/dropin-speed

PREFIX ?= /usr/local
install:
	@DROPIN_PREFIX="$(PREFIX)" FORCE="$(FORCE)" tools/build-dropin --install "$(DESTDIR)$(PREFIX)"

uninstall:
	@tools/build-dropin --remove "$(DESTDIR)$(PREFIX)"

peers:
	@tools/install-peers
	@tools/fetch-clients

.PHONY: lab-peers
lab-peers:
	@tools/install-peers lab

format:
	$(CARGO) fmt --all
	cd lab && $(CARGO) fmt --all

clean:
	$(CARGO) clean
	cd lab && $(CARGO) clean
	rm -rf out
