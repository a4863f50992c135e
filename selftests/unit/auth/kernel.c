// SPDX-License-Identifier: GPL-2.0
/* The kernel, for one thread: locks, memory, work items, keys. */
#include <stdio.h>
#include <stdlib.h>
#include "fuzz.h"

#define WORKS 64

struct task_struct sim_task;
struct net init_net;
long fuzz_memory;
u32 fuzz_first, fuzz_second;
struct key_type key_type_logon = { "logon" };
struct user_key_payload fuzz_key[FUZZ_KEYS] = {
	{ 32, "the first key of the cluster" }, { 32, "the second key of the cluster" },
	{ 15, "a short key" },
};

static int taken;
static struct key ring, keys[2];
static struct work_struct *works[WORKS];
static u32 num_works;

void sim_fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fprintf(stderr, "\n");
	abort();
}

void sim_warns(const char *format, ...) { }

/* who waits, waits for the peer of a device that is removed, and here none is */
void usleep_range(unsigned long least, unsigned long most)
{
	sim_fail("it waits");
}

void sim_lock_init(struct sim_lock *lock, const char *name, bool spins)
{
	memset(lock, 0, sizeof(*lock));
	lock->name = name;
}

void sim_lock(struct sim_lock *lock, bool read)
{
	if (lock->readers)
		sim_fail("%s is taken twice", lock->name);
	lock->readers = 1;
	taken++;
}

void sim_unlock(struct sim_lock *lock, bool read)
{
	if (!lock->readers)
		sim_fail("%s is not taken", lock->name);
	lock->readers = 0;
	taken--;
}

bool sim_is_held(const struct sim_lock *lock)
{
	return lock->readers;
}

void fuzz_locks_are_free(void)
{
	u32 i;

	if (taken)
		sim_fail("%d locks are still taken", taken);
	for (i = 0; i < ARRAY_SIZE(keys); i++)
		if (keys[i].uses)
			sim_fail("a key has %d references", keys[i].uses);
}

void *sim_alloc(size_t size, gfp_t gfp)
{
	void *p = fuzz_refuses() ? NULL : calloc(1, size);

	fuzz_memory += !!p;
	return p;
}

void kfree(const void *p)
{
	fuzz_memory -= !!p;
	free((void *)p);
}

u64 ktime_get_ns(void) { return NSEC_PER_SEC; }

void get_random_bytes(void *buf, size_t len)
{
	static u8 n;

	memset(buf, ++n, len);
}

/* work */
bool queue_work(struct workqueue_struct *wq, struct work_struct *work)
{
	if (work->pending)
		return false;
	if (num_works == WORKS)
		sim_fail("too many work items");
	work->pending = true;
	works[num_works++] = work;
	return true;
}

bool queue_delayed_work(struct workqueue_struct *wq, struct delayed_work *work, unsigned long delay)
{
	return queue_work(wq, &work->work);
}

static void take_out(u32 i)
{
	works[i]->pending = false;
	works[i] = works[--num_works];
}

bool cancel_work_sync(struct work_struct *work)
{
	u32 i;

	if (!work->pending)
		return false;
	for (i = 0; works[i] != work; i++)
		;
	take_out(i);
	return true;
}

bool fuzz_run_work(u32 which)
{
	struct work_struct *work;

	if (!num_works)
		return false;
	work = works[which % num_works];
	take_out(which % num_works);
	work->func(work);
	fuzz_locks_are_free();
	return true;
}

void fuzz_kernel_reset(void)
{
	u32 i;

	for (i = 0; i < ARRAY_SIZE(keys); i++)
		init_rwsem(&keys[i].sem);
}

/* keys */
struct key *keyring_alloc(const char *name, kuid_t uid, kgid_t gid, const struct cred *cred,
			  u32 perm, unsigned long flags, void *restriction, struct key *dest)
{
	return &ring;
}

key_ref_t keyring_search(key_ref_t where, struct key_type *type, const char *name, bool recurse)
{
	u32 i = !strcmp(name, "shift:second"), loaded = i ? fuzz_second : fuzz_first;

	if (where != &ring || type != &key_type_logon)
		sim_fail("a key is looked for elsewhere");
	if (loaded >= FUZZ_KEYS)
		return ERR_PTR(-ENOKEY);
	keys[i].payload = &fuzz_key[loaded];
	keys[i].uses++;
	return &keys[i];
}

void key_put(struct key *key)
{
	if (key && key != &ring)
		key->uses--;
}

/* It may have been revoked since it was found. */
const struct user_key_payload *user_key_payload_locked(const struct key *key)
{
	lockdep_assert_held(&key->sem);
	return fuzz_refuses() ? NULL : key->payload;
}

struct crypto_shash *crypto_alloc_shash(const char *name, u32 type, u32 mask)
{
	return sim_alloc(sizeof(struct crypto_shash), GFP_KERNEL) ?: ERR_PTR(-ENOMEM);
}

void crypto_free_shash(struct crypto_shash *tfm) { kfree(tfm); }

int crypto_shash_setkey(struct crypto_shash *tfm, const u8 *key, unsigned int len)
{
	tfm->key = key;
	tfm->len = len;
	return 0;
}

static u64 mix(u64 h, const u8 *p, u32 len)
{
	while (len--)
		h = (h ^ *p++) * 0x100000001b3ull;
	return h;
}

static void hash(const u8 *key, u32 key_len, const void *data, u32 len, u8 *out)
{
	u64 word[4];
	u32 i;

	word[0] = mix(mix(0xcbf29ce484222325ull, key, key_len), data, len);
	for (i = 1; i < ARRAY_SIZE(word); i++)
		word[i] = (word[i - 1] ^ word[i - 1] >> 29) * 0x9e3779b97f4a7c15ull;
	memcpy(out, word, sizeof(word));
}

void fuzz_hash(const struct user_key_payload *key, const void *data, u32 len, u8 *out)
{
	hash(key->data, key->datalen, data, len, out);
}

int crypto_shash_tfm_digest(struct crypto_shash *tfm, const u8 *data, unsigned int len, u8 *out)
{
	if (fuzz_refuses())
		return -EIO;
	hash(tfm->key, tfm->len, data, len, out);
	return 0;
}
