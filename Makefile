# Each target makes its own environment: `make demo` and `make test` need python3 (3.11 or newer) and make alone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Without bytecode on disk each process rewrites all asserts of the tests anew: half the time of a collection.
export PYTHONDONTWRITEBYTECODE :=
STAMP := $(VENV)/.installed

# Several processes share the kernel cache: one compiles a kernel, the others wait for it. Each takes one core.
TOGETHER := -n auto --dist worksteal
ONE_CORE := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=1
LINT = $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
# Few files have tests that run alone; to import all of them takes as long as those tests.
ALONE = $(shell grep -rl --include='test_*.py' 'mark\.alone' tests)
UNCOMPILED := tests/kernels tests/policies tests/simulator tests/assignment tests/prefill tests/serving/test_same_as_simulator.py

.PHONY: help demo serve-demo test test-more quick test-long fuzz faults engine-test test-bounds test-mutation test-mutation-quick coverage frozen lint bench notebooks docs proofs clean

help:
	@echo "make demo       main job on embedded data: G = 8, report in demo-report/report.html"
	@echo "make serve-demo two rules route the same requests live before a mock fleet, three minutes, one table"
	@echo "make test       lint, types, import contract, and every test in small; eight minutes on two cores"
	@echo "make test-more  what make test leaves out: more cases of its tests, kernels without compilation, all notebooks"
	@echo "make quick      lint, types, import contract, house rules, and the tests of the files that changed"
	@echo "make test-long  the checks that take minutes, and an hour of steps against themselves"
	@echo "make fuzz       a million damaged files of all formats, half an hour, goes on with --first"
	@echo "make faults     engines, routers and clients that fail, and what clients of lbopt serve get; some minutes"
	@echo "make engine-test  a real vLLM on CPUs and a real Envoy behind lbopt serve; 15 minutes, 3.5 GB in .engine or ENGINE=FOLDER"
	@echo "make test-bounds  the kernels' tests with bounds checks in compiled code, some ten minutes"
	@echo "make test-mutation  planted changes that the tests have to notice, hours, goes on if stopped"
	@echo "make test-mutation-quick  some of them, ten minutes"
	@echo "make coverage   lines and branches that the tests reach, with and without compilation, in coverage-report/"
	@echo "make frozen     write the frozen behaviour anew (CONTRIBUTING.md says when)"
	@echo "make bench      speed against the targets: the simulator's, then the exact search's (an hour, goes on if stopped)"
	@echo "make notebooks  execute the notebooks of examples/ and keep their outputs"
	@echo "make docs       the manual in docs/_build/html"
	@echo "make proofs     check the theorems in Coq and build the verified checker; needs Coq, see proofs/README.md"

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "lbopt needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/lbopt gap burstgpt-like --requests 10000 --workers 8 --slots 72 --states 50 --seeds 3 --seed 1 \
		--effort 2000000 --time-limit 60 --policy fcfs --policy round-robin --policy random --policy power-of-two --policy jsq \
		--policy jsq-load --policy vllm --policy max-min --policy br-0 --policy br-0:age_bound=50 --out demo-report

serve-demo: $(STAMP)
	$(BIN)/python examples/serve_demo.py --requests 200 --rate 9 \
		--router "round robin=$(BIN)/lbopt serve --fleet {fleet} --policy round-robin --port {port}" \
		--router "auto=$(BIN)/lbopt serve --fleet {fleet} --policy auto --port {port}"

lint: $(STAMP)
	$(LINT)

# Lint, types and the import contract are checked while the tests run, and said after them.
test: $(STAMP)
	@{ $(LINT); } >$(VENV)/lint.log 2>&1 & lint=$$!; \
	$(ONE_CORE) $(BIN)/python -m pytest $(TOGETHER) -m "not slow and not more and not alone"; tests=$$?; \
	wait $$lint; lint=$$?; cat $(VENV)/lint.log; \
	$(BIN)/python -m pytest -m "alone and not more and not slow" $(ALONE); alone=$$?; \
	test $$tests$$lint$$alone = 000 || \
		{ echo "make test failed; exit codes: tests $$tests, lint and types $$lint, tests that run alone $$alone"; exit 1; }

test-more: $(STAMP)
	$(ONE_CORE) $(BIN)/python -m pytest $(TOGETHER) -m "more and not slow and not alone"
	$(BIN)/python -m pytest -m "alone and more and not slow" $(ALONE)
	NUMBA_DISABLE_JIT=1 $(ONE_CORE) $(BIN)/python -m pytest $(TOGETHER) -m "not slow and not jit and not alone" $(UNCOMPILED)
	$(ONE_CORE) $(BIN)/python -m tests.solvers.reliability.contradictions --steps 1000000 --minutes 1 --jobs 2

quick: lint
	$(BIN)/python -m tests.quick

# The hour of steps goes on where the last one ended, so that each asks about new ones.
test-long: $(STAMP)
	$(BIN)/python -m pytest -m slow
	$(ONE_CORE) $(BIN)/python -m tests.solvers.reliability.contradictions --steps 1000000 --minutes 60 --jobs 2

fuzz: $(STAMP)
	$(ONE_CORE) $(BIN)/python -m tests.fuzz --mutants 1000000

# Other routers join where their programs are in the path: PATH=$PATH:ENVIRONMENT/bin make faults
faults: $(STAMP)
	$(BIN)/python -m tests.serving.faults --out fault-results.md

# Torch for CPUs comes from where pip is configured to find it; its build for GPUs would work, too, but takes 5 GB more.
ENGINE ?= .engine
engine-test: $(STAMP)
	$(BIN)/python -m tests.engine --into $(ENGINE) --out engine-results.md

# Compiled code reads beyond an array without a word; with bounds checks it says so. Minutes, and a cache of its own.
test-bounds: $(STAMP)
	NUMBA_BOUNDSCHECK=1 LBOPT_CACHE=$(VENV)/bounds-checked $(BIN)/python -m pytest -m "not slow" \
		tests/kernels tests/policies tests/simulator tests/predictors tests/assignment tests/locality tests/prefill \
		tests/solvers/exact tests/solvers/windows tests/solvers/known_ends

# The exit code is 1 where a room is below its goal; tests/mutation/scope.py has rooms and goals.
test-mutation: $(STAMP)
	$(BIN)/python -m tests.mutation --minutes 360

# Half of it are the tests without a mutant; a machine that has to compile them first tries fewer mutants.
test-mutation-quick: $(STAMP)
	$(BIN)/python -m tests.mutation --mutants 16 --minutes 9

# Lines of compiled kernels are counted only in the second run; the two together are the report.
coverage: $(STAMP)
	$(BIN)/coverage erase
	$(ONE_CORE) $(BIN)/python -m pytest $(TOGETHER) -m "not slow" --cov --cov-report=
	NUMBA_DISABLE_JIT=1 $(ONE_CORE) $(BIN)/python -m pytest $(TOGETHER) -m "not slow and not jit" --cov --cov-append \
		--cov-report=term --cov-report=html:coverage-report $(UNCOMPILED)

frozen: $(STAMP)
	$(BIN)/python -m tests.frozen.regenerate

bench: $(STAMP)
	$(BIN)/python -m pytest tests/benchmarks --benchmark-only --benchmark-columns=min,median,rounds
	$(BIN)/python -m tests.benchmarks.targets
	$(BIN)/python -m tests.benchmarks.lookahead_speed --out lookahead-speed
	$(BIN)/python -m tests.benchmarks.exact_targets

notebooks: $(STAMP)
	$(BIN)/python -m tests.notebooks

docs: $(STAMP)
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

# Coq, MathComp and OCaml come from the system's packages, not from Python's; `make test` needs none of them.
proofs: $(STAMP)
	$(MAKE) --no-print-directory -C proofs PYTHON=$(abspath $(BIN))/python

clean:
	rm -rf $(VENV) docs/_build demo-report coverage-report .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
