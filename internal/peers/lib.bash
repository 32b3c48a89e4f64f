# Sourced by the run script of every peer that wants it. It gives
#   $root    the checkout                  $here    the folder of the peer
#   $work    a directory that is removed at the end, with a copy of the peer's folder in it; the script runs there
#   $bin     assent, agf-validate and probe, built from the checkout
#   python   the peer's Python, with requirements.txt installed; "$(venv)/bin/python" where it runs in the background
#   modules  puts node_modules of package-lock.json into $work
#   start COMMAND…  runs a program in the background, and ends it at the end
#   serve    starts assent for this script; stops it at the end
#   must_fail COMMAND…  fails unless the command fails, for a check that can't fail proves nothing
# Packages are installed into ${XDG_CACHE_HOME:-~/.cache}/assent-peers, under the digest of what is to be installed. An install that fails is a
# failure.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[1]}")" && pwd)
root=$(cd "$here/../../.." && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/assent-peers
work=$(mktemp -d)
started=()

finish() {
	local pid
	for pid in ${started[@]+"${started[@]}"}; do
		kill "$pid" 2>/dev/null || true
	done
	wait
	rm -rf "$work"
}
trap finish EXIT

bin=${ASSENT_PEERS_BIN:-$work/.bin}
if [ ! -x "$bin/probe" ]; then
	mkdir -p "$bin"
	programs=$(cd "$root" && go run ./internal/testbin/build cmd/assent cmd/agf-validate agent/internal/probe)
	ln -s $programs "$bin/"
fi
cp -R "$here/." "$work/"
cd "$work"

start() {
	"$@" &
	started+=($!)
}

# installed NAME FILE… prints the cache directory of what these files ask for, once COMMAND (the function install_NAME) has filled it.
installed() {
	local name=$1 at
	shift
	at=$cache/${here##*/}-$name-$(cat "$@" <(uname -sm) | sha256sum | cut -c1-16)
	mkdir -p "$cache"
	exec {lock}>"$at.lock"
	flock "$lock"
	if [ ! -e "$at/.complete" ]; then
		rm -rf "$at"
		mkdir -p "$at"
		"install_$name" "$at" >&2
		touch "$at/.complete"
	fi
	exec {lock}>&-
	printf '%s\n' "$at"
}

install_python() {
	python3 -m venv "$1"
	"$1/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-compile --requirement "$here/requirements.txt"
	"$1/bin/pip" --quiet check
}

venv() { installed python "$here/requirements.txt" <(python3 --version); }

python() { "$(venv)/bin/python" "$@"; }

install_node() {
	cp "$here/package.json" "$here/package-lock.json" "$1/"
	(cd "$1" && npm ci --silent --no-audit --no-fund)
}

modules() { ln -sfn "$(installed node "$here/package.json" "$here/package-lock.json" <(node --version))/node_modules" "$work/node_modules"; }

# serve starts assent with these arguments beside the store and the address, sets $url, and makes tokens: $runtime, $mara, $omar, $admin.
serve() {
	local store=$work/assent.db told=$work/serve.json
	start "$bin/assent" serve --store "$store" --listen 127.0.0.1:0 --people "$root/internal/peers/people.yaml" --json "$@" >"$told" 2>"$work/serve.log"
	until [ -s "$told" ]; do
		kill -0 "${started[-1]}" 2>/dev/null || { cat "$work/serve.log" >&2; return 1; }
		sleep 0.1
	done
	url=$(sed 's/.*"api":"\([^"]*\)".*/\1/' "$told")
	runtime=$(token "$store" runtime decide,request,read)
	mara=$(token "$store" mara read,vote mara@example.com)
	omar=$(token "$store" omar read,vote omar@example.com)
	admin=$(token "$store" admin read,admin)
	export url runtime mara omar admin
}

token() { "$bin/assent" token create --store "$1" --name "$2" --scopes "$3" --agents "*" ${4:+--person "$4"} --json | sed -n 's/.*"secret": "\(.*\)",/\1/p'; }

must_fail() {
	if "$@" >"$work/must_fail.log" 2>&1; then
		printf 'this should have failed: %s\n' "$*" >&2
		return 1
	fi
}
