# SPDX-License-Identifier: GPL-2.0-only

# The kernel to build for: a prepared tree, or the name of a test kernel (fast, debug, stock, uml, umldebug).
KDIR ?= /lib/modules/$(shell uname -r)/build
# The Linux of the test kernels: a version as 7.2, or a stock kernel's release as 7.2.12+deb13-amd64. Without it, the
# newest that oxib was tried on.
KERNEL ?=
export OXIB_KERNEL := $(KERNEL)
# What nodes are: qemu, machines of QEMU's; uml, processes of this one (user-mode Linux). Without it, what starts fastest
# here. Tests that need a PC get one in any case.
MACHINE ?=
export OXIB_MACHINE := $(MACHINE)
# The selftest of `make selftest` and `make test`: a folder of selftests/, or one test in it.
T ?=
# How often to run the selftest T.
REPEAT ?=
# Not empty: `make test` only prints what it would make and run, and what that takes.
PLAN ?=
# Not empty: `make gate` runs a commit that has passed once more.
AGAIN ?=

.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory

.PHONY: all demo test gate shell kunit selftest soak mutants bench lint doc install clean distclean help

all: ## the modules and the command oxib, for KDIR= (a kernel tree prepared with Rust, or a test kernel)
	@scripts/modules $(KDIR)

demo: ## two nodes talk IP over InfiniBand through oxib, and two subnets across a router; prepares what is missing
	@scripts/demo

test: ## every test but the soak; prepares what is missing. T=folder/name REPEAT=50: one, so often; PLAN=1: only say what that is
	@OXIB_PLAN="$(PLAN)" scripts/test $(if $(T),--test $(T)) $(if $(REPEAT),--repeat $(REPEAT))

shell: ## two nodes, a prompt on the first
	@scripts/shell

kunit: ## the unit tests in the kernel
	@scripts/test --kernels fast,debug --test kunit

selftest: ## one selftest on its kernels: T=folder or T=folder/name
	@if [ -z "$(T)" ]; then echo "usage: make selftest T=folder/name, out of:"; \
		find selftests -mindepth 2 -name '*.sh' ! -path '*/lib/*' | sed 's|selftests/|  |; s|\.sh$$||' | sort; exit 2; fi
	@scripts/test --test $(T)

gate: ## .ci/run on the last commit, in a clean clone beside this checkout; AGAIN=1: though it has passed
	@AGAIN="$(AGAIN)" scripts/gate

soak: ## the tests that are too long for every run
	@scripts/test --soak

mutants: ## break the source on purpose, in more than 300 places in turn: a test has to notice each (hours)
	@scripts/mutants

bench: ## all benchmarks: tables, JSON and charts
	@scripts/bench

lint: ## format, clippy, rustdoc, shellcheck and the like
	@scripts/lint

doc: ## the documentation of the source
	@scripts/doc

install: ## the modules into /lib/modules, the command into /usr/sbin (or below DESTDIR=), for KDIR=; SOFTIB=y: the fabric, too
	@scripts/install $(KDIR)

clean: ## remove what was built from this checkout, and results
	@scripts/clean

distclean: ## remove kernels, roots and downloads too
	@scripts/clean all

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done
