# fencepost: `make help` says what there is. Every target does its own set-up.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

# Some images forbid it. Without bytecode each pytest process rewrites all modules: 20 s of processor
# time, for each of a dozen processes, and each `fencepost` compiles what it imports.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
COUNT ?= 1000000
ORACLES = PYTHONPATH=src:. nice $(BIN)/python -m tests.oracles.soak
TIME ?= 20m
SOAK = PYTHONPATH=src:. $(BIN)/python -m tests.soak
FUZZ = PYTHONPATH=src:. nice $(BIN)/python -m tests.fuzz.run
STAGES := build/stages.txt
# What tests draw at random: new with each commit, and the same wherever that commit is tested.
DRAWN := $(or $(shell git rev-parse --short=12 HEAD 2>/dev/null),1)
PYTEST = $(BIN)/pytest -q --hypothesis-seed=$(DRAWN)
CACHED = $(PYTEST) -o cache_dir=build/$(1)-cache
CLUSTER = $(call CACHED,cluster)
# Each process of pytest imports all modules before it chooses tests by their marks. $(call marked,MARK)
marked = $(or $(ARGS),$(2) $(shell grep -rlE '\bmark\.$(1)\b' tests --include='test_*.py'))
# The files of slow tests that take the most processor time, the longest first. Otherwise xdist begins
# with those that have the most tests, and one processor waits for the last of these.
LONGEST = $(addprefix tests/hunt/,live/test_electors.py intercept/test_kazoo.py search/test_single.py \
        intercept/test_libraries.py faults/test_cancel.py search/test_campaign.py live/test_programs.py \
        bridge/test_bridge.py live/test_other_servers.py test_your_elector.py test_electors.py)
# Three runs at a time on two processors, and slow tests that get what they leave, may have too little
# time for their faults. Such a test passes alone; its failure stays in the output, and its name in
# the list of stages. $(call again,CACHE,MARKS,PLACE)
again = { (($$? == 1)) && echo 'again, one at a time:' && \
        $(call CACHED,$(1)) -p no:xdist -rA --show-capture=no --last-failed --last-failed-no-failures none \
        -m '$(2)' $(3) | tee build/again-$(1).txt && \
        sed -n 's/^PASSED /          passed only alone: /p' build/again-$(1).txt >> $(STAGES); }
# $(call stage,NAME,COMMAND): run it, and note how long it took.
stage = @mkdir -p build; begun=$$(date +%s); echo '$(1):'; $(2); code=$$?; \
        printf '%6d s  %s%s\n' $$(($$(date +%s) - begun)) '$(1)' "$$( ((code)) && echo ': failed')" >> $(STAGES); exit $$code
.PHONY: help install test test-unit test-slow test-oracles test-cluster test-long test-kubernetes fuzz soak soak-checkers lint format docs nightly site bench bench-adapters bench-checkers bench-flat bench-harness bench-hunt \
        bench-judge bench-own-locks bench-lincheck bench-nemesis bench-start api defects track-record heal clean lock mutants test-redlock

help: ## what there is
	@awk -F':.*## ' '/^[a-z%-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(READY) ## .venv with fencepost in it; no Docker, no root

$(READY): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "fencepost needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install -q --require-hashes -r requirements.lock
	$(BIN)/pip install -q --no-deps --no-build-isolation -e .
	@touch $@

trial-%: install ## one suite on trial: trial-redlock, trial-etcd, ...; `fencepost suite --help` names them
	$(BIN)/fencepost suite $* $(ARGS)

# A published schedule waits most of the time: two clusters at a time fit two processors.
test-redlock: install ## Redlock on trial: the published schedules, then faults at random
	$(BIN)/fencepost suite redlock --parallel 2 $(ARGS)

nightly: install ## everything within BUDGET=8h, with a new seed or with SEED of the environment; red where an outcome changed
	$(BIN)/fencepost nightly run --budget $(or $(BUDGET),8h) $${SEED:+--seed "$$SEED"} $(ARGS)

site: install ## the results folder as a static site, in build/site
	$(BIN)/fencepost site build/site $(ARGS)

track-record: install ## every defect found in software that people use, shown once more; the table in docs/track-record.md
	$(BIN)/fencepost track-record --keep docs/track-record.json $(ARGS); code=$$?; $(MAKE) -s docs; exit $$code

defects: install ## the catalogue of lock defects: which are found in histories, hunts and on servers; the table in docs/defects.md
	$(BIN)/fencepost defects --play --keep docs/defects.json $(ARGS); code=$$?; $(MAKE) -s docs; exit $$code

bench: install ## what the locks cost, against one Redis
	$(BIN)/fencepost bench redlock zookeeper etcd etcd-lock-api chubby postgres $(ARGS)

test: install ## everything that must pass; what needs no servers takes the processors that they leave idle
	@rm -f $(STAGES)
	@$(MAKE) -j2 --no-print-directory --output-sync=line test-first test-image && \
	$(MAKE) -j2 --no-print-directory --output-sync=line test-cluster test-beside; code=$$?; cat $(STAGES); exit $$code

.PHONY: test-first test-image test-beside test-spoilt test-checkers
test-first:
	@$(MAKE) -j2 --no-print-directory --output-sync=line test-lint test-compiled
	$(MAKE) --no-print-directory test-unit

.PHONY: test-lint test-compiled
test-lint:
	$(call stage,lint,$(MAKE) --no-print-directory lint)

# In a fresh clone all processes of pytest would compile the same thousand files at once, and look for
# the same constants in them. Errors of the collection are those of the unit tests.
test-compiled: install
	$(call stage,compilation beside lint,$(PYTEST) -p no:xdist --collect-only > build/collected.txt || echo 'not compiled')

# The build waits for the network most of the time. Where it fails, the tests on real servers say why.
test-image: install
	$(call stage,image of the nodes,$(BIN)/fencepost cluster build || echo 'not built')

# Slow tests often wait, so they come first, beside the clusters. The checkers' only compute: they take
# both processors once the clusters are gone.
test-beside:
	$(MAKE) --no-print-directory -j1 test-spoilt test-slow test-checkers

# They wait a third of their time: two for each processor.
test-unit: install ## the tests that need no cluster and no second
	$(call stage,unit tests,$(PYTEST) -n $$((2 * $$(nproc))) --dist loadfile -m 'not cluster and not oracle and not slow and not kubernetes' $(ARGS))

test-slow: install ## whole programs, hunts and long searches, without a cluster; one that fails is run again, too
	@rm -rf build/slow-cache
	$(call stage,slow tests,nice $(call CACHED,slow) -n $$((2 * $$(nproc))) --dist loadfile --no-loadscope-reorder -m 'slow and not oracle' --durations=15 $(call marked,slow,$(LONGEST)) || $(call again,slow,slow and not oracle,$(call marked,slow,$(LONGEST))))

test-cluster: install ## the tests on real servers, almost all of them side by side; one that fails is run again alone, and named
	@rm -rf build/cluster-cache
	$(call stage,cluster side by side,$(CLUSTER) -n 3 -m 'cluster and not alone and not long' --durations=15 tests/cluster || $(call again,cluster,cluster and not alone and not long,tests/cluster))
	$(call stage,cluster alone,$(CLUSTER) -p no:xdist -m 'cluster and alone' --durations=5 tests/cluster)

test-long: install ## the tests on real servers that take minutes each; not part of make test
	$(CLUSTER) -n 3 -m 'cluster and long' --durations=15 tests/cluster

test-kubernetes: install ## real API servers: builds kube-apiserver, once; the model against one that is on the path
	$(BIN)/pytest -q -m kubernetes --durations=15 $(ARGS)

test-oracles: install ## the checkers against brute force, on 10,000 fresh histories each, ground truth, spoilt files
	$(MAKE) --no-print-directory -j1 test-checkers test-spoilt

test-checkers: install
	$(call stage,oracle tests,nice $(PYTEST) -n 2 --dist worksteal -m oracle $(call marked,oracle))
	$(call stage,oracles on 10000 histories each,$(ORACLES) --count 10000 --seed $(DRAWN) $(ARGS))

test-spoilt: install
	$(call stage,fuzz,$(FUZZ) --seconds 30 --seed 1)

fuzz: install ## spoilt files to every reader of files, for some minutes; ARGS='--seconds 600 --seed 7'
	$(FUZZ) --seconds 300 $(ARGS)

soak: install ## real runs for BUDGET=20m in one process; what each may leave is the same at the end
	$(SOAK).run --budget $(or $(BUDGET),20m) $(ARGS)

soak-checkers: install ## the same on a million each (COUNT=...), on simulated services, lincheck's evidence, records of hunts
	$(ORACLES) --count $(COUNT) $(ARGS)
	PYTHONPATH=src:. $(BIN)/python -m tests.simulated.soak --runs $$(($(COUNT) / 400 + 1))
	PYTHONPATH=src:. $(BIN)/python -m tests.oracles.true_causes --runs $$(($(COUNT) / 50 + 1))
	PYTHONPATH=src:. $(BIN)/python -m tests.checker.lincheck.lincheck_soak --count $$(($(COUNT) / 100 + 1))
	FENCEPOST_SCHEDULES=$$(($(COUNT) / 100 + 1)) $(PYTEST) -n $$(nproc) -m oracle tests/hunt/search/test_prefilter.py

mutants: install ## mutation testing of checker/: hours; ARGS=checker/facts/holds.py for some files
	nice $(BIN)/python tests/mutation/run.py $(ARGS)

lint: install ## format, lint, types and plain prose; workflows and the action against GitHub's schemas
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/mypy
	$(BIN)/python tools/prose.py
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema -q --builtin-schema vendor.github-actions action.yml

docs: install ## write the tables in docs/ that are made from the code
	PYTHONPATH=src $(BIN)/python tools/docs.py

format: install ## put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-harness: install ## what recording costs, against the same loop without it
	$(BIN)/python benchmarks/recording.py

bench-flat: install ## one run of TIME=20m with every fault, and what grows in it; ARGS=etcd for another lock
	$(SOAK).flat --time $(TIME) $(ARGS)

bench-start: install ## where the time of a 10 s run goes, from the command to its verdict; ARGS=--pytest
	$(BIN)/python benchmarks/start.py $(ARGS)

bench-adapters: install ## what our adapters cost, against the bare calls beneath them
	$(BIN)/python benchmarks/adapters.py $(ARGS)

bench-nemesis: install ## how long faults take from decision to effect
	$(BIN)/python benchmarks/faults.py

bench-checkers: install ## what the history checkers take, and how it grows
	$(BIN)/python benchmarks/checkers.py

bench-hunt: install ## what the hunt finds in how long, and how fast it is; ARGS='--rows redlock-speed,sound --sound 600'
	$(BIN)/python benchmarks/hunt.py $(ARGS)

bench-own-locks: install ## whether the hunt tells a user lock's defects from those of its servers; the table in docs/hunt.md
	PYTHONPATH=src $(BIN)/python benchmarks/own_locks.py $(ARGS)
	PYTHONPATH=src $(BIN)/python tools/docs.py

bench-judge: install ## what judging a long run takes, and its page in Chromium; ARGS=--long
	$(BIN)/python benchmarks/judge.py $(ARGS)

bench-lincheck: install ## the checker's speed against Porcupine's
	$(BIN)/python benchmarks/lincheck.py

heal: install ## undo and remove whatever a killed run left
	$(BIN)/fencepost heal

api: install ## the API pages from docstrings, in build/api
	$(BIN)/pip install -q 'pdoc>=15'
	$(BIN)/python -W ignore::UserWarning tools/api.py build/api

lock: ## pin the dependencies again
	$(BIN)/pip install -q pip-tools
	$(BIN)/pip-compile -q --generate-hashes --strip-extras --no-emit-index-url --no-emit-trusted-host \
	  --no-emit-find-links --no-header --allow-unsafe --extra harness --extra dev \
	  --output-file requirements.lock pyproject.toml

clean: ## remove the environment and what tools left, not results/
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis mutants
