#!/bin/sh
# Fetches the sources of lwIP and mbedTLS through apt and unpacks them under
# .cache/, which is not part of the repository.
#
#   fetch.sh [lwip] [mbedtls]      both when none is named
#
# The archive of each library is pinned by its SHA-256: another version is
# never used in its place. What cannot be had is said in one line starting
# "skipped", and the exit code is 3, so that a caller can leave out the
# firmware images without mistaking it for a failure of its own.
#
# The machine's own apt state stays untouched: a private source list is made
# from the package sources apt already uses, with private index and archive
# folders.
set -eu

cd "$(dirname "$0")"
cache=$PWD/.cache
apt=$cache/apt

# name, archive as apt names it, its SHA-256
pins='
lwip lwip_2.1.3+dfsg1.orig.tar.xz 0a8276d09fc4e97bbba2f953d74af2388fc2195ea156be9d7589e297a68fde24
mbedtls mbedtls_2.28.3.orig.tar.gz 3b4953aa55a681e084d31892d9904cc5328d6b4958ea57b90ae4b4f94ae69a8d
'

skip() {
	echo "skipped: $1" >&2
	exit 3
}

# Prints deb-src lines for the distribution's own archives. An origin is known
# only once the machine has an index; without one every source is kept.
source_list() {
	apt-get indextargets \
		--format 'deb-src $(REPO_URI) $(RELEASE) $(COMPONENT) #$(ORIGIN)' \
		'Created-By: Packages' |
		grep -E '#(Debian|\$\(ORIGIN\))$' | sed 's/ #.*//' | sort -u
}

apt_get() {
	apt-get -q -q \
		-o Dir::Etc::sourcelist="$apt/sources.list" \
		-o Dir::Etc::sourceparts=- \
		-o Dir::State::lists="$apt/lists" \
		-o Dir::Cache="$apt/cache" \
		-o APT::Sandbox::User="$(id -un)" \
		"$@"
}

download() {
	command -v apt-get >/dev/null || skip "$1: no apt-get on this machine"
	if [ ! -s "$apt/sources.list" ]; then
		mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
		source_list >"$apt/sources.list.new"
		[ -s "$apt/sources.list.new" ] || skip "$1: apt names no package source"
		mv "$apt/sources.list.new" "$apt/sources.list"
	fi
	apt_get update || skip "$1: the source index could not be read"
	(cd "$apt" && apt_get source --download-only "$1") ||
		skip "$1: the source package could not be downloaded"
}

matches() { # archive, sum
	[ -f "$1" ] && echo "$2  $1" | sha256sum --check --status
}

fetch() { # name, archive, sum
	dir=$cache/$1
	[ -f "$dir/.sum" ] && [ "$(cat "$dir/.sum")" = "$3" ] && return 0
	if ! matches "$apt/$2" "$3"; then
		download "$1"
		[ -f "$apt/$2" ] || skip "$1: apt offers another version than $2"
		matches "$apt/$2" "$3" || skip "$1: $2 does not have the pinned sum"
	fi
	rm -rf "$dir" "$dir.new"
	mkdir -p "$dir.new"
	tar -x -f "$apt/$2" -C "$dir.new" --strip-components=1
	echo "$3" >"$dir.new/.sum"
	mv "$dir.new" "$dir"
	echo "fetched $2"
}

[ $# -gt 0 ] || set -- lwip mbedtls
mkdir -p "$cache"
exec 9>"$cache/lock" # one at a time: they share the index
flock 9
for want in "$@"; do
	line=$(echo "$pins" | grep "^$want ") || skip "$want: not a library this script knows"
	# shellcheck disable=SC2086 # three words on purpose
	fetch $line
done
