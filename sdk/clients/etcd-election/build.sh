#!/bin/sh
# Builds DIR/etcd-election, a static program without dependencies on its node, with Debian's packages
# golang-go and golang-etcd-server-dev (etcd 3.4).
#
#     build.sh DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
to=$(cd "$1" && pwd)
path=$(mktemp -d)
trap 'rm -rf "$path"' EXIT
mkdir -p "$path/src/fencepost" "$path/src/etcd-election"
cp "$here/../../go/fencepost.go" "$path/src/fencepost/"
cp "$here/main.go" "$path/src/etcd-election/"
export GO111MODULE=off GOPATH="$path:${GOPATH:-/usr/share/gocode}" CGO_ENABLED=0
go build -o "$to/etcd-election" etcd-election
