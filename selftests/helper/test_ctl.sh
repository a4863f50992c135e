#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Command lines of shiftctl and shiftd: what is taken, what is refused and how.

# Tests are functions that are run by name.
# shellcheck disable=SC2317
set -u
OUT=${OUT:-$(dirname "$0")/../../build/selftests-helper}
BIN=$OUT/bin
DIR=$(mktemp -d)
trap 'rm -rf "$DIR"' EXIT
# shellcheck source=ktap.sh
. "$(dirname "$0")/ktap.sh"

# expect STATUS TEXT COMMAND...: it ends with STATUS and says TEXT.
expect() {
	local want=$1 says=$2 status
	shift 2
	"$@" >"$DIR/out" 2>&1 </dev/null
	status=$?
	if ((status != want)) || { [[ $says ]] &&
			! grep -qF -- "$says" "$DIR/out"; }; then
		echo "$*: $status, not $want with '$says':"
		cat "$DIR/out"
		return 1
	fi
}

ctl() {
	local want=$1 says=$2
	shift 2
	expect "$want" "$says" "$BIN/shiftctl" "$@"
}

helps() {
	local object
	ctl 0 "Objects" help && ctl 0 "Objects" --help &&
		ctl 2 "Objects" && ctl 0 shiftctl --version || return
	for object in node pair peer link qp stat monitor check; do
		ctl 0 "Usage: shiftctl $object" "$object" help || return
	done
	ctl 0 "pair add DEV" pair add help
}

usage() {
	ctl 2 "unknown option" -x pair &&
		ctl 2 "unknown object" foo &&
		ctl 2 "unknown object" "" &&
		ctl 2 "unknown command" pair foo &&
		ctl 2 "too few" pair add rxe0 &&
		ctl 2 "too many" pair del rxe0 rxe1 &&
		ctl 2 "not the name of an RDMA device" pair add rxe0 a/b &&
		ctl 2 "not the name of an RDMA device" pair add rxe0 rxe1,,rxe2 &&
		ctl 2 "at most 4" pair add a 1 2 3 4 5 &&
		ctl 2 "at most 4" pair add a 1,2,3,4,5 &&
		ctl 2 "at most 4" pair add a 1,2 3,4 5 &&
		ctl 2 "no backup is given" pair add a --policy strict &&
		ctl 2 "unexpected argument" pair add a b --policy strict c &&
		ctl 2 "expected --policy" pair add rxe0 rxe1 --polcy strict &&
		ctl 2 "exactly-once or at-least-once" pair add rxe0 rxe1 --policy &&
		ctl 2 "exactly-once or at-least-once" pair set rxe0 --policy lax &&
		ctl 2 "not a node name" node set "a b" &&
		ctl 2 "not a node name" peer del "$(printf 'a%.0s' {1..64})" &&
		ctl 2 "expected dev, pid or qpn" qp show foo &&
		ctl 2 "no value is given" qp show dev &&
		ctl 2 "not a number" qp show pid 1x &&
		ctl 2 "unknown argument" monitor x
}

peer_words() {
	ctl 2 "expected 'nic'" peer set b dev 10.0.0.1 &&
		ctl 2 "not followed by 'backup'" peer set b nic 10.0.0.1 &&
		ctl 2 "not followed by a GID" peer set b nic 10.0.0.1 backup &&
		ctl 2 "own backup" peer set b nic 10.0.0.1 backup 10.0.0.1 &&
		ctl 2 "given twice" peer set b nic 10.0.0.1 backup \
			10.0.0.2 nic 10.0.0.1 backup 10.0.0.2 &&
		ctl 2 "link-local" peer set b nic fe80::1 backup 10.0.0.2 &&
		ctl 2 "neither" peer set b nic x backup 10.0.0.2
}

no_module() {
	local words
	for words in "pair add rxe0 rxe1" "pair add rxe0 rxe1 rxe2,rxe3 rxe4" \
			"pair add rxe0 rxe1 rxe2 --policy at-least-once" \
			"pair del rxe0" "pair show" \
			"pair set rxe0 --policy paper" \
			"pair set rxe0 --policy exactly-once" \
			"peer show" "peer del b" "node set a" "node show" \
			"node nics" "link" "qp" "stat" "monitor" "-j qp show" \
			"peer set b nic 10.0.0.1 backup 10.0.0.2"; do
		# shellcheck disable=SC2086
		ctl 1 "modprobe rdma_shift" $words || return
	done
}

daemon() {
	local d=$BIN/shiftd
	expect 0 "Usage" "$d" --help && expect 0 shiftd "$d" --version &&
		expect 2 "Usage" "$d" --foo &&
		expect 2 "unexpected" "$d" foo &&
		expect 1 "No such file" "$d" --check -c "$DIR/none" &&
		expect 0 "" "$d" --check -c \
			"$(dirname "$0")/../../helper/shiftd.conf.example" ||
		return
	(umask 077; printf '[node]\nname=a\n[etcd]\nendpoints=http://h:1\nuser=u\npassword=p\n' >"$DIR/conf")
	expect 0 "'u' goes to http://h:1 in the clear" "$d" --check -c "$DIR/conf" &&
		expect 0 "" "$d" --load-keys -c "$DIR/conf" && [[ ! -s $DIR/out ]] || return
	echo "[pair]" >"$DIR/conf"
	expect 1 "conf:1: this [pair] has no 'default'" \
		"$d" --check -c "$DIR/conf" &&
		expect 1 "conf:1:" "$d" -c "$DIR/conf"
}

plan 5
t "help everywhere" helps
t "wrong usage ends with 2" usage
t "the words of peer set" peer_words
if [[ -d /sys/module/rdma_shift ]]; then
	ktap_n=$((ktap_n + 1))
	echo "ok $ktap_n without the module # SKIP cannot run here: it is loaded"
else
	t "without the module each command fails and says so" no_module
fi
t "shiftd's options" daemon
finish
