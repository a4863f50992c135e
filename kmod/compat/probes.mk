# SPDX-License-Identifier: GPL-2.0
#
# Compile probes: probes/<name>.c compiles if the kernel has <name>, and then
# SHIFT_HAVE_<NAME> is defined in every file (compat.h describes each).  With
# SHIFT_MUST_FAIL defined a probe asks for something that no kernel has; if that
# compiles too, the probe proves nothing and the build ends.
#
# Results are kept beside the objects and made again for another kernel.

shift-compat := kmod/compat
shift-probes := $(patsubst $(src)/$(shift-compat)/probes/%.c,%, \
		  $(wildcard $(src)/$(shift-compat)/probes/*.c))
shift-results := $(foreach p,$(shift-probes),$(shift-compat)/probes/$(p).result)

# exactly one of each group: another form is a kernel that is not known yet
shift-groups := \
	create_cq_udata|create_cq_attrs \
	resize_cq|resize_user_cq \
	reg_user_mr_plain|reg_user_mr_dmah \
	reg_user_mr_dmabuf_udata|reg_user_mr_dmabuf_attrs|reg_user_mr_dmabuf_dmah

# what a probe calls must be exported as well
shift-symbol-synchronize_rcu_tasks_rude := synchronize_rcu_tasks_rude
shift-symbol-get_mem_cgroup_from_mm := get_mem_cgroup_from_mm

shift-probe-cc = $(CC) $(NOSTDINC_FLAGS) $(LINUXINCLUDE) $(KBUILD_CPPFLAGS) \
	$(KBUILD_CFLAGS) $(KBUILD_CFLAGS_MODULE) -DMODULE \
	-DKBUILD_MODNAME='"probe"' -DKBUILD_BASENAME='"probe"' \
	-Werror=implicit-function-declaration -fsyntax-only

shift-exported = $(if $(shift-symbol-$*), \
	&& { [ ! -f $(objtree)/Module.symvers ] || \
	     grep -qw $(shift-symbol-$*) $(objtree)/Module.symvers; })

# the folder and the release are there to run again for another kernel
quiet_cmd_shift_probe = PROBE   $*
      cmd_shift_probe = : $(abspath $(objtree)) $(KERNELRELEASE); \
	if $(shift-probe-cc) -DSHIFT_MUST_FAIL $< 2>/dev/null; then \
		echo >&2 "$<: compiles where it must fail"; \
		exit 1; \
	fi; \
	if $(shift-probe-cc) $< 2>$@.log $(shift-exported); then \
		echo '$*' >$@; \
	else \
		: >$@; \
	fi

$(obj)/$(shift-compat)/probes/%.result: $(src)/$(shift-compat)/probes/%.c \
		$(src)/$(shift-compat)/probes/probe.h FORCE
	$(call if_changed,shift_probe)

quiet_cmd_shift_config = GEN     $@
      cmd_shift_config = \
	for group in $(foreach g,$(shift-groups),'$(g)'); do \
		n=$$(cat $(filter %.result,$^) | grep -cEx "$$group"); \
		if [ $$n -ne 1 ]; then \
			echo >&2 "This kernel has $$n of $$group; see $(shift-compat)/compat.h"; \
			exit 1; \
		fi; \
	done; \
	{ \
		echo '\#define SHIFT_PROBED 1'; \
		cat $(filter %.result,$^) | tr a-z A-Z | \
			sed 's/.*/\#define SHIFT_HAVE_& 1/'; \
	} >$@

$(obj)/$(shift-compat)/config.h: $(addprefix $(obj)/,$(shift-results)) FORCE
	$(call if_changed,shift_config)

targets += $(shift-results) $(shift-compat)/config.h
clean-files += $(shift-results) $(addsuffix .log,$(shift-results)) \
	$(shift-compat)/config.h

$(addprefix $(obj)/,$(rdma_shift-y)): $(obj)/$(shift-compat)/config.h
ccflags-y += -include $(obj)/$(shift-compat)/config.h
