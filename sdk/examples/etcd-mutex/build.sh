#!/bin/sh
# Builds DIR/worker (by default here), a static program without dependencies on its node.
# Needs golang-go and golang-etcd-server-dev, as Debian has them.
#
#     build.sh [DIR]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=$(cd "${1:-$here}" && pwd)
path=$(mktemp -d)
trap 'rm -rf "$path"' EXIT
mkdir -p "$path/src/fencepost" "$path/src/etcd-mutex"
cp "$here/../../go/fencepost.go" "$path/src/fencepost/"
cp "$here/main.go" "$path/src/etcd-mutex/"
GO111MODULE=off GOPATH="$path:/usr/share/gocode" CGO_ENABLED=0 go build -o "$to/worker" etcd-mutex
