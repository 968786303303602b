# Terrace's commands. `make` alone explains them.

CARGO ?= cargo
# Tests that take their size from the environment run at this fraction of their full size; see CONTRIBUTING.md.
QUICK := 0.02
FULL := 1

.PHONY: help check test peers format clean

help:
	@echo "make check   formatting, lints with warnings denied, quick tests: about two minutes"
	@echo "make test    everything: installs what the tests need, then all tests at full size, optimised"
	@echo "make peers   install what tests and benchmarks compare with (the real LevelDB), where it is missing"
	@echo "make format  format every source file"
	@echo "make clean   remove what was built"

check: lint
	TERRACE_TEST_SCALE=$(QUICK) $(CARGO) test --workspace --quiet

.PHONY: lint
lint:
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || rustup component add rustfmt clippy
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --quiet

test: peers lint
	TERRACE_TEST_SCALE=$(FULL) $(CARGO) test --workspace --profile checked

peers:
	@tools/install-peers

format:
	$(CARGO) fmt --all

clean:
	$(CARGO) clean
	rm -rf out
