/* SPDX-License-Identifier: GPL-2.0 */
/* A table of few objects, as core/object.c uses it.  kernel.h includes this. */
#ifndef SIM_RHASHTABLE_H
#define SIM_RHASHTABLE_H

struct rhashtable { struct rhash_head *first; };
struct rhashtable_compare_arg { struct rhashtable *ht; const void *key; };
struct rhashtable_params {
	u16 key_len, key_offset, head_offset;
	bool automatic_shrinking;
	u32 (*hashfn)(const void *data, u32 len, u32 seed);
	int (*obj_cmpfn)(struct rhashtable_compare_arg *arg, const void *obj);
};

#define hash_ptr(p, bits) ((u32)hash_64((u64)(p), bits))

static inline int rhashtable_init(struct rhashtable *ht, const struct rhashtable_params *p)
{
	ht->first = NULL;
	return 0;
}

static inline void rhashtable_destroy(struct rhashtable *ht)
{
	if (ht->first)
		sim_fail("a table of objects is destroyed and not empty");
}

static inline void *rhashtable_lookup(struct rhashtable *ht, const void *key,
				      const struct rhashtable_params p)
{
	struct rhashtable_compare_arg arg = { .ht = ht, .key = key };
	struct rhash_head *h;

	for (h = ht->first; h; h = h->next)
		if (!p.obj_cmpfn(&arg, (char *)h - p.head_offset))
			return (char *)h - p.head_offset;
	return NULL;
}

static inline int rhashtable_lookup_insert_fast(struct rhashtable *ht, struct rhash_head *h,
						const struct rhashtable_params p)
{
	if (rhashtable_lookup(ht, (char *)h - p.head_offset + p.key_offset, p))
		return -EEXIST;
	h->next = ht->first;
	ht->first = h;
	return 0;
}

/* Who is at it under RCU goes on from there. */
static inline int rhashtable_remove_fast(struct rhashtable *ht, struct rhash_head *h,
					 const struct rhashtable_params p)
{
	struct rhash_head **at = &ht->first;

	while (*at && *at != h)
		at = &(*at)->next;
	if (!*at)
		return -ENOENT;
	*at = h->next;
	return 0;
}

#endif /* SIM_RHASHTABLE_H */
