# make test    install what the tests need, run them
# make check   what CI runs: lint, format, types, import direction, tests
# make bench   measure; prints a table, writes benchmarks/results.json
# make bench-embedded   have the embedded model do examples/tasks (minutes)

PYTHON := .venv/bin/python
# make test TESTS=tests/core runs a part of them.
TESTS ?= tests
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Tests start hundreds of interpreters; without byte code each compiles everything again.
export PYTHONDONTWRITEBYTECODE =

.PHONY: test check lint bench bench-embedded clean

test: .venv/.dev
	$(PYTHON) -m pytest -n 2 --dist loadgroup $(TESTS)

# A run that ends for another reason than failed tests (1) is not repeated.
check: lint
	$(PYTHON) -m pytest -n 2 --dist loadgroup $(TESTS) || \
		{ [ $$? -eq 1 ] && $(PYTHON) tests/failed_again.py; }

lint: .venv/.dev
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m mypy
	.venv/bin/lint-imports

bench: .venv/.dev
	$(PYTHON) -m benchmarks.run

bench-embedded: .venv/.dev
	$(PYTHON) -m benchmarks.embedded

# Where CI=true nothing may be skipped for want of an optional part, so all of them are installed.
EXTRAS = dev$(comma)chat$(comma)mcp$(if $(filter true,$(CI)),$(comma)archives$(comma)embeddings)
comma := ,

# The program itself is installed by the launcher, as for anybody; the tools for developers on top.
.venv/.dev: pyproject.toml hermes
	./hermes --version
	$(PYTHON) -m ensurepip --upgrade >/dev/null 2>&1 || true
	if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(PYTHON) -e '.[$(EXTRAS)]'; \
	else \
		$(PYTHON) -m pip install --quiet -e '.[$(EXTRAS)]'; \
	fi
	sh tests/system-packages
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
