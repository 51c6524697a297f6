# Two commands do everything: `make demo` and `make test`. While you work, `make quick` is the inner loop.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PACKAGES := page/node_modules/.installed
APT := $(if $(filter 0,$(shell id -u)),,sudo) env DEBIAN_FRONTEND=noninteractive apt-get
SOURCES := pyproject.toml constraints.txt $(shell find src -name '*.py')

.PHONY: demo test quick check page bench tools clean

demo: $(VENV)/.installed
	$(BIN)/crowdwise demo --out demo

test: tools $(VENV)/.dev $(PACKAGES) check
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The inner loop: contracts of every model, kernels against their oracles, and properties.
quick: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/contract/test_every_model.py tests/oracle tests/property

check: $(VENV)/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

# The types, script and style of the report page, written to page/src/generated.ts and src/crowdwise/report/static.
page: $(PACKAGES) $(VENV)/.dev
	$(BIN)/python page/generate.py
	cd page && npm run check && npm run build

bench: $(VENV)/.bench
	$(BIN)/python bench/quality.py
	$(BIN)/python bench/speed.py

# What tests need besides Python, where it is missing: a browser for the page, and Node to build it again.
tools:
	@need=; \
	command -v chromium >/dev/null || need="chromium fonts-dejavu-core"; \
	command -v node >/dev/null || need="$$need nodejs"; \
	command -v npm >/dev/null || need="$$need npm"; \
	[ -z "$$need" ] || { $(APT) update && $(APT) install --yes --no-install-recommends $$need; }

$(PACKAGES): page/package-lock.json | tools
	cd page && npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt .
	@touch $@

$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) demo build dist page/node_modules
	find src -name "*.nb[ic]" -delete
