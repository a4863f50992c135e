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
#include <linux/random.h>
#include <linux/sched/mm.h>
#include "core/node.h"
#include "core/stat.h"
#include "link/auth.h"
#include "link/link_priv.h"

#define AUTH_MAGIC	0x53485155u	/* "SHQU": begins no message */
#define AUTH_VERSION	1
#define AUTH_BYTES	32		/* of a nonce, and of a proof: SHA-256 */
#define AUTH_KEY_MIN	16		/* bytes of a key */

enum { AUTH_NONCE = 1, AUTH_PROOF };

/* What is sent for it, in a buffer of its own. */
struct auth_frame {
	__be32 magic;
	u8 version;
	u8 kind;			/* AUTH_* */
	u8 reserved[2];
	u8 bytes[AUTH_BYTES];
} __packed;

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

static int auth_send(struct shift_conn *c, u8 kind, const u8 *bytes)
{
	struct auth_frame frame = {
		.magic = cpu_to_be32(AUTH_MAGIC), .version = AUTH_VERSION, .kind = kind,
	};
	int err = -ENOTCONN;

	memcpy(frame.bytes, bytes, sizeof(frame.bytes));
	spin_lock_irq(&c->link->lock);
	if (!c->closing)
		err = shift_conn_post_frame(c, &frame, sizeof(frame));
	spin_unlock_irq(&c->link->lock);
	return err;
}

/* The peer wants a proof. */
static int auth_answer(struct shift_conn *c, const u8 *nonce)
{
	struct auth_claim claim;
	u8 proof[AUTH_BYTES];
	unsigned int i;
	int err = -ENOKEY;

	auth_claim_own(c, nonce, &claim);
	for (i = 0; err == -ENOKEY && i < ARRAY_SIZE(auth_names); i++)
		err = auth_prove(i, &claim, proof);
	return err ?: auth_send(c, AUTH_PROOF, proof);
}

/* The peer has sent a proof: one by any of the keys will do. */
static int auth_check(struct shift_conn *c, const u8 *proof)
{
	struct auth_claim claim;
	u8 right[AUTH_BYTES];
	unsigned int i;
	int err;

	auth_claim_peer(c, &claim);
	for (i = 0; i < ARRAY_SIZE(auth_names); i++) {
		err = auth_prove(i, &claim, right);
		if (!err && !crypto_memneq(right, proof, sizeof(right)))
			return 0;
		if (err && err != -ENOKEY)
			return err;
	}
	return -EKEYREJECTED;
}

/* One buffer that was received before the connection was established. */
static int auth_take(struct shift_conn *c, const struct shift_link_buf *buf)
{
	const struct auth_frame *frame = buf->data;
	int err;

	if (buf->len != sizeof(*frame) || frame->magic != cpu_to_be32(AUTH_MAGIC) ||
	    frame->version != AUTH_VERSION)
		return -EKEYREJECTED;
	switch (frame->kind) {
	case AUTH_NONCE:
		return auth_answer(c, frame->bytes);
	case AUTH_PROOF:
		err = auth_check(c, frame->bytes);
		if (err)
			return err;
		spin_lock_irq(&c->link->lock);
		c->auth.proven = true;
		spin_unlock_irq(&c->link->lock);
		return 0;
	default:
		return -EKEYREJECTED;
	}
}

/* The next buffer that waits, if the peer has not proved itself yet. */
static struct shift_link_buf *auth_next(struct shift_conn *c)
{
	struct shift_link_buf *buf = NULL;

	spin_lock_irq(&c->link->lock);
	if (!c->closing && !c->auth.proven)
		buf = list_first_entry_or_null(&c->early, struct shift_link_buf, item.entry);
	if (buf)
		list_del(&buf->item.entry);
	spin_unlock_irq(&c->link->lock);
	return buf;
}

/* Give a buffer back; when the peer has proved itself the connection is established. */
static int auth_go_on(struct shift_conn *c, struct shift_link_buf *buf)
{
	int err = 0;

	spin_lock_irq(&c->link->lock);
	if (!c->closing) {
		err = shift_buf_post_recv(c, buf);
		if (!err && c->auth.proven)
			shift_conn_establish(c);
	}
	spin_unlock_irq(&c->link->lock);
	return err;
}

static void auth_work(struct work_struct *work)
{
	struct shift_conn *c = container_of(work, struct shift_conn, auth.work);
	unsigned int noio = memalloc_noio_save();
	struct shift_link_buf *buf;
	int err = 0;

	if (!c->auth.asked) {
		c->auth.asked = true;
		err = auth_send(c, AUTH_NONCE, c->auth.nonce);
	}
	while (!err && (buf = auth_next(c)))
		err = auth_take(c, buf) ?: auth_go_on(c, buf);
	if (err && err != -ENOTCONN)
		shift_conn_fail(c, "proof", err);
	memalloc_noio_restore(noio);
}

/**
 * shift_auth_begin - a connection is made: will its ends have to prove that they know a key?
 * @c: connection that nobody else knows yet.
 *
 * Context: process.
 */
void shift_auth_begin(struct shift_conn *c)
{
	INIT_WORK(&c->auth.work, auth_work);
	c->auth.wanted = shift_auth_keys();
	get_random_bytes(c->auth.nonce, sizeof(c->auth.nonce));
}

/**
 * shift_auth_ready - both ends can send: go on with the proofs
 * @c: its link is locked.  May be called for each buffer that is received.
 *
 * Context: any.
 * Return: true if the connection can be established, as nothing has to be proved any more.
 */
bool shift_auth_ready(struct shift_conn *c)
{
	lockdep_assert_held(&c->link->lock);
	if (!c->auth.wanted || c->auth.proven)
		return true;
	queue_work(shift_link_cm_wq, &c->auth.work);
	return false;
}

/* The connection is closing, or was never on its link: no more proofs.  Process context. */
void shift_auth_end(struct shift_conn *c)
{
	cancel_work_sync(&c->auth.work);
	if (!c->auth.asked || c->auth.proven)
		return;
	shift_stat_inc(SHIFT_STAT_STRANGERS);
	pr_warn_ratelimited("link %u: %pI6c has not proved that it knows the key\n", c->link->id,
			    c->link->remote.raw);
}
