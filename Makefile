# SPDX-License-Identifier: Apache-2.0
#
# A thin front for Meson and Ninja. How things are compiled is in meson.build,
# which packages they need in packaging/debian-deps, what each gate does in tools/.

PREFIX  ?= /usr/local
DESTDIR ?=
# Arguments of hutchd (make run), bench/run (make bench), tests/soak/soak.py (make soak) or tools/test-vm (make test-vm).
ARGS    ?=
# Seconds for each fuzz target.
T       ?= 60
# Of "make soak": create/destroy cycles, seconds after which it ends earlier (0: it does not), cycles at a time.
CYCLES  ?= 100000
SECONDS ?= 0
WORKERS ?= 4
# Groups of packaging/debian-deps for "make deps".
GROUPS  ?= build test lint asan fuzz bench

WERROR  := -Dwerror=$(if $(filter true,$(CI)),true,false)
RELEASE := -Dbuildtype=debugoptimized -Db_ndebug=false -Dprefix=$(PREFIX) $(WERROR)
# In CI the benchmarks are compiled too: lint checks them in the same directory.
TESTED  := $(RELEASE) -Dtests=true $(if $(filter true,$(CI)),-Dbench=true)
ASAN    := -Dbuildtype=debug -Doptimization=1 -Dc_args=-fno-omit-frame-pointer \
           -Db_sanitize=address,undefined -Db_lundef=false -Db_pie=true -Dtests=true $(WERROR)
FUZZ    := -Dbuildtype=debug -Doptimization=1 \
           '-Dc_args=-fno-omit-frame-pointer -fsanitize=fuzzer-no-link' \
           -Db_sanitize=address,undefined -Db_lundef=false -Dfuzz=true $(WERROR)

.DEFAULT_GOAL := all
.PHONY: all asan bench build-for-tests clean deps fuzz help hooks install lint run soak test test-vm
# Ninja and run-tests use all cores themselves.
.NOTPARALLEL:

all: hooks ## build into build/
	@tools/deps build
	@tools/build build $(RELEASE)

deps: ## install the missing Debian packages (GROUPS="build test")
	@tools/deps $(GROUPS)

run: all ## build and start hutchd, its data in build/data (ARGS="...")
	@exec tools/run $(ARGS)

build-for-tests: hooks
	@tools/deps build test
	@tools/build build $(TESTED)

test: build-for-tests ## build and run all tests
	@tools/run-tests build

test-vm: build-for-tests ## the tests that depend on the kernel, in a virtual machine (ARGS="...", SHORT=1)
	@tools/deps vm
	@tools/test-vm build $(if $(SHORT),--short) $(ARGS)

lint: hooks ## layers, sizes, words, format, both compilers, static analysis, docs
	@tools/deps build test lint bench
	@tools/lint

# handle_*=2: no test program may replace the sanitizer's signal handlers (cmocka tries to).
asan: export ASAN_OPTIONS := abort_on_error=1 halt_on_error=1 detect_leaks=1 \
	detect_stack_use_after_return=1 strict_string_checks=1 \
	handle_segv=2 handle_sigbus=2 handle_sigfpe=2 handle_sigill=2
asan: export UBSAN_OPTIONS := abort_on_error=1 halt_on_error=1 print_stacktrace=1
asan: hooks ## run all tests under AddressSanitizer and UBSan
	@tools/deps build test asan
	@tools/build build-asan $(ASAN)
	@tools/run-tests build-asan -t 4

fuzz: hooks ## run each fuzz target for T=60 seconds
	@tools/deps build fuzz
	@CC=clang tools/build build-fuzz $(FUZZ)
	@tools/run-fuzz build-fuzz $(T)

bench: hooks ## build and run the benchmarks
	@tools/deps build bench
	@tools/build build $(RELEASE) -Dbench=true
	@bench/run $(ARGS)

soak: build-for-tests ## count what CYCLES=100000 sandboxes leave on the host (SECONDS= WORKERS=)
	@tests/soak/soak.py build/hutchd build/tests/soak/soak_load \
		--cycles $(CYCLES) --seconds $(SECONDS) --workers $(WORKERS) $(ARGS)

install: all ## install below DESTDIR= PREFIX=/usr/local
	@DESTDIR='$(DESTDIR)' meson install -C build --no-rebuild --quiet

clean: ## remove all build directories
	@rm -rf build build-asan build-fuzz build-lint-gcc build-lint-clang

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

hooks:
	@tools/git-setup
