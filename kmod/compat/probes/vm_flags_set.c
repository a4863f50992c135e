// SPDX-License-Identifier: GPL-2.0
#include <linux/mm.h>

void probe(struct vm_area_struct *vma);
void probe(struct vm_area_struct *vma)
{
#ifndef SHIFT_MUST_FAIL
	vm_flags_set(vma, VM_DONTEXPAND);
#else
	vm_flags_set(vma);
#endif
}
