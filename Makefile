# Everything a newcomer or a builder types. `make help` lists the targets from their comments.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard libs/*/pyproject.toml services/*/pyproject.toml))
READY := $(VENV)/.ready
# More processes than most machines have cores, for many tests wait for a service.
WORKERS ?= 4

COMPOSE ?= docker compose

# One thread per process for numpy's linear algebra: no score uses it, and idle threads only spin.
export OPENBLAS_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench fuzz up down compose clean

help:  ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-7s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY)  ## install everything into .venv (needs only Python 3.11 or later)

# Made again only when the lock file, a package's own declaration or what is compiled changes.
$(READY): requirements.lock $(wildcard libs/*/pyproject.toml libs/*/setup.py services/*/pyproject.toml) \
		$(wildcard libs/measures/cupel_measures/native/*.[ch])
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Cupel needs Python 3.11 or later; name one with 'make $(MAKECMDGOALS) PYTHON=/path/to/python3'."; exit 1; }
	@echo "setup: a virtual environment in $(VENV), with $$("$(PYTHON)" --version)"
	@"$(PYTHON)" -m venv $(VENV)
	@echo "setup: the locked dependencies (about a minute the first time)"
	@$(BIN)/python -m pip install -qq --prefer-binary --require-hashes --requirement requirements.lock
	@echo "setup: Cupel's own packages"
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation $(patsubst %,--editable %,$(PACKAGES))
	@touch $@

demo: $(READY)  ## show it all: a service, a track, 30 runs, two leaderboards, a correction (ONCE=1 ends it)
	@$(BIN)/python -m cupel_standalone.demo $(if $(ONCE),--once)

test: $(READY)  ## run the tests (some minutes; more where PostgreSQL, Redis and S3 are installed)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadscope --no-loadscope-reorder

check: $(READY)  ## check formatting, lint and types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

bench: $(READY)  ## measure reading and scoring beside their peers, the service under load, its recovery (half an hour)
	@$(BIN)/python tests/bench/reading.py
	@$(BIN)/python tests/bench/measures.py
	@$(BIN)/python tests/bench/comparing.py
	@$(BIN)/python tests/bench/audits.py
	@$(BIN)/python tests/bench/service.py
	@$(BIN)/python tests/bench/recovery.py

fuzz:  ## throw hostile bytes at the reader for SECONDS=60, under the address sanitizer (needs a C compiler)
	@tests/fuzz/run.sh $(or $(SECONDS),60)

up: compose  ## start the service on PostgreSQL, Redis and S3, in containers (needs Docker with Compose)
	@"$(PYTHON)" deploy/make_secrets.py
	@$(COMPOSE) up --detach --build --wait
	@echo "Cupel is ready at http://$$($(COMPOSE) port gateway 8000), Prometheus at http://$$($(COMPOSE) port prometheus 9090)."
	@echo "The first token, an administrator's, is issued by"
	@echo "    $(COMPOSE) exec gateway cupel admin token --team organisers --scope admin"

down: compose  ## stop those containers; what they stored is kept
	@$(COMPOSE) down
	@echo "All data is kept: 'make up' goes on where it was, '$(COMPOSE) down --volumes' removes it for good."

compose:
	@$(COMPOSE) version >/dev/null 2>&1 || \
		{ echo "This needs Docker with Compose, but '$(COMPOSE) version' fails; 'cupel serve' needs neither."; exit 1; }

clean:  ## remove what the other targets made
	rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find libs services tests -name __pycache__ -prune -exec rm -rf {} +
	rm -rf libs/*/build services/*/build libs/*/*.egg-info services/*/*.egg-info
	find libs -name '*.so' -delete
