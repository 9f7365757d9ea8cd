# One entry point for people and for CI. Everything is set up on first use.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
CORE := .venv/.core

.PHONY: docs notebook site demo test check bench benchmark reproduce frontier picture venv clean

venv: $(STAMP)

$(CORE): pyproject.toml constraints.txt  # what a release needs, and nothing else
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $(CORE)

$(STAMP): $(CORE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: $(CORE)  ## the main job on an embedded sample
	$(BIN)/dpsr demo --out demo-release --force

test: $(STAMP)  ## lint, types, documentation, all tests
	$(MAKE) --no-print-directory check site
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

check: $(STAMP)  ## ruff and mypy
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

bench: $(STAMP)  ## ratios within one run; never a test
	$(BIN)/python -m benchmarks

reproduce: $(STAMP)  ## the paper's experiment: tables, figures, tests
	$(BIN)/dpsr reproduce --out reproduction

DATA ?= ../shared/data

frontier: $(STAMP)  ## accuracy against epsilon on real rating sets in $(DATA)
	$(BIN)/dpsr frontier --data $(DATA) --out frontier

FULL ?=

benchmark: $(STAMP)  ## every method side by side; FULL=--full for everything
	$(BIN)/dpsr benchmark $(wildcard $(DATA)) realistic paper --out benchmark --document docs/benchmark.md $(FULL)

picture: $(STAMP) demo  ## the card of the demo release as an image; needs Chromium
	$(BIN)/python tests/helpers/screenshot.py demo-release docs/card.png

clean:
	rm -rf .venv build dist site demo-release reproduction frontier benchmark

site: $(STAMP)  ## the documentation site, link-checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebook: $(STAMP)  ## run the example notebook and store what it shows
	$(BIN)/python tests/helpers/run_notebook.py examples/quickstart.ipynb

docs: $(STAMP)  ## regenerate the command reference
	$(BIN)/python -m dpsr.cli.reference > docs/cli.md
