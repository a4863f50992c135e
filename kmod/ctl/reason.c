// SPDX-License-Identifier: GPL-2.0
/*
 * Why a QP is not protected, in words for operators.
 */
#include <linux/kernel.h>
#include <linux/build_bug.h>
#include "ctl/ctl.h"

static const char * const shift_reason_texts[] = {
	[SHIFT_REASON_NONE] =
		"There is no reason against protection.",
	[SHIFT_REASON_NOT_RTS] =
		"The application has not connected the QP yet.",
	[SHIFT_REASON_NO_PROVIDER] =
		"The RDMA library has no shift support, or the process may not lock enough memory.",
	[SHIFT_REASON_QP_TYPE] =
		"Only reliably connected (RC) QPs can be protected.",
	[SHIFT_REASON_OPERATION] =
		"An operation was posted, or signed memory is used, that cannot be replayed yet.",
	[SHIFT_REASON_SRQ] =
		"Its shared receive queue cannot be moved, or another QP on it is not protected.",
	[SHIFT_REASON_OLD_OBJECT] =
		"Its PD, CQ or memory is older than the pair; its user has to end, and begin again.",
	[SHIFT_REASON_MIRROR_MR] =
		"Some of the application's memory is not registered on the backup device.",
	[SHIFT_REASON_MIRROR_QP] =
		"The backup device could not make a proxy QP.",
	[SHIFT_REASON_ODP] =
		"The application uses on-demand paging, which cannot be mirrored.",
	[SHIFT_REASON_MW] =
		"The application uses memory windows that cannot be mirrored.",
	[SHIFT_REASON_NO_PEER] =
		"The remote GID belongs to no known peer; check the directory.",
	[SHIFT_REASON_LOOPBACK] =
		"Both ends of the connection are on this device or its backup.",
	[SHIFT_REASON_NO_SESSION] =
		"The peer is known, but its rdma_shift module cannot be reached.",
	[SHIFT_REASON_PEER_UNPROTECTED] =
		"The QP at the other end is not protected or not known there.",
	[SHIFT_REASON_APP_ERROR] =
		"The application reset the QP or caused an error.",
	[SHIFT_REASON_FAILED] =
		"A failover did not succeed; the application was given the error.",
	[SHIFT_REASON_DEVICE_GONE] =
		"The default or the backup device was removed.",
	[SHIFT_REASON_ADDRESS] =
		"The backup has no GID that reaches the peer, or the ends disagree on addresses or MTU.",
	[SHIFT_REASON_RINGS] =
		"Its rings are of a kind that is not supported.",
	[SHIFT_REASON_MTU] =
		"The backup's path is too small for the packets that the application sends (MTU).",
	[SHIFT_REASON_DMABUF] =
		"The backup device could not register the application's GPU memory (dma-buf).",
	[SHIFT_REASON_UNPROVEN] =
		"A device of the pair did not do, or could not try, what protection assumes of it.",
	[SHIFT_REASON_CGROUP] =
		"The limit of the process's rdma cgroup leaves no room for what protection needs.",
	[SHIFT_REASON_NAMESPACE] =
		"Its address is not in the host's initial network namespace.",
	[SHIFT_REASON_KERNEL_USER] =
		"It belongs to a user in the kernel, and the backup is of another kind.",
	[SHIFT_REASON_IOMMU] =
		"The backup does not take a kernel user's memory addresses; boot with iommu=pt.",
	[SHIFT_REASON_RECORD] =
		"The record of what this kernel user posts would be too large, or there was no memory.",
	[SHIFT_REASON_UNLISTED] =
		"It belongs to a user in the kernel whose QPs the module is not to protect on this device.",
};

static_assert(ARRAY_SIZE(shift_reason_texts) == __SHIFT_REASON_MAX);

/**
 * shift_reason_text - one sentence that an operator understands
 * @reason: why a QP is not protected; a peer may send one that is newer.
 *
 * Return: a constant string, never NULL.
 */
const char *shift_reason_text(enum shift_reason reason)
{
	if ((unsigned int)reason >= __SHIFT_REASON_MAX || !shift_reason_texts[reason])
		return "The peer gave a reason that this version does not know.";
	return shift_reason_texts[reason];
}
