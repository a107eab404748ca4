# make test    install what the tests need, run them; FAST=1 omits the slow ones
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

# Tests wait for other programs half of the time, so there are more workers than cores. The tests of
# a file share its servers, so one worker runs them.
PYTEST = $(PYTHON) -m pytest -n $(if $(FAST),2,4) --dist loadfile --no-loadscope-reorder \
	$(if $(FAST),-m 'not slow' --hypothesis-profile=fast)

test: .venv/.dev
	$(PYTEST) $(TESTS)

check: lint test

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
