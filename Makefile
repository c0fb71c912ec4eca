# `make demo` and `make test` need only Debian 12, root or sudo, and this checkout: each runs its own set-up.

PYTHON := .venv/bin/python
LEPAUTE := .venv/bin/lepaute
DEMO_OUTPUT := demo-output

.DELETE_ON_ERROR:
.NOTPARALLEL:  # apt, pip and measurements must not run concurrently
.PHONY: help programs setup demo demo-compare check test test-long test-versions sanitize fuzz bench validate docs lint \
        format stubs clean distclean

help:
	@echo 'make setup      Debian packages, virtual environment in .venv with the tools of developers, the package, the real HPL'
	@echo 'make demo       calibrate this machine, predict HPL, run it, compare ($(DEMO_OUTPUT)/)'
	@echo 'make demo-compare  which of Open MPI and MPICH is faster on this machine, in four minutes ($(DEMO_OUTPUT)/)'
	@echo 'make check      finds most errors in a minute on two cores: format, types, quick tests of src/ (after make setup)'
	@echo 'make test       tests of the core and of the package, without the long ones; the last line counts them'
	@echo 'make test-long  all tests, the long ones and those with sanitizers too;   make test LONG=2/8: an eighth of the long ones too'
	@echo 'make test-versions  quick tests with the lowest and the newest versions of dependencies that are allowed'
	@echo 'make sanitize   the core and the extension with sanitizers'
	@echo 'make fuzz       damaged inputs to every reader, N=200000 of them (docs/design/threats.md; four minutes on 2 cores)'
	@echo 'make bench      speed and memory (docs/evidence/speed.md; two hours)'
	@echo 'make validate   compare with published figures (docs/evidence; REFERENCE=DIR: folder of the data)'
	@echo 'make docs       the site of the documentation, build/site/index.html; a dead link is an error'
	@echo 'make lint       check format, lint and types;   make format: apply the formatters'
	@echo 'make stubs      regenerate src/lepaute/_core.pyi from the compiled module'
	@echo 'make clean      remove build products;   make distclean: also .venv'

# Each script returns at once if a fingerprint of its inputs is as before; file dates miss deleted files.
programs:
	@scripts/install_debian.sh build
	@scripts/install_package.sh
	@scripts/build_programs.sh

setup: programs
	@scripts/install_package.sh dev

demo: programs
	@echo 'The demo, four to nine minutes: what is installed (10 s); this machine measured and fitted (two to four minutes);'
	@echo 'nine predictions (20 s); 36 real runs of HPL (two to four minutes). Close other programs meanwhile.'
	-@$(LEPAUTE) doctor
	@$(LEPAUTE) verify hpl --calibrate --output $(DEMO_OUTPUT)/$$(date +%Y%m%d-%H%M%S)

# One machine has one clock, for which the quick synchronisation by SKaMPI is enough.
demo-compare: programs
	@scripts/install_debian.sh compare
	@folder=$(DEMO_OUTPUT)/compare-$$(date +%Y%m%d-%H%M%S) && mkdir -p $$folder && \
	$(LEPAUTE) compare openmpi mpich --ops bcast,allreduce,alltoall --sizes 8,512,4K,32K,256K --np 2 --budget 2min \
	  --clock-method SKaMPI -o $$folder/comparison.zip --report $$folder/comparison.html

check:
	@test -x $(PYTHON) || { echo 'make check: no .venv yet, run make setup'; exit 2; }
	@$(PYTHON) scripts/check.py $(ARGS)

test: setup
	@scripts/install_debian.sh test
	@scripts/build_core_tests.sh
	@$(PYTHON) scripts/run_tests.py $(if $(LONG),--long '$(LONG)')

test-long: LONG := all
test-long: test sanitize

sanitize: setup
	@scripts/install_debian.sh test
	@scripts/sanitize.sh

# Each of these in an environment of its own: the lowest and the newest versions that pyproject.toml allows.
test-versions: setup
	@scripts/test_versions.sh lowest $(PYTHON)
	@scripts/test_versions.sh highest $(PYTHON)

fuzz: setup
	@$(PYTHON) validation/fuzz_readers.py $(or $(N),200000) $(if $(SEED),--seed $(SEED))

bench: setup
	@scripts/run_folder.sh benchmarks

validate: setup
	@scripts/run_folder.sh validation $(if $(REFERENCE),--reference '$(REFERENCE)')

docs: setup
	@scripts/build_site.sh

lint: setup
	@scripts/install_debian.sh lint
	@scripts/lint.sh

format: setup
	@scripts/install_debian.sh lint
	@scripts/format.sh

stubs: setup
	@$(PYTHON) -m nanobind.stubgen -q -m lepaute._core -o src/lepaute/_core.pyi

clean:
	rm -rf build dist $(DEMO_OUTPUT) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -path ./.venv -prune -o -name __pycache__ -type d -print | xargs rm -rf
	rm -f .venv/lepaute-package.fingerprint

distclean: clean
	rm -rf .venv
