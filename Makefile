# Two commands do everything: `make demo` and `make test`. While you work, `make quick` is the inner loop.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST := $(VENV)-lowest
TESTED_LOWEST = $(addprefix tests/,property oracle formats faults contract fuzz surface) \
	$(patsubst %,--ignore=tests/surface/test_%.py,repository wheel supply_chain) \
	--deselect=tests/surface/test_outputs.py::test_the_lecture_is_that_of_the_guide
PACKAGES := page/node_modules/.installed
APT := $(if $(filter 0,$(shell id -u)),,sudo) env DEBIAN_FRONTEND=noninteractive apt-get
# It brings its schemas along; the package of actionlint fetches a program from elsewhere when it is installed.
SCHEMA = $(BIN)/check-jsonschema --builtin-schema
# Tests start many processes, which share the byte code of modules.
export PYTHONDONTWRITEBYTECODE =
SOURCES := pyproject.toml constraints.txt $(shell find src -name '*.py')

.PHONY: demo test quick boundscheck fuzz faults check docs page wheel sbom audit lock lowest bench tools clean

demo: $(VENV)/.installed
	$(BIN)/crowdwise demo --out demo

test: tools $(VENV)/.dev $(PACKAGES) check
	$(BIN)/python -m pytest -n 2 --dist worksteal

# The inner loop: contracts of every model, kernels against their oracles, and properties.
quick: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/contract/test_every_model.py tests/oracle tests/property

# The tests of the compiled kernels, with every index checked. That code has a cache of its own: numba would mix them up.
boundscheck: $(VENV)/.dev
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(abspath $(VENV))/boundscheck $(BIN)/python -m pytest -n 2 --dist worksteal \
	tests/contract/test_every_model.py tests/contract/test_click_kernels.py tests/oracle tests/property

check: $(VENV)/.dev
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy --num-workers 2
	$(SCHEMA) vendor.github-workflows .github/workflows/*.yml
	$(SCHEMA) vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(SCHEMA) vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(SCHEMA) vendor.citation-file-format CITATION.cff
	$(BIN)/pre-commit validate-config

# Random inputs to everything that reads: `make fuzz`, or `make fuzz FUZZ="--seconds 3600 --seed 7"`.
fuzz: $(VENV)/.dev
	$(BIN)/python tests/fuzz/fuzzing.py $(FUZZ)

# Every system call of every command on its files fails once: `make faults`, or `make faults FAULTS="--only watch"`.
faults: tools $(VENV)/.dev
	$(BIN)/python tests/injection/walking.py $(FAULTS)

# What docs/ and examples/ show, run.
docs: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 tests/surface/test_docs.py tests/surface/test_surface.py -k 'snippets or example or pages'

# The types, script and style of the report page, written to page/src/generated.ts and src/crowdwise/report/static.
page: $(PACKAGES) $(VENV)/.dev
	$(BIN)/python page/generate.py
	cd page && npm run check && npm run build

# The wheel and the source archive, in dist/.
wheel: $(VENV)/.dev
	$(BIN)/hatchling build --target wheel --target sdist

# What the wheel is made of and needs: crowdwise.cdx.json, which the wheel carries. After `make lock` and `make page`.
sbom: $(VENV)/.dev
	$(BIN)/python scripts/sbom.py

# Known vulnerabilities in what is locked, for Python and for the page; "Error 3" means no data, as without a network.
audit: tools $(VENV)/.dev
	$(BIN)/python scripts/audit.py

# constraints.txt from pyproject.toml: pins stay where they can. `make lock UPGRADE=--upgrade` moves all of them.
lock: $(VENV)/.dev
	$(BIN)/python scripts/lock.py $(UPGRADE)

# The tests with the lowest versions that pyproject.toml allows, in an environment of its own, without torch. Left out are
# tests of the repository and of the page, and one that samples tasks by polars' hash, which polars changes at times.
lowest: tools
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) scripts/lowest.py > $(LOWEST)/lowest.txt
	$(PYTHON) scripts/lowest.py tools > $(LOWEST)/tools.txt
	$(LOWEST)/bin/python -m pip install --quiet --no-compile --constraint $(LOWEST)/lowest.txt \
		--requirement $(LOWEST)/tools.txt --editable '.[learn,pandas,plot,spark]'
	$(LOWEST)/bin/crowdwise demo --out $(LOWEST)/demo
	$(LOWEST)/bin/python -m pytest -n 2 --dist worksteal $(TESTED_LOWEST)

bench: $(VENV)/.bench
	$(BIN)/python bench/quality.py
	$(BIN)/python bench/speed.py

# What tests need besides Python, where it is missing: a browser for the page, Node to build it again, Java for Spark, a
# C compiler for fault injection.
tools:
	@need=; \
	command -v chromium >/dev/null || need="chromium fonts-dejavu-core"; \
	command -v node >/dev/null || need="$$need nodejs"; \
	command -v npm >/dev/null || need="$$need npm"; \
	command -v java >/dev/null || [ -n "$$JAVA_HOME" ] || need="$$need openjdk-17-jre-headless"; \
	command -v cc >/dev/null || need="$$need gcc libc6-dev"; \
	[ -z "$$need" ] || { $(APT) update && $(APT) install --yes --no-install-recommends $$need; }

$(PACKAGES): page/package-lock.json | tools
	cd page && npm ci --no-audit --no-fund --ignore-scripts
	@touch $@

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python $(SOURCES)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt .
	@touch $@

# Modules are compiled when they are first imported: most of those that are installed never are.
$(VENV)/.dev: $(BIN)/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	@touch $@ $(VENV)/.installed

$(VENV)/.bench: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $@

clean:
	rm -rf $(VENV) $(LOWEST) demo build dist page/node_modules
	find src -name "*.nb[ic]" -delete
