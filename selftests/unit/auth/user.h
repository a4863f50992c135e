/* SPDX-License-Identifier: GPL-2.0 */
/* What proofs need of the kernel beyond the simulator's kernel.h; included before all else. */
#ifndef AUTH_USER_H
#define AUTH_USER_H

#include "kernel.h"

extern const struct in6_addr in6addr_any;

/* keys: kernel.c has them */
struct user_key_payload { unsigned short datalen; u8 data[64]; };
struct key { struct rw_semaphore sem; struct user_key_payload *payload; int uses; };
struct key_type { const char *name; };
struct cred { int n; };
typedef struct key *key_ref_t;
typedef struct { u32 val; } kgid_t;
extern struct key_type key_type_logon;
#define GLOBAL_ROOT_GID ((kgid_t) { 0 })
#define current_cred() ((const struct cred *)NULL)
#define KEY_POS_ALL 1
#define KEY_POS_SETATTR 1
#define KEY_USR_ALL 1
#define KEY_USR_SETATTR 1
#define KEY_ALLOC_NOT_IN_QUOTA 1
struct key *keyring_alloc(const char *name, kuid_t uid, kgid_t gid, const struct cred *cred,
			  u32 perm, unsigned long flags, void *restriction, struct key *dest);
static inline void key_revoke(struct key *key) { }
#define make_key_ref(key, possessed) (key)
#define key_ref_to_ptr(ref) (ref)
key_ref_t keyring_search(key_ref_t ring, struct key_type *type, const char *name, bool recurse);
void key_put(struct key *key);
const struct user_key_payload *user_key_payload_locked(const struct key *key);

/* a hash that depends on each bit of the key and of what is hashed, and is no HMAC */
struct crypto_shash { const u8 *key; unsigned int len; };
struct crypto_shash *crypto_alloc_shash(const char *name, u32 type, u32 mask);
void crypto_free_shash(struct crypto_shash *tfm);
#define crypto_shash_digestsize(tfm) 32
int crypto_shash_setkey(struct crypto_shash *tfm, const u8 *key, unsigned int len);
int crypto_shash_tfm_digest(struct crypto_shash *tfm, const u8 *data, unsigned int len, u8 *out);
#define crypto_memneq(a, b, n) (!!memcmp(a, b, n))

#endif /* AUTH_USER_H */
