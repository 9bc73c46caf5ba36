# The front door. Needs Python >= 3.10 (with venv and pip), a C compiler and make; everything else
# is fetched into .venv. Other interpreters and compilers: make PYTHON=python3.12 CC=clang ...
PYTHON ?= python3
VENV := .venv
PIP := $(VENV)/bin/pip --disable-pip-version-check
STAMP := $(VENV)/stamp
INSTALL := $(PIP) install -q --no-build-isolation
export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)

PACKAGE := $(wildcard pyrpo/*.py pyrpo/*/*.py csrc/*.[ch] include/*.h tools/*.[ch]) \
           pyrpo/meson.build pyrpo/rpo.pc.in meson.build meson.options pyproject.toml README.md LICENSE
C_FILES = $(wildcard include/*.h csrc/*.[ch] tools/*.[ch] tests/c/*.[ch] tests/c/*.cpp \
                    examples/c/*.[ch] examples/cpp/*.cpp tests/fuzz/*.[ch])
PY_FILES := pyrpo tests bench examples

.PHONY: help demo bench bench-boosting bench-sparse bench-joly2014 bench-joly2017 bench-bi2013 \
        bench-mineiro2015 \
        test test-c test-examples test-python check lint check-c dev format clean \
        check-long long-python long-sanitize long-serial long-valgrind long-clang long-race long-foreign \
        long-soak long-analysis coverage fuzz fuzz-text

help:
	@echo "make demo        forests on a generated problem with 1000 labels: a table and demo.png"
	@echo "make test        C tests, C, C++ and Rust examples, Python tests against the installed package"
	@echo "make dev         editable install: C sources are rebuilt on import"
	@echo "make bench       speed and size beside scikit-learn (DATA=folder, ARGS='--quick')"
	@echo "make bench-boosting  boosting beside the peers that are installed in .venv; its page"
	@echo "make bench-sparse    sparse products beside scipy's and the memory's speed"
	@echo "make bench-joly2014  the forest paper's tables and figures (DATA=folder, ARGS='--quick')"
	@echo "make bench-joly2017  the boosting paper's tables and figures (DATA=folder, ARGS='--quick')"
	@echo "make bench-bi2013, make bench-mineiro2015  those of the papers on label spaces"
	@echo "make check       linters, formatters, C tests under the address and UB sanitizers"
	@echo "make check-long  slow Python tests; C tests in valgrind, without OpenMP, by clang, for races,"
	@echo "                 with sanitizers for all instruction sets, big-endian and of 32 bits; eight"
	@echo "                 threads for ten minutes; static analysis"
	@echo "make fuzz        libFuzzer (clang): models, text for rpo-predict, the C interface (RUNS=100000)"
	@echo "make fuzz-text   atheris on the readers of text files (RUNS=100000)"
	@echo "make coverage    lines and branches of csrc that the C tests reach"
	@echo "make format      rewrite the sources as 'make check' wants them"
	@echo "make clean       remove .venv and everything built"

# ---- .venv, by stamps -----------------------------------------------------------------------------

$(STAMP)/venv:
	$(PYTHON) -m venv $(VENV)
	@mkdir -p $(STAMP)
	@touch $@

$(STAMP)/build-tools: | $(STAMP)/venv
	$(PIP) install -q --upgrade pip
	$(PIP) install -q "meson-python>=0.17" "cffi>=1.17" meson ninja
	@touch $@

# The package as users have it, not editable; a kept build directory makes rebuilding quick.
$(STAMP)/package: $(PACKAGE) $(STAMP)/build-tools
	$(INSTALL) -Cbuild-dir=build/python ".[plot]"
	@touch $@

$(STAMP)/test-tools: pyproject.toml $(STAMP)/build-tools
	$(INSTALL) -Cbuild-dir=build/python ".[plot,test]"
	@touch $@

# Formatters change their minds between versions.
$(STAMP)/lint-tools: | $(STAMP)/venv
	$(PIP) install -q "ruff==0.17.*" "clang-format==23.*"
	@touch $@

# ---- using ------------------------------------------------------------------------------------------

demo: $(STAMP)/package
	$(VENV)/bin/python examples/demo.py

bench: $(STAMP)/package
	$(VENV)/bin/python bench/forest.py $(if $(DATA),--data $(DATA)) $(ARGS)
	$(VENV)/bin/python -m bench.labels $(if $(DATA),--data $(DATA)) $(ARGS)

bench-boosting: $(STAMP)/package
	$(VENV)/bin/python bench/boosting.py $(if $(DATA),--data $(DATA)) $(ARGS)
	$(VENV)/bin/python bench/tuned.py $(if $(DATA),--data $(DATA))
	$(VENV)/bin/python bench/boosting_page.py

bench-sparse: $(STAMP)/package
	$(VENV)/bin/python bench/sparse.py $(ARGS)

bench-joly2014: $(STAMP)/package
	$(VENV)/bin/python -m bench.joly2014 $(if $(DATA),--data $(DATA)) $(ARGS)

bench-joly2017 bench-bi2013 bench-mineiro2015: bench-%: $(STAMP)/package
	$(VENV)/bin/python -m bench.$* $(if $(DATA),--data $(DATA)) $(ARGS)

# ---- testing -----------------------------------------------------------------------------------------

test: test-c test-examples test-python

test-c: build/c/build.ninja
	meson test -C build/c --print-errorlogs

# In C, C++ and Rust, against the library as it is installed.
test-examples: build/c/build.ninja
	meson compile -C build/c
	sh tests/examples.sh build/c

# The script, not `python -m pytest`: that would put this folder first on the path and import the
# sources instead of the installed package.
test-python: $(STAMP)/test-tools $(STAMP)/package
	$(VENV)/bin/pytest -m "not slow and alone" $(ARGS) || [ $$? -eq 5 ] # 5: none of those asked for
	$(VENV)/bin/pytest -m "not slow and not alone" -n auto --maxprocesses 4 --dist loadgroup $(ARGS)

check: lint check-c

lint: $(STAMP)/lint-tools
	ruff check $(PY_FILES)
	ruff format --check $(PY_FILES)
	$(VENV)/bin/clang-format --dry-run --Werror $(C_FILES)

# Where blocks came from is told in few lines: that takes a quarter of the time away.
BRIEF = halt_on_error=1:abort_on_error=1:print_summary=1:malloc_context_size=2:quarantine_size_mb=32

# Wider instruction sets are the same sources compiled again: `make long-sanitize` has them all.
check-c: build/sanitize/build.ninja
	ASAN_OPTIONS=$(BRIEF) meson test -C build/sanitize --print-errorlogs -t 5 --no-suite patience

check-long: long-python long-sanitize long-serial long-valgrind long-clang long-race long-foreign long-soak long-analysis

long-python: $(STAMP)/test-tools $(STAMP)/package
	$(VENV)/bin/pytest -m slow; status=$$?; [ $$status -eq 0 ] || [ $$status -eq 5 ] # 5: none

long-sanitize: $(STAMP)/build-tools
	[ -f build/sanitize-all/build.ninja ] || meson setup build/sanitize-all $(SANITIZE)
	meson test -C build/sanitize-all --print-errorlogs -t 10

long-serial: build/serial/build.ninja
	meson test -C build/serial --print-errorlogs

long-valgrind: build/c/build.ninja
	@if command -v valgrind >/dev/null; then \
	  meson test -C build/c --print-errorlogs -t 50 --no-suite time --wrapper \
	    "valgrind -q --leak-check=full --show-leak-kinds=definite \
	    --errors-for-leak-kinds=definite --error-exitcode=9"; \
	else echo "valgrind is not installed: left out"; fi

long-clang: $(STAMP)/build-tools
	@if command -v clang >/dev/null; then \
	  { [ -f build/clang/build.ninja ] || CC=clang CXX=clang++ meson setup build/clang; } && \
	  meson test -C build/clang --print-errorlogs; \
	else echo "clang is not installed: left out"; fi

# gcc's OpenMP is unknown to ThreadSanitizer; clang's tells it what waits for what, by libarcher.
ARCHER = $(dir $(realpath $(shell command -v clang)))../lib/libarcher.so

long-race: $(STAMP)/build-tools
	@if [ -f $(ARCHER) ] && echo '#include <omp.h>' | clang -fopenmp -fsyntax-only -xc - 2>/dev/null; then \
	  { [ -f build/race/build.ninja ] || CC=clang CXX=clang++ meson setup build/race -Dopenmp=enabled \
	    -Dbuildtype=debugoptimized -Db_sanitize=thread -Db_lundef=false; } && \
	  OMP_TOOL_LIBRARIES=$(ARCHER) TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
	    meson test -C build/race --print-errorlogs -t 10; \
	else echo "clang with its OpenMP (Debian: clang libomp-dev) is not installed: left out"; fi

# Big-endian in an emulator, where waiting tells nothing, and 32 bits: see cross/*.ini.
FOREIGN = $(if $(shell command -v s390x-linux-gnu-gcc && command -v qemu-s390x),s390x) \
          $(if $(shell command -v i686-linux-gnu-gcc),i686)

long-foreign: $(STAMP)/build-tools
	@for machine in $(FOREIGN); do \
	  { [ -f build/$$machine/build.ninja ] || \
	    meson setup build/$$machine --cross-file cross/$$machine.ini; } && \
	  meson test -C build/$$machine --print-errorlogs -t 20 --no-suite patience || exit 1; \
	done
	@echo "tested for: $(or $(strip $(FOREIGN)),none; cross compilers are not installed: left out)"

# ---- more than tests -----------------------------------------------------------------------------------

# Ten minutes; SECONDS_OF_SOAK=60 make long-soak for one.
SECONDS_OF_SOAK ?= 600

long-soak: build/c/build.ninja
	meson compile -C build/c test_soak
	cd build/c/tests/c && ./test_soak $(SECONDS_OF_SOAK)

# What is left out is said in .clang-tidy and tests/cppcheck.txt. Of projection.c gcc 12 does not see
# that `outputs` and `phi` are there where they are read; kernels.c takes it minutes.
long-analysis:
	@if $(CC) --version 2>/dev/null | grep -q 'Free Software'; then \
	  for file in $(filter-out csrc/kernels.c,$(wildcard csrc/*.c)); do \
	    case $$file in *projection.c) less=-Wno-analyzer-null-dereference;; *) less=;; esac; \
	    if $(CC) -std=c99 -O1 -fanalyzer $$less -fopenmp -Iinclude -Icsrc -DRPO_ISA=baseline \
	      -c $$file -o /dev/null 2>&1 | grep Wanalyzer; then exit 1; fi; \
	  done; \
	else echo "the compiler is not gcc: its analyzer is left out"; fi
	@if command -v cppcheck >/dev/null; then \
	  cppcheck -q --std=c99 --enable=warning,performance,portability --inline-suppr --error-exitcode=9 \
	    --suppressions-list=tests/cppcheck.txt -Iinclude -Icsrc -DRPO_ISA=baseline csrc; \
	else echo "cppcheck is not installed: left out"; fi
	@if command -v clang-tidy >/dev/null; then \
	  for file in csrc/*.c; do \
	    clang-tidy --quiet $$file -- -std=c99 -Iinclude -Icsrc -DRPO_ISA=baseline || exit 1; \
	  done; \
	else echo "clang-tidy is not installed: left out"; fi

coverage: $(STAMP)/build-tools
	[ -f build/coverage/build.ninja ] || meson setup build/coverage -Db_coverage=true -Dbuildtype=debug
	meson compile -C build/coverage
	find build/coverage -name '*.gcda' -delete
	meson test -C build/coverage -t 20 --no-suite time
	$(PYTHON) tests/coverage.py build/coverage $(ARGS)

RUNS ?= 100000
# Comparisons are not traced, and one instruction set is enough: several times as many runs a second.
FUZZED = -Dfuzz=true -Dopenmp=disabled -Dsimd=false -Ddebug=true -Doptimization=1 \
         -Dc_args=-fno-sanitize-coverage=trace-cmp -Db_sanitize=address,undefined -Db_lundef=false

fuzz: $(STAMP)/build-tools
	@if command -v clang >/dev/null; then \
	  { [ -f build/fuzz/build.ninja ] || CC=clang CXX=clang++ meson setup build/fuzz $(FUZZED); } && \
	  meson compile -C build/fuzz && \
	  mkdir -p build/fuzz/seeds build/fuzz/model build/fuzz/api build/fuzz/lines && \
	  build/fuzz/tests/fuzz/seeds build/fuzz/seeds && \
	  export ASAN_OPTIONS=allocator_may_return_null=1:max_allocation_size_mb=64 && \
	  cd build/fuzz && \
	  tests/fuzz/fuzz_model -runs=$(RUNS) -entropic=0 -max_len=6000 model $(CURDIR)/tests/fuzz/corpus/model seeds && \
	  tests/fuzz/fuzz_lines -runs=$(RUNS) -entropic=0 -max_len=200 lines $(CURDIR)/tests/fuzz/corpus/lines && \
	  tests/fuzz/fuzz_api -runs=$(RUNS) -entropic=0 -max_len=400 api $(CURDIR)/tests/fuzz/corpus/api; \
	else echo "clang is not installed: left out"; fi

fuzz-text: $(STAMP)/test-tools $(STAMP)/package
	@if $(PIP) install -q atheris; then \
	  mkdir -p build/fuzz/text && \
	  $(VENV)/bin/python tests/fuzz/fuzz_text.py -runs=$(RUNS) -max_len=600 build/fuzz/text \
	    tests/fuzz/corpus/text; \
	else echo "atheris cannot be installed: left out"; fi

build/c/build.ninja: $(STAMP)/build-tools
	[ -f $@ ] || meson setup build/c
	@touch $@

build/serial/build.ninja: $(STAMP)/build-tools
	[ -f $@ ] || meson setup build/serial -Dopenmp=disabled
	@touch $@

# Lines but no variables in the debug information: a quarter of the compiler's time less.
SANITIZE = -Ddebug=false -Dc_args=-g1 -Doptimization=1 -Db_sanitize=address,undefined -Db_lundef=false

build/sanitize/build.ninja: $(STAMP)/build-tools
	[ -f $@ ] || meson setup build/sanitize $(SANITIZE) -Dsimd=false
	@touch $@

# ---- developing ---------------------------------------------------------------------------------------

dev: $(STAMP)/build-tools $(STAMP)/lint-tools
	$(INSTALL) -Cbuild-dir=build/editable --editable ".[plot,test]"
	@touch $(STAMP)/test-tools
	@rm -f $(STAMP)/package # so that `make test` installs the package again, as users have it

format: $(STAMP)/lint-tools
	ruff check --fix-only $(PY_FILES)
	ruff format $(PY_FILES)
	$(VENV)/bin/clang-format -i $(C_FILES)

clean:
	rm -rf build $(VENV) demo.png bias_variance.png .pytest_cache .ruff_cache .hypothesis
	find $(PY_FILES) -name __pycache__ -type d -prune -exec rm -rf {} +
