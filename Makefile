# Every target works on a fresh clone: it makes its own venv. As root on a machine with apt it
# installs the missing packages of the system; otherwise it prints the command that does.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STATE ?= state
IMAGE := $(STATE)/image/vanilla-3.5.0
export PYTHON

.PHONY: help demo run image venv test lint format docs bench simulate kills causes secrets faults digests clean
.DEFAULT_GOAL := help

help: ## Show the targets
	@awk -F':.*## ' '/^[a-z]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: image ## Build a cluster of real Hadoop on this machine, run jobs on it, delete it
	@$(BIN)/svcd demo --state-dir $(STATE)/demo --image $(IMAGE) $(ARGS)

run: image ## Serve 127.0.0.1:8386 with the embedded cloud; ARGS="--set …" for settings
	@$(BIN)/twistd -n --pidfile= svcd --set server.state_dir=$(STATE) $(ARGS)

image: $(VENV)/.run ## Build the software of clusters; WITHOUT=spark leaves Spark out, also for demo and run
	@scripts/need jdk
	@$(BIN)/svcd image build vanilla $(addprefix --without ,$(WITHOUT)) $(IMAGE)

INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 \
	--config-settings editable_mode=compat

$(VENV)/.run: setup.py pyproject.toml
	@scripts/need python-venv
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed: make venv PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "making $(VENV): about a minute"
	@test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	@$(INSTALL) -e '.[postgresql]'
	@touch $@

$(VENV)/.stamp: $(VENV)/.run
	@echo "adding the packages for tests and lint to $(VENV): about a minute"
	@$(INSTALL) -e '.[dev,postgresql]'
	@touch $@

venv: $(VENV)/.stamp ## Make .venv with the packages for running, tests and lint
	@:

test: lint image ## Run lint and a sample of the tests; SVCD_TEST_EXHAUSTIVE=1 for all, TESTS=MODULE for one
	@scripts/need postgresql
	@SVCD_VANILLA_PREFIX=$(CURDIR)/$(IMAGE) $(BIN)/python -m tests.run $(or $(TESTS),tests)

# Tests and benchmarks are not typed; but names and arguments that are gone are found in them.
lint: venv ## Run ruff, mypy --strict and the import contracts
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@! $(BIN)/mypy tests benchmarks | grep -E '\[call-arg\]|Module "svcd[^"]*" has no attribute'
	@$(BIN)/lint-imports

format: venv ## Format the code, and apply the fixes of ruff
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: venv ## Make the site of the documentation in build/docs
	@$(BIN)/python -m sphinx -q -W --keep-going -E -d build/doctrees docs build/docs
	@echo "made build/docs/index.html"

bench: venv ## Run all benchmarks; ARGS=NAME for one, ARGS=--help lists them
	@$(BIN)/python -m benchmarks $(ARGS)

SEEDS ?= 10000
FROM ?= 0

simulate: venv ## Run random histories of the whole service; SEEDS=1 FROM=42 ARGS=--show replays one
	@$(BIN)/python -m tests.simulation --seeds $(SEEDS) --from $(FROM) $(ARGS)

KILLS ?= 100
SEED ?= 0

kills: image ## Kill the daemon 100 times during real jobs; ARGS="--platform JSON" for a real cloud
	@$(BIN)/python -m tests.kills --kills $(KILLS) --seed $(SEED) --image $(IMAGE) $(ARGS)

causes: image ## Run the commonest mistakes of each type of job on real Hadoop; ARGS="--only Pig" for some
	@$(BIN)/python -m tests.causes --image $(CURDIR)/$(IMAGE) $(ARGS)

LINES ?= 1000000

secrets: venv ## Search a million lines of output for secrets; LINES=20000 for fewer
	@$(BIN)/python -m tests.secrets --lines $(LINES) $(ARGS)

faults: venv ## Break the real OpenStack of SVCD_TEST_OS_PLATFORM during work, about two minutes
	@$(BIN)/python -m tests.run tests.faults.services

digests: venv ## Renew the digests of the jars of the software; SPARK=4.2.0 for those of Spark
	@$(if $(SPARK),:,scripts/need jdk maven)
	@$(BIN)/python scripts/$(if $(SPARK),image-spark-digests $(SPARK),image-digests)

clean: ## Remove .venv and the files of builds and tests, never the state folder
	rm -rf $(VENV) build dist *.egg-info _trial_temp*
