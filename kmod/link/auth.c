// SPDX-License-Identifier: GPL-2.0
/*
 * Nodes prove to each other that they know the cluster's key, before a connection is established:
 * Documentation/internals/links.md, "Proofs".
 *
 * Keys are of the kernel's type "logon", which user space can write and not read, in the module's
 * keyring ".rdma_shift".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <crypto/algapi.h>
#include <crypto/hash.h>
#include <keys/user-type.h>
#include <linux/cred.h>
#include <linux/key.h>
#include "core/node.h"
#include "link/auth.h"
#include "link/link_priv.h"

#define AUTH_MAGIC	0x53485155u	/* "SHQU": begins no message */
#define AUTH_OLDEST	1		/* versions of frames, and of what a proof is about */
#define AUTH_NEWEST	1
#define AUTH_BYTES	SHIFT_AUTH_BYTES
#define AUTH_KEY_MIN	16		/* bytes of a key */

enum { AUTH_NONCE = 1, AUTH_PROOF };

/* What a proof is about: it is of no use on another connection, path or side. */
struct auth_claim {
	char label[16];
	u8 active;			/* the prover connects */
	u8 nonce[AUTH_BYTES];		/* from the other one */
	u8 boot_id[16];			/* the prover's */
	u8 other_boot_id[16];
	union ib_gid local, remote;	/* as the prover sees it */
} __packed;

/* The first is the one that this node proves with. */
static const char *const auth_names[] = { "shift:first", "shift:second" };

static struct key *auth_ring;

/**
 * shift_auth_init - make the keyring
 *
 * Context: process.
 * Return: 0 or -errno.
 */
int shift_auth_init(void)
{
	struct key *ring;

	ring = keyring_alloc(".rdma_shift", GLOBAL_ROOT_UID, GLOBAL_ROOT_GID, current_cred(),
			     (KEY_POS_ALL & ~KEY_POS_SETATTR) | (KEY_USR_ALL & ~KEY_USR_SETATTR),
			     KEY_ALLOC_NOT_IN_QUOTA, NULL, NULL);
	if (IS_ERR(ring))
		return PTR_ERR(ring);
	auth_ring = ring;
	return 0;
}

void shift_auth_uninit(void)
{
	key_revoke(auth_ring);
	key_put(auth_ring);
}

/* A key with a reference, or NULL. */
static struct key *auth_key(unsigned int i)
{
	key_ref_t ref = keyring_search(make_key_ref(auth_ring, true), &key_type_logon,
				       auth_names[i], false);

	return IS_ERR(ref) ? NULL : key_ref_to_ptr(ref);
}

/**
 * shift_auth_keys - how many keys are there?
 *
 * Context: process.
 * Return: 0: nodes need not prove anything.
 */
unsigned int shift_auth_keys(void)
{
	unsigned int i, n = 0;
	struct key *key;

	for (i = 0; i < ARRAY_SIZE(auth_names); i++) {
		key = auth_key(i);
		n += !!key;
		key_put(key);
	}
	return n;
}

static int auth_hash(const u8 *key, unsigned int len, const struct auth_claim *claim, u8 *proof)
{
	struct crypto_shash *tfm = crypto_alloc_shash("hmac(sha256)", 0, 0);
	int err;

	if (IS_ERR(tfm))
		return PTR_ERR(tfm);
	err = crypto_shash_digestsize(tfm) == AUTH_BYTES ? 0 : -EINVAL;
	if (!err)
		err = crypto_shash_setkey(tfm, key, len);
	if (!err)
		err = crypto_shash_tfm_digest(tfm, (const u8 *)claim, sizeof(*claim), proof);
	crypto_free_shash(tfm);
	return err;
}

/* The proof of @claim by a key.  -ENOKEY: there is none, or it is too short. */
static int auth_prove(unsigned int i, const struct auth_claim *claim, u8 *proof)
{
	const struct user_key_payload *payload;
	struct key *key = auth_key(i);
	int err = -ENOKEY;

	if (!key)
		return err;
	down_read(&key->sem);
	payload = user_key_payload_locked(key);
	if (payload && payload->datalen >= AUTH_KEY_MIN)
		err = auth_hash(payload->data, payload->datalen, claim, proof);
	up_read(&key->sem);
	key_put(key);
	return err;
}

static void auth_claim_own(const struct shift_conn *c, const u8 *nonce, struct auth_claim *claim)
{
	memset(claim, 0, sizeof(*claim));
	strscpy(claim->label, "rdma_shift link", sizeof(claim->label));
	claim->active = c->link->active;
	memcpy(claim->nonce, nonce, sizeof(claim->nonce));
	memcpy(claim->boot_id, shift_boot_id, sizeof(claim->boot_id));
	memcpy(claim->other_boot_id, c->boot_id, sizeof(claim->other_boot_id));
	claim->local = c->link->local;
	claim->remote = c->link->remote;
}

/* What the peer has to prove. */
static void auth_claim_peer(const struct shift_conn *c, struct auth_claim *claim)
{
	auth_claim_own(c, c->auth.nonce, claim);
	claim->active = !c->link->active;
	memcpy(claim->boot_id, c->boot_id, sizeof(claim->boot_id));
	memcpy(claim->other_boot_id, shift_boot_id, sizeof(claim->other_boot_id));
	claim->local = c->link->remote;
	claim->remote = c->link->local;
}

static void auth_frame(struct shift_auth_frame *frame, u8 kind)
{
	memset(frame, 0, sizeof(*frame));
	frame->magic = cpu_to_be32(AUTH_MAGIC);
	frame->kind = kind;
}

/**
 * shift_auth_ask - write what asks the peer for a proof
 * @c: connection.
 * @frame: filled in.
 *
 * Context: process.
 */
void shift_auth_ask(const struct shift_conn *c, struct shift_auth_frame *frame)
{
	auth_frame(frame, AUTH_NONCE);
	frame->version = AUTH_OLDEST;
	frame->newest = AUTH_NEWEST;
	memcpy(frame->bytes, c->auth.nonce, sizeof(frame->bytes));
}

/*
 * The peer wants a proof, of a version that it knows.  It asks once; more would be work for whoever
 * may begin a connection.
 */
static int auth_answer(struct shift_conn *c, const struct shift_auth_frame *ask,
		       struct shift_auth_frame *answer)
{
	/* a module that knows one version only does not say which is the newest */
	u8 version = min_t(u8, max(ask->version, ask->newest), AUTH_NEWEST);
	struct auth_claim claim;
	unsigned int i;
	int err = -ENOKEY;

	if (c->auth.answered)
		return -EKEYREJECTED;
	c->auth.answered = true;
	if (version < max_t(u8, ask->version, AUTH_OLDEST))
		return -EPROTONOSUPPORT;
	auth_claim_own(c, ask->bytes, &claim);
	auth_frame(answer, AUTH_PROOF);
	answer->version = version;
	for (i = 0; err == -ENOKEY && i < ARRAY_SIZE(auth_names); i++)
		err = auth_prove(i, &claim, answer->bytes);
	return err ?: SHIFT_AUTH_ANSWER;
}

/* The peer has sent a proof: one by any of the keys will do. */
static int auth_check(const struct shift_conn *c, const u8 *proof)
{
	struct auth_claim claim;
	u8 right[AUTH_BYTES];
	unsigned int i;
	int err;

	auth_claim_peer(c, &claim);
	for (i = 0; i < ARRAY_SIZE(auth_names); i++) {
		err = auth_prove(i, &claim, right);
		if (!err && !crypto_memneq(right, proof, sizeof(right)))
			return SHIFT_AUTH_PROVEN;
		if (err && err != -ENOKEY)
			return err;
	}
	return -EKEYREJECTED;
}

/**
 * shift_auth_take - look at what was received before the connection is established
 * @c: connection, with the peer's boot id.
 * @frame: what was received, which nothing is known of.
 * @len: its bytes.
 * @answer: filled in, if there is one.
 *
 * Context: process, may sleep.
 * Return: SHIFT_AUTH_ANSWER: @answer has to be sent; SHIFT_AUTH_PROVEN; -EKEYREJECTED: it is no
 * frame, a wrong proof, or the second question; -EPROTONOSUPPORT: the peer wants a proof of a
 * version that is not known here; -ENOKEY: it wants one, and there is no key; or -errno.
 */
int shift_auth_take(struct shift_conn *c, const struct shift_auth_frame *frame, u32 len,
		    struct shift_auth_frame *answer)
{
	if (len != sizeof(*frame) || frame->magic != cpu_to_be32(AUTH_MAGIC))
		return -EKEYREJECTED;
	switch (frame->kind) {
	case AUTH_NONCE:
		return auth_answer(c, frame, answer);
	case AUTH_PROOF:
		if (frame->version < AUTH_OLDEST || frame->version > AUTH_NEWEST)
			return -EKEYREJECTED;
		return auth_check(c, frame->bytes);
	default:
		return -EKEYREJECTED;
	}
}
