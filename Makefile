# One entry point for people and for CI. Everything is set up on first use.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
PYTEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
FAST := not (spark or postgres or browser or notebook or slow)
CORE := .venv/.core
KERNELS := .venv/.kernels
# pip compiles nothing below: Python does, what it imports, once
export PYTHONDONTWRITEBYTECODE :=

.PHONY: attack docs notebook site demo test tests kernels quick slow-list core oldest check lint types fuzz bench benchmark reproduce frontier picture pictures venv clean

venv: $(STAMP)

$(CORE): pyproject.toml constraints.txt  # what a release needs, and nothing else
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e .
	touch $(CORE)

$(STAMP): $(CORE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	touch $(STAMP)

demo: $(CORE)  ## the main job on an embedded sample
	$(BIN)/dpsr demo --out demo-release --force

test: $(STAMP) lint  ## lint; types, documentation and kernels side by side; all tests
	$(MAKE) --no-print-directory -j3 types site kernels
	$(MAKE) --no-print-directory tests

tests: $(STAMP)
	$(PYTEST)

kernels: $(KERNELS)

$(KERNELS): $(STAMP) $(shell find src -name '*.py')  # once for all processes of the tests: each would compile for itself
	$(BIN)/python tests/helpers/compile_kernels.py
	touch $(KERNELS)

quick: $(STAMP)  ## on every save: no Spark, server, browser or notebook, nothing slow
	$(PYTEST) -m "$(FAST)"

slow-list: $(STAMP)  ## measure all tests anew; what takes half a second or more is left out of the fast lane
	$(PYTEST) --slow-list

check: lint types  ## ruff and mypy

lint: $(STAMP)
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks

types: $(STAMP)
	$(BIN)/mypy

fuzz: $(STAMP)  ## ten thousand mutated release folders, in slices
	$(BIN)/python tests/helpers/fuzz_folders.py 10000

bench: $(STAMP)  ## ratios within one run; never a test
	$(BIN)/python -m benchmarks

QUICK ?=

attack: $(STAMP)  ## attack the whole product as an adversary would; QUICK=1 for the short form
	$(BIN)/python -m benchmarks.attack $(if $(QUICK),--quick)

reproduce: $(STAMP)  ## the paper's experiment: tables, figures, tests
	$(BIN)/dpsr reproduce --out reproduction

DATA ?= ../shared/data

UNIT ?= value

frontier: $(STAMP)  ## accuracy against epsilon on real rating sets in $(DATA); UNIT=user or UNIT=rating for people, LIKES=1 for lists
	$(BIN)/dpsr frontier --data $(DATA) --out frontier $(if $(LIKES),--likes,--unit $(UNIT))

FULL ?=

benchmark: $(STAMP)  ## every method side by side; FULL=--full for everything
	$(BIN)/dpsr benchmark $(wildcard $(DATA)) realistic paper --out benchmark --document docs/benchmark.md $(FULL)
	$(BIN)/dpsr benchmark $(wildcard $(DATA)) realistic --likes --out benchmark --document docs/benchmark.md $(FULL)

picture: $(STAMP) demo  ## the card of the demo release as an image; needs Chromium
	$(BIN)/python tests/helpers/screenshot.py demo-release docs/card.png

pictures: $(STAMP)  ## the studio's journey as images; needs Chromium
	$(BIN)/python tests/helpers/studio_pictures.py docs/studio

core:  ## what `pip install dpsr` alone brings: its size, and the main job with it
	rm -rf .core && $(PYTHON) -m venv .core
	.core/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt .
	.core/bin/python -m pip uninstall --quiet --disable-pip-version-check --yes pip setuptools
	.core/bin/dpsr doctor
	.core/bin/dpsr demo --out .core/demo-release
	.core/bin/dpsr verify .core/demo-release
	.core/bin/dpsr recommend .core/demo-release --user 1
	cd .core/lib/python*/site-packages && du -sm * | sort -rn | head -12 && du -sm .

oldest: export NUMBA_OPT := 0
oldest:  ## the main job, barely optimised, with the oldest versions of its libraries that pyproject.toml allows
	rm -rf .oldest && $(PYTHON) -m venv .oldest
	$(PYTHON) tests/helpers/oldest_requirements.py > .oldest/requirements.txt
	.oldest/bin/python -m pip install --quiet --disable-pip-version-check --no-compile -r .oldest/requirements.txt .
	.oldest/bin/dpsr demo --out .oldest/demo-release
	.oldest/bin/dpsr verify .oldest/demo-release
	.oldest/bin/dpsr verify .oldest/demo-release-people

clean:
	rm -rf .venv .core .oldest build dist site demo-release demo-release-people reproduction frontier benchmark

site: $(STAMP)  ## the documentation site, link-checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebook: $(STAMP)  ## run the example notebook and store what it shows
	$(BIN)/python tests/helpers/run_notebook.py examples/quickstart.ipynb

docs: $(STAMP)  ## regenerate the command reference
	$(BIN)/python -m dpsr.cli.reference > docs/cli.md
