#!/bin/sh
# Builds DIR/client-go, a static program without dependencies on its node, in the unpacked source
# package `kubernetes` of Debian (1.20.2: `apt-get source kubernetes`). Needs golang-go.
#
#     build.sh SOURCE DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$1" && pwd)
to=$(cd "$2" && pwd)
path=$(mktemp -d)
trap 'rm -rf "$path" "$source/cmd/fencepost-client-go"' EXIT
mkdir -p "$path/src/fencepost" "$path/src/k8s.io" "$source/cmd/fencepost-client-go"
cp "$here/../../go/fencepost.go" "$path/src/fencepost/"
cp "$here/main.go" "$source/cmd/fencepost-client-go/"
ln -s "$source" "$path/src/k8s.io/kubernetes"
cd "$path/src/k8s.io/kubernetes"
GO111MODULE=off GOPATH="$path" CGO_ENABLED=0 go build -o "$to/client-go" ./cmd/fencepost-client-go
