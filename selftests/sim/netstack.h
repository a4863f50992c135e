/* SPDX-License-Identifier: GPL-2.0 */
/* What the module needs of the network stack.  kernel.h includes this. */
#ifndef SIM_NETSTACK_H
#define SIM_NETSTACK_H

#include <netinet/in.h>

struct net { u64 net_cookie; };
extern struct net init_net;
static inline void put_net(struct net *net) { }

struct net_device { struct net *net; int ifindex; unsigned char addr_len; };
static inline struct net *dev_net(const struct net_device *dev) { return dev->net; }
static inline void dev_put(struct net_device *dev) { }
/* no address of a peer's is this host's own */
static inline struct net_device *ip_dev_find(struct net *net, __be32 addr) { return NULL; }
static inline bool ipv6_chk_addr(struct net *net, const struct in6_addr *addr, void *dev, int strict)
{
	return false;
}

#define IPV6_ADDR_LINKLOCAL 0x20u
#define CONFIG_IPV6 1
#define IS_ENABLED(option) (option)
static inline bool ipv6_addr_v4mapped(const struct in6_addr *a)
{
	return !a->s6_addr32[0] && !a->s6_addr32[1] && a->s6_addr32[2] == htonl(0xffff);
}
static inline bool ipv6_addr_any(const struct in6_addr *a)
{
	return !a->s6_addr32[0] && !a->s6_addr32[1] && !a->s6_addr32[2] && !a->s6_addr32[3];
}
static inline bool ipv6_addr_is_multicast(const struct in6_addr *a) { return a->s6_addr[0] == 0xff; }
static inline u32 ipv6_addr_type(const struct in6_addr *a)
{
	return a->s6_addr[0] == 0xfe && a->s6_addr[1] == 0x80 ? IPV6_ADDR_LINKLOCAL : 0;
}
static inline void ipv6_addr_set_v4mapped(__be32 addr, struct in6_addr *to)
{
	*to = (struct in6_addr) { .s6_addr32 = { 0, 0, htonl(0xffff), addr } };
}
static inline bool ipv4_is_zeronet(__be32 a) { return !(a & htonl(0xff000000)); }
static inline bool ipv4_is_multicast(__be32 a) { return (a & htonl(0xf0000000)) == htonl(0xe0000000); }
static inline bool ipv4_is_loopback(__be32 a) { return (a & htonl(0xff000000)) == htonl(0x7f000000); }
static inline bool ipv4_is_lbcast(__be32 a) { return a == 0xffffffff; }

/* neighbours: nothing changes them here */
#define NUD_VALID 0xde
#define NETEVENT_NEIGH_UPDATE 1
#define NOTIFY_DONE 0
struct notifier_block {
	int (*notifier_call)(struct notifier_block *nb, unsigned long event, void *ptr);
	int priority;
};
struct neigh_table { int family; };
typedef struct { int n; } rwlock_t, seqlock_t;
struct neighbour {
	struct neigh_table *tbl;
	struct net_device *dev;
	rwlock_t lock;
	seqlock_t ha_lock;
	u8 nud_state, ha[8], primary_key[16];
};
static inline void write_lock_bh(rwlock_t *l) { }
static inline void write_unlock_bh(rwlock_t *l) { }
static inline void write_seqlock(seqlock_t *l) { }
static inline void write_sequnlock(seqlock_t *l) { }
static inline int register_netevent_notifier(struct notifier_block *nb) { return 0; }
static inline int unregister_netevent_notifier(struct notifier_block *nb) { return 0; }

#define NETDEV_CHANGEMTU 7
static inline int register_netdevice_notifier(struct notifier_block *nb) { return 0; }
static inline int unregister_netdevice_notifier(struct notifier_block *nb) { return 0; }

struct netlink_ext_ack { const char *text; };
#define NL_SET_ERR_MSG(extack, message) do { \
	if (extack) \
		(extack)->text = (message); \
} while (0)
#define NL_SET_ERR_MSG_MOD NL_SET_ERR_MSG

#endif /* SIM_NETSTACK_H */
