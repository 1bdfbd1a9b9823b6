# One entry for a person, a hook and CI. `make demo` and `make test` make their own .venv, once.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

PIP_INSTALL = $(BIN)/python -m pip install -qq --no-input --constraint constraints.txt

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_ROOT_USER_ACTION := ignore

PAPER_PACKAGES := libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0
TEST_PACKAGES  := $(PAPER_PACKAGES) chromium poppler-utils

.PHONY: demo test check bench soak schemas docs golden clean
.DELETE_ON_ERROR:

demo: $(STAMP)  ## Train the tiny model, evaluate, validate, verify, and build the packet.
	@tools/system_packages.sh $(PAPER_PACKAGES)
	$(BIN)/python -m molforge_train.demo

test: $(STAMP)  ## Run every test.
	@tools/system_packages.sh $(TEST_PACKAGES)
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(STAMP)  ## Lint, format, types, direction, spelling: cheapest first.
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/codespell
	$(BIN)/lint-imports --no-logo
	$(BIN)/mypy

bench: $(STAMP)  ## Measure the speeds that the README states, and attack the validator.
	$(BIN)/python -m benchmarks.laboratory
	$(BIN)/python -m benchmarks.step_share
	$(BIN)/python -m benchmarks.validation 1000000
	$(BIN)/python -m benchmarks.validation --replay
	$(BIN)/python -m benchmarks.packet --large
	$(BIN)/python -m benchmarks.attack

soak: $(STAMP)  ## Look for drift and leaks over a long run; kill a run twenty times.
	$(BIN)/python -m benchmarks.soak
	$(BIN)/python -m benchmarks.kills
	$(BIN)/python -m benchmarks.long_run
	$(BIN)/python -m benchmarks.fuzz
	$(BIN)/python -m benchmarks.guided_fuzz

schemas: $(STAMP)  ## Write the JSON Schemas from the models.
	$(BIN)/python -m molforge_eval.schema_files

docs: $(STAMP)  ## Print docs/cli.md, docs/findings.md and docs/cases.md; run every example in README, docs and docstrings.
	$(BIN)/python -m tools.cli_reference > docs/cli.md.new && mv docs/cli.md.new docs/cli.md
	$(BIN)/python -m tools.findings_reference > docs/findings.md.new && mv docs/findings.md.new docs/findings.md
	$(BIN)/python -m tools.cases_reference > docs/cases.md.new && mv docs/cases.md.new docs/cases.md
	$(BIN)/python -m pytest -p no:randomly tests/test_docs.py

golden: $(STAMP)  ## Write the golden outputs again; read the difference before you commit it.
	$(BIN)/python -m pytest -p no:randomly --snapshot-update tests/golden tests/unit/molforge_eval/report/test_page.py tests/unit/molforge_eval/test_voices.py

clean:  ## Remove what the other targets made, the environment too.
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  printf 'Python %s is too old\n  where: %s\n  mend:  make PYTHON=python3.11 (3.11 or later)\n' \
	    "$$($(PYTHON) -c 'import platform; print(platform.python_version())')" "$$(command -v $(PYTHON))" >&2; exit 2; }
	@# An installation that was cut off can leave packages that pip cannot read: such an environment is made anew.
	@test ! -e $(VENV)/.installing || rm -rf $(VENV)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $(VENV)/.installing
	@echo "installing into $(VENV), pinned by constraints.txt"
	@$(PIP_INSTALL) hatchling
	@$(PIP_INSTALL) --no-build-isolation --editable '.[train,dev]'
	@rm $(VENV)/.installing
	@touch $@
