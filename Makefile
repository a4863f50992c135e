# SPDX-License-Identifier: GPL-2.0
#
# One place to build, try, test and install everything; `make` lists the targets.
# Each part has a build of its own that this only calls.

KDIR ?= /lib/modules/$(shell uname -r)/build
PREFIX ?= /usr/local
PROVIDER_DIR ?= /opt/rdma_shift
VERSION := $(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)
DKMS_SRC := /usr/src/rdma_shift-$(VERSION)
BUILD := $(CURDIR)/build

KERNEL ?=
SHIFT ?= on
TESTS ?=
RUNS ?= 5

help:
	@echo 'Try it (as root on Debian 12; installs packages, starts no service):'
	@echo '  make demo               a cable is pulled under ib_write_bw, which survives'
	@echo '  make demo SHIFT=off     the same without the module: it does not'
	@echo '  make check              every test; ends with N passed, N failed, N skipped'
	@echo '       TESTS="two* unit"  only these (selftests/check --list shows them)'
	@echo '       KERNEL=6.1         only this kernel: 6.1, 6.12 or debug'
	@echo '  make bench              figures: overhead and time of a switch'
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
	@echo '  make uninstall'
	@echo
	@echo '  make lint               what style checkers say'
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
		scripts/lab kdir --ensure $$kernel || exit 1; done

demo: deps
	scripts/demo $(if $(KERNEL),--kernel $(KERNEL)) \
		$(if $(filter off,$(SHIFT)),--without-module)

check: deps
	@MAKEFLAGS= selftests/check $(foreach k,$(KERNEL),--kernel $(k)) \
		$(foreach t,$(TESTS),'$(t)')

bench: deps
	scripts/bench $(if $(KERNEL),--kernel $(KERNEL)) --runs $(RUNS)

# The module by dkms where it is installed, so that new kernels get it too.
install: helper rdma-core
	$(MAKE) -C helper install PREFIX=$(PREFIX)
	install -d $(PROVIDER_DIR)
	cp -a $(BUILD)/rdma-core/. $(PROVIDER_DIR)/
	if command -v dkms >/dev/null; then \
		rm -rf $(DKMS_SRC) && mkdir -p $(DKMS_SRC) && \
		cp -a Kbuild dkms.conf kmod uapi $(DKMS_SRC)/ && \
		dkms install --force rdma_shift/$(VERSION); \
	else \
		$(MAKE) modules && \
		$(MAKE) -C $(KDIR) M=$(BUILD)/kmod modules_install && depmod; \
	fi
	@echo 'Run applications with LD_LIBRARY_PATH=$(PROVIDER_DIR)/lib'

uninstall:
	if command -v dkms >/dev/null; then \
		dkms remove rdma_shift/$(VERSION) --all || true; fi
	rm -rf $(DKMS_SRC) $(PROVIDER_DIR)
	rm -f /lib/modules/*/updates/rdma_shift.ko
	rm -f $(PREFIX)/sbin/shiftd $(PREFIX)/sbin/shiftctl
	rm -f $(PREFIX)/lib/systemd/system/shiftd.service
	rm -f $(PREFIX)/lib/udev/rules.d/90-rdma-shift.rules
	rm -f $(PREFIX)/lib/modules-load.d/rdma-shift.conf
	rm -f $(PREFIX)/share/man/man8/shiftd.8 $(PREFIX)/share/man/man8/shiftctl.8
	rm -f $(PREFIX)/share/man/man5/shiftd.conf.5
	depmod

lint:
	scripts/lint

clean:
	rm -rf $(BUILD)

.PHONY: help deps modules helper rdma-core lab-kernels demo check bench install \
	uninstall lint clean
