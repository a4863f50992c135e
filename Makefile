# SPDX-License-Identifier: GPL-2.0
#
# One place to build, try, test and install everything; `make` lists the targets.
# Each part has a build of its own that this only calls.

KVER ?= $(shell uname -r)
KDIR ?= /lib/modules/$(KVER)/build
PREFIX ?= /usr/local
PROVIDER_DIR ?= /opt/rdma_shift
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
BUILD := $(CURDIR)/build

KERNEL ?=
SHIFT ?= on
ULP ?=
TESTS ?=
RUNS ?= 5
N ?= 20
SEED ?=
MLX5 ?=

help:
	@echo 'Try it (as root on Debian 12; installs packages, starts no service):'
	@echo '  make demo               a cable is pulled under ib_write_bw, which survives'
	@echo '  make demo SHIFT=off     the same without the module: it does not'
	@echo '  make demo ULP=nvme      under fio on an NVMe disk; SHIFT=off here, too'
	@echo '  make check              the tests; ends with N passed, N failed, N skipped'
	@echo '       TESTS="srq unit"  only these (selftests/check --help and --list name them)'
	@echo '       KERNEL=6.1         only this kernel: 6.1, 6.12, debug; or 7.2, 7.3'
	@echo '  make check-long         variants of these tests, too: hours'
	@echo '  make bench              figures: overhead, of libraries too, and time of a switch'
	@echo '  make campaign N=20      random traffic and faults; prints a SEED to repeat it'
	@echo '       MLX5=1             on the software mlx5 device'
	@echo '  make simulate N=1000    two kernels in one process; SEED=1: the first schedule'
	@echo
	@echo 'Build:'
	@echo '  make deps               install the Debian packages needed'
	@echo '  make modules            the kernel module (KDIR=$(KDIR))'
	@echo '  make helper             shiftd and shiftctl'
	@echo '  make rdma-core          rdma-core with the patched provider'
	@echo '  make lab-kernels        fetch or build what lab nodes boot'
	@echo
	@echo 'Install (as root):'
	@echo '  make install            module (dkms if it is there), helper, provider, manuals'
	@echo '       PREFIX=$(PREFIX) PROVIDER_DIR=$(PROVIDER_DIR)'
	@echo '       KVER=$(KVER)   the kernel to install the module for'
	@echo '  make uninstall          all of it; /etc/shiftd.conf is left'
	@echo
	@echo '  make lint               what style checkers say'
	@echo '  make check-kernels      the module builds on Debian 7.2 and 7.3 (as root)'
	@echo '  make clean              remove build/ (caches of kernels are kept)'

deps:
	scripts/deps

modules:
	scripts/build-kmod $(KDIR) $(BUILD)/kmod

helper:
	$(MAKE) -C helper

rdma-core:
	rdma-core/build

lab-kernels:
	for kernel in 6.1 6.12 debug; do \
		lab/lab kdir --ensure $$kernel || exit 1; done

demo: deps
	scripts/demo $(if $(KERNEL),--kernel $(KERNEL)) $(if $(ULP),--ulp $(ULP)) \
		$(if $(filter off,$(SHIFT)),--without-module)

check: deps
	@MAKEFLAGS= selftests/check $(foreach k,$(KERNEL),--kernel $(k)) \
		$(foreach t,$(TESTS),'$(t)')

check-long: deps
	@MAKEFLAGS= SHIFT_LONG=1 selftests/check --limit 600 $(foreach k,$(KERNEL),--kernel $(k))

bench: deps
	rdma-core/cost
	rdma-core/golden --cost
	scripts/bench $(if $(KERNEL),--kernel $(KERNEL)) --runs $(RUNS)

simulate:
	@$(MAKE) -s -C selftests/sim run N=$(N) SEED=$(or $(SEED),1)

campaign: deps
	selftests/campaign --kernel $(or $(KERNEL),6.1) -n $(N) $(if $(SEED),--seed $(SEED)) \
		$(if $(MLX5),--mlx5)

# Applications may have the old libraries mapped: files are replaced, not written
# over. What was put into PROVIDER_DIR is listed there, so that nothing else is
# ever removed from it.
install: helper rdma-core
	scripts/install-kmod $(KVER)
	$(MAKE) -C helper install PREFIX=$(PREFIX) VERSION=$(VERSION)
	$(remove_provider)
	install -d $(PROVIDER_DIR)
	cp -a --remove-destination --no-preserve=ownership $(BUILD)/rdma-core/. \
		$(PROVIDER_DIR)/
	cd $(BUILD)/rdma-core/ && find . ! -type d -printf '%P\n' >$(PROVIDER_LIST)
	@echo 'Run applications with LD_LIBRARY_PATH=$(PROVIDER_DIR)/lib'

uninstall:
	$(MAKE) -C helper uninstall PREFIX=$(PREFIX)
	scripts/install-kmod --remove
	$(remove_provider)

PROVIDER_LIST := $(PROVIDER_DIR)/.files
define remove_provider
if [ -e $(PROVIDER_LIST) ]; then cd $(PROVIDER_DIR) && \
	xargs -r -d '\n' rm -f -- <.files && \
	sed -n 's|/[^/]*$$||p' .files | sort -ru | \
		xargs -r -d '\n' rmdir -p --ignore-fail-on-non-empty -- && \
	rm -f .files && cd / && \
	rmdir --ignore-fail-on-non-empty $(PROVIDER_DIR); fi
endef

lint:
	scripts/lint

check-kernels: deps
	selftests/kernels/run

clean:
	rm -rf $(BUILD)

.PHONY: help deps modules helper rdma-core lab-kernels demo check check-long bench campaign simulate install \
	uninstall lint check-kernels clean
