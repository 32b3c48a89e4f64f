# Sourced by .ci/test, .ci/long and .ci/run. It gives
#   step NAME COMMAND…    runs a command and shows its output while it runs
#   beside NAME COMMAND…  starts a command; several commands go one after the other
#   joined                waits for what beside started and shows its output
#   summary               prints a table and why steps failed; its status is 1 if one did
# A step never stops the run. However the run ends, by a signal or kill -9 too, the processes of its steps are killed and its temporary files removed.
set -euo pipefail
set -m # each step is a process group of its own

work=$(mktemp -d "${TMPDIR:-/tmp}/assent-run.XXXXXX")
chmod 711 "$work" # PostgreSQL runs as another user
mkdir -m 1777 "$work/tmp"
mkdir "$work/logs"
export TMPDIR=$work/tmp

# The reaper lives in a session of its own and reads the process groups of steps. Its input ends when this script does.
exec {alive}> >(exec setsid bash -c '
	trap "" INT TERM HUP
	while read -r change group; do
		if [ "$change" = + ]; then groups[group]=1; else unset "groups[group]"; fi
	done
	for group in "${!groups[@]}"; do kill -KILL -- "-$group" 2>/dev/null; done
	for attempt in 1 2 3; do rm -rf "$1" 2>/dev/null && break; sleep 1; done
' reaper "$work")

trap 'exit 130' INT TERM HUP

names=()
results=()
seconds=()
: >"$work/reruns"

# started NAME COMMAND… runs in the background and writes log, status and time. It sets $group.
started() {
	local name=$1
	shift
	(
		exec {alive}>&-
		trap - INT TERM
		began=$SECONDS
		set +e
		(set -euo pipefail && "$@") >"$work/logs/$name" 2>&1 </dev/null
		echo "$? $((SECONDS - began))" >"$work/logs/$name.status.tmp"
		mv "$work/logs/$name.status.tmp" "$work/logs/$name.status"
	) &
	group=$!
	echo "+ $group" >&"$alive"
}

record() {
	local name=$1 rc=1 took=0
	read -r rc took <"$work/logs/$name.status" 2>/dev/null || true
	names+=("$name")
	seconds+=("$took")
	if [ "$rc" -eq 0 ]; then results+=(passed); else results+=(FAILED); fi
	printf -- '-- %s: %s (%d s)\n' "$name" "${results[-1]}" "$took"
}

step() {
	local name=$1
	printf '\n== %s\n' "$name"
	: >"$work/logs/$name"
	started "$@"
	tail -n +1 -f --pid="$group" -s 0.2 "$work/logs/$name" 2>/dev/null {alive}>&- & # shows the output; its own group ends with the step
	local shown=$!
	wait "$group" || true
	wait "$shown" || true
	echo "- $group" >&"$alive"
	record "$name"
}

lane=()
lanes=()

# beside [NAME COMMAND -- NAME COMMAND …]
beside() {
	local words=("$@")
	(
		exec {alive}>&-
		current=()
		for word in "${words[@]}" --; do
			if [ "$word" != -- ]; then
				current+=("$word")
				continue
			fi
			name=${current[0]}
			began=$SECONDS
			set +e # or set -e would mean nothing inside the command
			(set -euo pipefail && "${current[@]:1}") >"$work/logs/$name" 2>&1 </dev/null
			echo "$? $((SECONDS - began))" >"$work/logs/$name.status"
			current=()
		done
	) &
	lanes+=("$!")
	echo "+ $!" >&"$alive"
	local next=1
	for word in "${words[@]}"; do
		if [ "$next" = 1 ]; then lane+=("$word"); fi
		next=0
		if [ "$word" = -- ]; then next=1; fi
	done
}

joined() {
	local pid name
	for pid in ${lanes[@]+"${lanes[@]}"}; do
		wait "$pid" || true
		echo "- $pid" >&"$alive"
	done
	for name in ${lane[@]+"${lane[@]}"}; do
		printf '\n== %s\n' "$name"
		cat "$work/logs/$name" 2>/dev/null || true
		record "$name"
	done
	lanes=()
	lane=()
}

# reasons NAME prints the lines of a log that say why a step failed.
reasons() {
	local log=$work/logs/$1
	grep -aE -A 6 -e '--- FAIL|^panic:|^FAIL|^error:|[Ee]rror:|No space left|cannot|waited .* for|running tests|not found|timed out|stale' "$log" |
		grep -av 'level=' | cut -c1-300 | head -n 40
	echo '…'
	tail -n 8 "$log" | cut -c1-300
}

summary() { summarize | tee -a "${ASSENT_SUMMARY:-/dev/null}"; }

summarize() {
	local i failed=0
	printf '\n%-22s %-8s %7s\n' step result seconds
	for i in "${!names[@]}"; do
		printf '%-22s %-8s %7d\n' "${names[i]}" "${results[i]}" "${seconds[i]}"
	done
	for i in "${!names[@]}"; do
		[ "${results[i]}" = FAILED ] || continue
		failed=$((failed + 1))
		printf '\nfailed: %s\n' "${names[i]}"
		reasons "${names[i]}" || true
	done
	if [ -s "$work/reruns" ]; then
		printf '\ntests that failed and passed when they were run once more:\n'
		cat "$work/reruns"
	fi
	printf '\nreruns: %d\n%d passed, %d failed\n' "$(wc -l <"$work/reruns")" "$((${#names[@]} - failed))" "$failed"
	[ "$failed" -eq 0 ]
}
