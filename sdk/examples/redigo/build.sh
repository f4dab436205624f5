#!/bin/sh
# Builds DIR/worker, a static program without dependencies on its node. Needs golang-go and
# golang-github-gomodule-redigo-dev, as Debian has them; GOPATH names another folder of sources.
#
#     build.sh DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=$(cd "$1" && pwd)
path=$(mktemp -d)
trap 'rm -rf "$path"' EXIT
mkdir -p "$path/src/fencepost" "$path/src/redigo-lock"
cp "$here/../../go/fencepost.go" "$path/src/fencepost/"
cp "$here/main.go" "$path/src/redigo-lock/"
export GO111MODULE=off GOPATH="$path:${GOPATH:-/usr/share/gocode}" CGO_ENABLED=0
go build -o "$to/worker" redigo-lock
