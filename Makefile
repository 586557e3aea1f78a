# Commands for development and for a first look. `make help` lists them.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PACKAGES := $(patsubst %/pyproject.toml,%,$(wildcard libs/*/pyproject.toml services/*/pyproject.toml))
# Often more processes than cores, because many tests wait for a service.
WORKERS ?= 4
PYTEST := $(BIN)/python -m pytest
PARALLEL := -n $(WORKERS) --dist loadscope --no-loadscope-reorder

COMPOSE ?= docker compose

# No score uses numpy's linear algebra, and its idle threads only use CPU time.
export OPENBLAS_NUM_THREADS ?= 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests and demonstrations start many processes, which share the compiled modules.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-one test-all drills mutants check fix docs lock bench calibrate fuzz up down compose clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.ready-test  ## install Cupel and what its tests need into .venv (needs Python 3.11 or later)

# Each lock file has a stamp file. Its packages are installed again when the lock file or one of these files changes.
SOURCES := $(wildcard libs/*/pyproject.toml libs/*/setup.py services/*/pyproject.toml) \
	$(wildcard libs/measures/cupel_measures/native/*.[ch])

define install
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Cupel needs Python 3.11 or later; run: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; exit 1; }
	@test -x $(BIN)/python || { echo "setup: create $(VENV) with $$("$(PYTHON)" --version)"; "$(PYTHON)" -m venv $(VENV); }
	@echo "setup: install $(1) (about a minute the first time)"
	@$(BIN)/python -m pip install -qq --prefer-binary --no-compile --require-hashes --requirement $(1)
	@echo "setup: install Cupel's packages"
	@$(BIN)/python -m pip install -qq --no-deps --no-build-isolation $(patsubst %,--editable %,$(PACKAGES))
	@touch $@
endef

$(VENV)/.ready-run: requirements.lock $(SOURCES)
	$(call install,requirements.lock)

$(VENV)/.ready-test: requirements-test.lock $(SOURCES)
	$(call install,requirements-test.lock)
	@touch $(VENV)/.ready-run

$(VENV)/.ready-check: requirements-check.lock $(VENV)/.ready-test
	@echo "setup: install requirements-check.lock"
	@$(BIN)/python -m pip install -qq --prefer-binary --no-compile --require-hashes --requirement requirements-check.lock
	@touch $@

demo: $(VENV)/.ready-run  ## start a service with an example track and 30 runs (ONCE=1 ends it afterwards)
	@$(BIN)/python -m cupel_standalone.demo $(if $(ONCE),--once)

test: $(VENV)/.ready-test  ## run all tests except the drills, with samples of the large sweeps (some minutes)
	@$(PYTEST) $(PARALLEL) -m "not drill" --durations=10

test-one: $(VENV)/.ready-test  ## run chosen tests: make test-one T="tests/audits -k downsampling"
	@$(PYTEST) $(T)

test-all: $(VENV)/.ready-test  ## run all tests, with complete sweeps (about half an hour)
	@CUPEL_TEST_ALL=1 $(PYTEST) $(PARALLEL) --durations=10

drills: $(VENV)/.ready-test  ## run only the tests that inject faults into whole services (some minutes)
	@CUPEL_TEST_ALL=1 $(PYTEST) $(PARALLEL) -m drill

mutants: $(VENV)/.ready-test  ## make small changes to the code and count those that no test detects
	@$(BIN)/python tests/mutants/mutate.py $(M)

check: $(VENV)/.ready-check  ## check format, lint, types, the Dockerfile and docker-compose.yml
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker-compose.yml
	@$(BIN)/hadolint deploy/Dockerfile

fix: $(VENV)/.ready-check  ## format the code and apply the linter's safe fixes
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(VENV)/.ready-test  ## regenerate MEASURES.md and AUDITS.md
	@$(BIN)/cupel measures --format markdown > $(VENV)/generated.md && mv $(VENV)/generated.md libs/measures/MEASURES.md
	@$(BIN)/cupel audit --format markdown > $(VENV)/generated.md && mv $(VENV)/generated.md libs/audits/AUDITS.md

lock:  ## pin the dependencies of requirements*.in with hashes (needs uv)
	@for name in requirements requirements-full requirements-test requirements-check; do \
		uv pip compile --quiet $$name.in --output-file $$name.lock --universal --python-version 3.11 \
			--generate-hashes --no-header --no-emit-index-url || exit 1; done

bench: $(VENV)/.ready-test  ## compare speed and memory with other tools, measure load and recovery (half an hour)
	@$(BIN)/python tests/bench/reading.py
	@$(BIN)/python tests/bench/measures.py
	@$(BIN)/python tests/bench/comparing.py
	@$(BIN)/python tests/bench/audits.py
	@$(BIN)/python tests/bench/service.py
	@$(BIN)/python tests/bench/recovery.py

calibrate: $(VENV)/.ready-test  ## measure error rates and coverage in simulations and write CALIBRATION.md (some minutes)
	@PYTHONPATH=tests $(BIN)/python -m calibration $(if $(TRIALS),--trials $(TRIALS))

fuzz:  ## test the run reader with random bytes for SECONDS=60 and the address sanitizer (needs a C compiler)
	@tests/fuzz/run.sh $(or $(SECONDS),60)

up: compose  ## start the service on PostgreSQL, Redis and S3 in containers (needs Docker with Compose)
	@"$(PYTHON)" deploy/make_secrets.py
	@$(COMPOSE) up --detach --build --wait
	@echo "Cupel is ready at http://$$($(COMPOSE) port gateway 8000), Prometheus at http://$$($(COMPOSE) port prometheus 9090)."
	@echo "Issue the first token, an administrator's:"
	@echo "    $(COMPOSE) exec gateway cupel admin token --team organisers --scope admin"

down: compose  ## stop the containers and keep their data
	@$(COMPOSE) down
	@echo "All data is kept. Run 'make up' to start the service again, or '$(COMPOSE) down --volumes' to remove the data."

compose:
	@$(COMPOSE) version >/dev/null 2>&1 || \
		{ echo "This needs Docker with Compose, but '$(COMPOSE) version' fails. 'cupel serve' needs neither."; exit 1; }

clean:  ## remove the environment, caches and compiled files, but not the secrets of `make up`
	rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find libs services tests -name __pycache__ -prune -exec rm -rf {} +
	rm -rf libs/*/build services/*/build libs/*/*.egg-info services/*/*.egg-info
	find libs -name '*.so' -delete
