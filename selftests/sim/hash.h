/* SPDX-License-Identifier: GPL-2.0 */
/* Hash tables, as the module uses them.  kernel.h includes this. */
#ifndef SIM_HASH_H
#define SIM_HASH_H

struct hlist_head { struct hlist_node *first; };
#define INIT_HLIST_NODE(n) (*(n) = (struct hlist_node) {})
static inline bool hlist_unhashed(const struct hlist_node *n) { return !n->pprev; }
static inline void hlist_add_head(struct hlist_node *n, struct hlist_head *h)
{
	n->next = h->first;
	if (n->next)
		n->next->pprev = &n->next;
	h->first = n;
	n->pprev = &h->first;
}
/* A reader under RCU may be at the node: it keeps its next. */
static inline void hash_del_rcu(struct hlist_node *n)
{
	if (hlist_unhashed(n))
		return;
	*n->pprev = n->next;
	if (n->next)
		n->next->pprev = n->pprev;
	n->pprev = NULL;
}
static inline void hash_del(struct hlist_node *n)
{
	hash_del_rcu(n);
	n->next = NULL;
}
#define DEFINE_HASHTABLE(name, bits) struct hlist_head name[1 << (bits)]
#define DECLARE_HASHTABLE(name, bits) struct hlist_head name[1 << (bits)]
#define hash_hashed(n) (!hlist_unhashed(n))
#define hash_bucket(table, key) (&(table)[(u32)(key) % ARRAY_SIZE(table)])
#define hash_add(table, n, key) hlist_add_head(n, hash_bucket(table, key))
#define hash_add_rcu hash_add
#define hlist_entry_or_null(p, type, m) ({ struct hlist_node *p_ = (p); \
	p_ ? container_of(p_, type, m) : NULL; })
#define hash_for_each_possible(table, p, m, key) \
	for (p = hlist_entry_or_null(hash_bucket(table, key)->first, __typeof__(*p), m); p; \
	     p = hlist_entry_or_null(p->m.next, __typeof__(*p), m))
#define hash_for_each_possible_rcu(table, p, m, key, ...) hash_for_each_possible(table, p, m, key)

#define hash_ptr(p, bits) ((u32)hash_64((u64)(p), bits))
static inline u32 jhash(const void *key, u32 length, u32 seed)
{
	const u8 *p = key;

	for (seed ^= 0x811c9dc5; length; length--)
		seed = (seed ^ *p++) * 0x01000193;
	return seed ^ seed >> 15;
}

#endif /* SIM_HASH_H */
