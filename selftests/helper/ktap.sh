# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=bash
#
# KTAP for shell tests: plan N; t NAME FUNCTION...; finish.

ktap_n=0
ktap_failed=0

plan() {
	echo "KTAP version 1"
	echo "1..$1"
}

# A test is a function that returns 0; what it says goes into comments.
t() {
	local name=$1 text
	shift
	ktap_n=$((ktap_n + 1))
	if "$@" >"$DIR/test.out" 2>&1; then
		echo "ok $ktap_n $name"
		return
	fi
	ktap_failed=1
	while IFS= read -r text; do
		echo "# $text"
	done <"$DIR/test.out"
	declare -F ktap_show >/dev/null && ktap_show | sed 's/^/# /'
	echo "not ok $ktap_n $name"
}

finish() {
	exit $ktap_failed
}

# wait_for SECONDS COMMAND...: until it succeeds.
wait_for() {
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		if ((SECONDS >= end)); then
			echo "not within time: $*"
			return 1
		fi
		sleep 0.1
	done
}
