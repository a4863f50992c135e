#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# shiftd with a real etcd on the loopback interface: two daemons that touch no
# kernel, each with devices of its own in a made-up sysfs.

# Tests are functions that are run by name.
# shellcheck disable=SC2317
set -u
OUT=${OUT:-$(dirname "$0")/../../build/selftests-helper}
BIN=$OUT/bin
HERE=$(realpath "$(dirname "$0")")
DIR=$(mktemp -d)
export ETCDCTL_API=3
ETCD=
declare -A PID=()
# shellcheck source=ktap.sh
. "$(dirname "$0")/ktap.sh"

if ! command -v etcd >/dev/null || ! command -v etcdctl >/dev/null; then
	echo "1..0 # SKIP cannot run here: no etcd (package etcd-server)"
	exit 4
fi

cleanup() {
	local pid
	for pid in "${PID[@]}" $ETCD; do
		kill -KILL "$pid" 2>/dev/null
		wait "$pid" 2>/dev/null
	done
	rm -rf "$DIR"
}
trap cleanup EXIT

ktap_show() {
	tail -n 8 "$DIR"/*.out "$DIR"/*.err "$DIR/ectl"
}

# Three ports nobody listens on; the third stays free: a dead endpoint.
free_ports() {
	python3 -c '
import socket
s = [socket.socket() for _ in range(3)]
for x in s: x.bind(("127.0.0.1", 0))
print(*[x.getsockname()[1] for x in s])'
}
read -r PORT PEER_PORT DEAD < <(free_ports)
SCHEME=http
ETCD_TLS=()
CTL_TLS=()

etcd_start() {
	etcd --name t --data-dir "$DIR/etcd" --log-level error \
		--listen-client-urls "$SCHEME://127.0.0.1:$PORT" \
		--advertise-client-urls "$SCHEME://127.0.0.1:$PORT" \
		--listen-peer-urls "http://127.0.0.1:$PEER_PORT" \
		--initial-advertise-peer-urls "http://127.0.0.1:$PEER_PORT" \
		--initial-cluster "t=http://127.0.0.1:$PEER_PORT" \
		"${ETCD_TLS[@]}" >>"$DIR/etcd.log" 2>&1 &
	ETCD=$!
	wait_for 20 ectl endpoint health
}

etcd_kill() {
	kill -KILL "$ETCD"
	wait "$ETCD" 2>/dev/null
	ETCD=
}

ectl() {
	etcdctl --endpoints "$SCHEME://127.0.0.1:$PORT" "${CTL_TLS[@]}" \
		--command-timeout=30s "$@" >"$DIR/ectl" 2>&1
}

# device NODE DEV IP: it has that GID, as RoCE v1 and v2.
device() {
	local port=$DIR/sys-$1/class/infiniband/$2/ports/1 hex
	# shellcheck disable=SC2046,SC2183
	hex=$(printf '%02x%02x:%02x%02x' $(tr . ' ' <<<"$3"))
	mkdir -p "$port/gids" "$port/gid_attrs/types"
	echo "IB/RoCE v1" >"$port/gid_attrs/types/0"
	echo "RoCE v2" >"$port/gid_attrs/types/1"
	echo "0000:0000:0000:0000:0000:ffff:$hex" |
		tee "$port/gids/0" >"$port/gids/1"
}

# config NODE: rxe0 and rxe1 stand in for each other unless PAIR is rxe0.
config() {
	local dev=${PAIR:-rxe0 rxe1}
	echo "[node]" >"$DIR/$1.conf"
	echo "name=$1" >>"$DIR/$1.conf"
	for dev in $dev; do
		printf '[pair]\ndefault=%s\nbackup=rxe%d\n' "$dev" \
			$((1 - ${dev#rxe})) >>"$DIR/$1.conf"
	done
	cat >>"$DIR/$1.conf" <<-END
		[etcd]
		endpoints=$SCHEME://127.0.0.1:$DEAD,$SCHEME://127.0.0.1:$PORT
		lease_ttl=5
		hold=${HOLD:-30}
		${EXTRA:-}
	END
}

start() {
	local node=$1
	shift
	: >"$DIR/$node.out"
	"$BIN/shiftd" -c "$DIR/$node.conf" --sysfs "$DIR/sys-$node" --dry-run \
		"$@" >"$DIR/$node.out" 2>>"$DIR/$node.err" &
	PID[$node]=$!
}

# stop NODE SIGNAL: and its exit status.
stop() {
	local pid=${PID[$1]} status
	kill "-$2" "$pid"
	wait "$pid" 2>/dev/null
	status=$?
	unset "PID[$1]"
	return "$status"
}

# hold NODE SECONDS: have it read again with another hold.
hold() {
	local n
	n=$(count "$1.err" "configuration read again")
	HOLD=$2 config "$1"
	kill -HUP "${PID[$1]}"
	wait_for 5 more_than "$1.err" "configuration read again" "$n"
}

alive() {
	kill -0 "${PID[a]}" && kill -0 "${PID[b]}"
}

said() { grep -qF -- "$2" "$DIR/$1"; }
count() { grep -cF -- "$2" "$DIR/$1"; }
# The key of an address; what ends with 2 is b's.
path() {
	local node=a
	[[ $1 == *.2 ]] && node=b
	echo "/shift/v1/nics/$node/::ffff:$1"
}
key() { ectl get "$(path "$1")" && [[ -s $DIR/ectl ]]; }
no_key() { ectl get "$(path "$1")" && [[ ! -s $DIR/ectl ]]; }

nics() {
	echo "nic ::ffff:10.1.0.$1 backup ::ffff:10.2.0.$1 nic ::ffff:10.2.0.$1 backup ::ffff:10.1.0.$1"
}

more_than() { (($(count "$1" "$2") > $3)); }

meet() {
	etcd_start || return
	start a
	start b
	wait_for 15 said a.out "peer set b $(nics 2)" &&
		wait_for 15 said b.out "peer set a $(nics 1)" &&
		said a.out "node set a" && said a.out "pair add rxe0 rxe1" &&
		said a.out "pair add rxe1 rxe0" && key 10.1.0.1 &&
		said ectl '"backups":[{"dev":"rxe1","gid":"::ffff:10.2.0.1","addr":"10.2.0.1"}]' &&
		said a.err "etcd: connected to $SCHEME://127.0.0.1:$PORT"
}

garbage() {
	local p=/shift/v1/nics value
	ectl put "$p/foo" bar && ectl put "$p/" "" && ectl put "$p/c/::1" '{}' &&
		ectl put "$p/c/::ffff:10.9.0.1" '{"version":1,"node":7}' &&
		ectl put "$p/c/::ffff:10.9.0.2" "$(printf '[%.0s' {1..5000})" &&
		ectl put "$p/$(printf 'x%.0s' {1..3000})" y &&
		ectl put /shift/v1/nicsfoo x && ectl put /shift/v2 x || return
	value=$(head -c 600000 /dev/zero | tr '\0' z)
	ectl put "$p/c/::ffff:10.9.0.3" <<<"$value" || return
	# Someone claims a GID of ours, and one of the other.
	value='{"version":1,"node":"c","boot_id":"11111111-1111-1111-1111-111111111111","dev":"d","gid":"::ffff:10.9.0.4","backups":[{"dev":"e","gid":"::ffff:10.1.0.1","addr":""}]}'
	ectl put "$p/c/::ffff:10.9.0.4" "$value" || return
	wait_for 5 said a.err "10.9.0.4' ignored: it has a GID of this node" &&
		wait_for 5 said b.err "10.9.0.4' ignored: another node has" &&
		wait_for 5 said a.err "entry 'foo' ignored: its key is not NODE/GID" &&
		alive && ! said a.out "peer set c" && ! said b.out "peer set c" ||
		return
	# One that is good among them is taken.
	value=${value//10.1.0.1/10.9.0.9}
	ectl put "$p/c/::ffff:10.9.0.4" "$value" &&
		wait_for 5 said a.out "peer set c nic ::ffff:10.9.0.4 backup ::ffff:10.9.0.9" || return
	# Under a key of its own it speaks for b, as if that had booted again.
	value=${value//\"c\"/\"b\"}
	ectl put "$p/c/::ffff:10.9.0.5" "${value//10.9.0.4/10.9.0.5}" &&
		wait_for 5 said a.err "10.9.0.5' ignored: its 'node' differs from its key" &&
		! said a.out "::ffff:10.9.0.5"
}

# A listing with garbage in it, and pages that are too large to take at once.
garbage_listed() {
	local i
	for i in {1..20}; do
		head -c 900000 /dev/zero | tr '\0' "$(printf '\\%03o' $((96 + i)))" |
			ectl put "/shift/v1/nics/big$i" || return
	done
	stop a TERM || return
	start a
	wait_for 15 said a.out "peer set b $(nics 2)" &&
		wait_for 5 said a.out "peer set c" && alive || return
	for i in {1..20}; do
		ectl del "/shift/v1/nics/big$i"
	done
	ectl del --prefix /shift/v1/nics/c/ && hold a 2 &&
		wait_for 10 said a.out "peer del c" && hold a 30
}

etcd_away() {
	local before lost
	before=$(wc -l <"$DIR/a.out")
	lost=$(count a.err "etcd: lost")
	etcd_kill
	wait_for 30 more_than a.err "etcd: lost" "$lost" || return
	# Longer than lease and hold together.
	sleep 10
	alive && (($(wc -l <"$DIR/a.out") == before)) &&
		(($(count a.err "etcd: lost") == lost + 1)) &&
		! said a.err "no endpoint can be used"
}

etcd_back() {
	local n
	n=$(count a.err "etcd: connected")
	etcd_start && wait_for 45 more_than a.err "etcd: connected" "$n" &&
		wait_for 45 key 10.1.0.1 && wait_for 45 key 10.1.0.2 || return
	# What the other has not published again by then is held.
	sleep 1
	! said a.out "peer del b"
}

etcd_empty() {
	local a b
	a=$(count a.err "etcd: connected")
	b=$(count b.err "etcd: connected")
	etcd_kill
	rm -rf "$DIR/etcd"
	etcd_start && wait_for 45 more_than a.err "etcd: connected" "$a" &&
		wait_for 45 more_than b.err "etcd: connected" "$b" &&
		wait_for 5 key 10.1.0.1 && wait_for 5 key 10.2.0.2 && alive
}

etcd_hangs() {
	local lost
	settled || return
	lost=$(count a.err "etcd: lost")
	kill -STOP "$ETCD"
	wait_for 15 more_than a.err "etcd: lost" "$lost"
	local status=$?
	kill -CONT "$ETCD"
	((status == 0)) && settled && alive
}

connected() {
	[[ $(grep -E "etcd: (connected|lost)" "$DIR/$1.err" | tail -n 1) == \
		*connected* ]]
}

steady() {
	connected a && connected b && sleep 6 && connected a && connected b &&
		key 10.1.0.1 && key 10.1.0.2 && said b.out "peer set a"
}

# Both connected for longer than an old lease lasts, so that what is there is
# there to stay.  On a busy machine etcd may be slow enough to be given up once more.
settled() {
	wait_for 120 steady && alive
}

lease_lost() {
	local id
	settled || return
	ectl lease list || return
	grep -xE '[0-9a-f]{8,}' "$DIR/ectl" >"$DIR/leases"
	[[ -s $DIR/leases ]] || return
	while read -r id; do
		ectl lease revoke "$id"
	done <"$DIR/leases"
	wait_for 15 key 10.1.0.1 && wait_for 15 key 10.2.0.2 && alive
}

key_deleted() {
	settled || return
	ectl del --prefix /shift/ && wait_for 5 key 10.1.0.1 &&
		wait_for 5 key 10.2.0.1 && wait_for 5 key 10.1.0.2
}

key_overwritten() {
	ectl put /shift/v1/nics/a/::ffff:10.1.0.1 garbage || return
	restored() {
		key 10.1.0.1 && said ectl '"node":"a"'
	}
	wait_for 15 restored &&
		said a.err "someone else wrote /shift/v1/nics/a/::ffff:10.1.0.1"
}

# The address goes away: stays published.  Another comes: replaces it.
gid_changes() {
	local port=$DIR/sys-a/class/infiniband/rxe0/ports/1/gids
	echo "0000:0000:0000:0000:0000:0000:0000:0000" |
		tee "$port/0" >"$port/1"
	kill -HUP "${PID[a]}"
	wait_for 5 said a.err "its last GID stays published" && sleep 1 &&
		key 10.1.0.1 || return
	device a rxe0 10.1.0.7
	kill -HUP "${PID[a]}"
	wait_for 5 key 10.1.0.7 && wait_for 5 no_key 10.1.0.1 &&
		wait_for 10 said b.out "nic ::ffff:10.1.0.7 backup ::ffff:10.2.0.1" ||
		return
	device a rxe0 10.1.0.1
	kill -HUP "${PID[a]}"
	wait_for 5 key 10.1.0.1 && wait_for 5 no_key 10.1.0.7
}

reload() {
	cp "$DIR/a.conf" "$DIR/a.good"
	echo "nonsense" >>"$DIR/a.conf"
	kill -HUP "${PID[a]}"
	wait_for 5 said a.err "the old configuration stays" && alive || return
	PAIR=rxe0 config a
	cat >>"$DIR/a.conf" <<-END
		[peer d]
		nic=192.0.2.1 backup=192.0.2.2
	END
	kill -HUP "${PID[a]}"
	wait_for 5 said a.out "pair del rxe1" && wait_for 5 no_key 10.2.0.1 &&
		wait_for 5 said a.out "peer set d nic ::ffff:192.0.2.1 backup ::ffff:192.0.2.2" &&
		key 10.1.0.1 || return
	cp "$DIR/a.good" "$DIR/a.conf"
	kill -HUP "${PID[a]}"
	wait_for 5 said a.out "peer del d" && wait_for 5 key 10.2.0.1
}

restarts() {
	settled || return
	local n
	n=$(wc -l <"$DIR/a.out")
	stop b TERM || return
	key 10.1.0.2 || return
	start b
	wait_for 15 said b.out "peer set a" && sleep 9 && key 10.1.0.2 &&
		(($(wc -l <"$DIR/a.out") == n))
}

crashes() {
	# Through all that etcd has been through, nobody was forgotten.
	! said a.out "peer del b" && hold a 4 || return
	stop b KILL
	wait_for 10 no_key 10.1.0.2 && sleep 1 && ! said a.out "peer del b" &&
		wait_for 10 said a.out "peer del b" && hold a 30
}

withdraws() {
	local n
	n=$(count a.out "peer set b")
	start b --withdraw
	wait_for 15 key 10.1.0.2 && wait_for 15 more_than a.out "peer set b" "$n" &&
		stop b TERM && no_key 10.1.0.2
}

logs_in() {
	stop a TERM || return
	ectl user add root:secret && ectl user grant-role root root &&
		ectl user add shift:hush && ectl role add shift &&
		ectl role grant-permission shift readwrite --prefix=true /shift/ &&
		ectl user grant-role shift shift && ectl auth enable || return
	# shellcheck disable=SC2034
	CTL_TLS=(--user root:secret)
	: >"$DIR/a.err"
	EXTRA=$'user=shift\npassword=wrong' config a
	start a
	wait_for 60 said a.err "no endpoint can be used" || return
	EXTRA=$'user=shift\npassword=hush' config a
	kill -HUP "${PID[a]}"
	wait_for 60 said a.err "etcd: connected" && wait_for 60 key 10.1.0.1 &&
		! grep -q hush "$DIR/a.err" && stop a TERM
}

# The key of rxe1 is left out of the role at first: the rest is not held up by that.
own_role() {
	local p=/shift/v1/nics/a/::ffff
	# because of that key; a busy etcd may be given up, and connected again
	ended() { grep -q "etcd: lost.*permission denied" "$DIR/a.err"; }
	ectl user add a:own && ectl role add a &&
		ectl role grant-permission a read --prefix=true /shift/v1/ &&
		ectl role grant-permission a readwrite "$p:10.1.0.1" &&
		ectl user grant-role a a && ectl del --prefix /shift/ || return
	: >"$DIR/a.err"
	EXTRA=$'user=a\npassword=own' config a
	mkdir -p "$DIR/run" && RUNTIME_DIRECTORY=$DIR/run start a
	wait_for 60 said a.err "the user 'a' may not write $p:10.2.0.1" &&
		wait_for 60 key 10.1.0.1 && wait_for 60 said a.err "etcd: connected" &&
		wait_for 60 said run/report "warn this node may not write its entry a/::ffff:10.2.0.1" &&
		wait_for 60 said run/report "ok this node may not write entries of other nodes" &&
		no_key 10.2.0.1 && ! ended || return
	ectl role grant-permission a readwrite "$p:10.2.0.1" && wait_for 60 key 10.2.0.1 &&
		gone() { ! said run/report "its entry"; } && wait_for 60 gone &&
		(($(count a.err "may not write") == 1)) && ! ended &&
		ectl get --prefix /shift/v1/nics/a/ --keys-only &&
		(($(grep -c nics "$DIR/ectl") == 2)) && stop a TERM && [[ ! -e $DIR/run/report ]]
}

# A role of its own, and one for something of another node's; READs of that, and what is not below
# the prefix, are of no account.
others_keys() {
	local nics=/shift/v1/nics perm
	ectl role add more && ectl user grant-role a more &&
		ectl role grant-permission more read --prefix=true "$nics/b/" &&
		ectl role grant-permission more readwrite --prefix=true "$nics/a/" &&
		ectl role grant-permission more write --prefix=true /shift/v1/other || return
	for perm in "" "--prefix=true $nics/b/" "$nics/b/::ffff:10.1.0.2" "$nics/0 $nics/z" \
			"--from-key=true $nics/b"; do
		# shellcheck disable=SC2086
		[[ -z $perm ]] || ectl role grant-permission more write $perm || return
		EXTRA=$'user=a\npassword=own' config a
		RUNTIME_DIRECTORY=$DIR/run start a
		if [[ -z $perm ]]; then
			wait_for 60 said run/report "ok this node may not write entries of other nodes"
		else
			wait_for 60 said run/report "warn this node may write entries of other nodes"
		fi || return
		stop a TERM || return
		# shellcheck disable=SC2086
		[[ -z $perm ]] || ectl role revoke-permission more $perm || return
	done
	ectl role delete more
}

# As the user of before, whose role is everybody's.
wide_role() {
	: >"$DIR/a.err"
	EXTRA=$'user=shift\npassword=hush' config a
	mkdir -p "$DIR/run" && RUNTIME_DIRECTORY=$DIR/run start a
	wait_for 60 said run/report "warn this node may write entries of other nodes" &&
		said run/report "ok etcd http" &&
		said a.err "this node may write keys of other nodes" && stop a TERM
}

# In a file, and as a credential; what is in neither is told.
password_files() {
	mkdir -p "$DIR/credentials" || return
	(umask 077 && echo hush >"$DIR/credentials/pass")
	: >"$DIR/a.err"
	EXTRA="user=shift"$'\n'"password_file=$DIR/credentials/pass" config a
	start a
	wait_for 60 said a.err "etcd: connected" && stop a TERM || return
	EXTRA=$'user=shift\npassword_file=credential:pass' config a
	: >"$DIR/a.err"
	start a
	wait "${PID[a]}" && return 1
	said a.err "'password_file' is a credential, and there are none" || return
	CREDENTIALS_DIRECTORY=$DIR/credentials start a
	wait_for 60 said a.err "etcd: connected" || return
	# the old one goes on when the new one cannot be read, and each reload reads it anew
	mv "$DIR/credentials/pass" "$DIR/credentials/gone"
	kill -HUP "${PID[a]}"
	wait_for 60 said a.err "credential pass: No such file or directory" &&
		said a.err "the old configuration stays in use" || return
	echo wrong >"$DIR/credentials/pass"
	kill -HUP "${PID[a]}"
	wait_for 60 said a.err "every user can read the password" &&
		wait_for 60 said a.err "no endpoint can be used" || return
	mv "$DIR/credentials/gone" "$DIR/credentials/pass"
	kill -HUP "${PID[a]}"
	connected_again() { (($(count a.err "etcd: connected") == 2)); }
	wait_for 60 connected_again && ! grep -q hush "$DIR/a.err" && stop a TERM
}

certificates() {
	(
		cd "$DIR" || exit
		openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca \
			-keyout ca.key -out ca.pem &&
		for who in server client; do
			openssl req -newkey rsa:2048 -nodes -subj "/CN=$who" \
				-keyout "$who.key" -out "$who.csr" &&
			printf 'subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth,clientAuth\n' >ext &&
			openssl x509 -req -in "$who.csr" -CA ca.pem -CAkey ca.key \
				-CAcreateserial -days 2 -extfile ext -out "$who.pem" ||
				exit
		done
	)
}

over_tls() {
	etcd_kill
	rm -rf "$DIR/etcd"
	certificates || return
	SCHEME=https
	ETCD_TLS=(--cert-file "$DIR/server.pem" --key-file "$DIR/server.key"
		--client-cert-auth --trusted-ca-file "$DIR/ca.pem")
	CTL_TLS=(--cacert "$DIR/ca.pem" --cert "$DIR/client.pem"
		--key "$DIR/client.key")
	etcd_start || return
	: >"$DIR/a.err"
	# Without a certificate it is refused, and without the CA it refuses.
	config a
	start a
	wait_for 15 said a.err "no endpoint can be used" || return
	EXTRA="ca_file=$DIR/ca.pem"$'\n'"cert_file=$DIR/client.pem"$'\n'"key_file=$DIR/client.key" \
		config a
	kill -HUP "${PID[a]}"
	wait_for 30 said a.err "etcd: connected" && wait_for 30 key 10.1.0.1 &&
		stop a TERM
}

# Sixteen endpoints of that kind, so that there is no waiting between attempts.
nonsense() {
	local i list=
	for i in {1..16}; do
		list+=,http://127.0.0.1:$DEAD
	done
	"$HERE/hostile.py" "$DEAD" "$RANDOM" &
	PID[hostile]=$!
	config c
	sed -i "s|^endpoints=.*|endpoints=${list#,}|; s|^hold=.*|hold=1|" \
		"$DIR/c.conf"
	start c --debug
	sleep 15
	kill -0 "${PID[c]}" && echo "attempts: $(count c.err "etcd: ")" &&
		more_than c.err "etcd: " 20 && stop c TERM
	local status=$?
	stop hostile KILL
	return "$status"
}

device c rxe0 10.1.0.3
device c rxe1 10.2.0.3
device a rxe0 10.1.0.1
device a rxe1 10.2.0.1
device b rxe0 10.1.0.2
device b rxe1 10.2.0.2
config a
config b

plan 22
t "two nodes meet; one of two endpoints is dead" meet
t "garbage in the directory is left out" garbage
t "a listing full of garbage is read" garbage_listed
t "etcd killed: nothing is forgotten, one line is logged" etcd_away
t "etcd back: published and watched again" etcd_back
t "etcd back and empty: published again" etcd_empty
t "etcd hangs: noticed, and over it" etcd_hangs
t "a lease that was lost is replaced" lease_lost
t "keys that were deleted are written again" key_deleted
t "a key that was overwritten is written again" key_overwritten
t "a GID that is lost stays published, a new one replaces it" gid_changes
t "a reload takes what is good and only that" reload
t "a restart is not noticed by others" restarts
t "a crashed daemon's node is held, then removed" crashes
t "a withdrawn node is gone at once" withdraws
t "user and password" logs_in
t "a role for the keys of one node; a key that it leaves out" own_role
t "a role for keys of another node is told" others_keys
t "a role for the keys of all nodes is told" wide_role
t "a password in a file, or as a credential" password_files
t "TLS with certificates" over_tls
t "an endpoint that answers nonsense does no harm" nonsense
finish
