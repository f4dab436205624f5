#!/bin/sh
# Builds DIR/worker. Needs gcc and libhiredis-dev, as Debian has them; PREFIX names another folder
# than /usr that has hiredis.
#
#     build.sh DIR
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=${PREFIX:-/usr}
library=$(find "$prefix/lib" -name libhiredis.a | head -n 1)
gcc -std=gnu11 -O1 -Wall -Wextra -I "$prefix/include" -o "$1/worker" "$here/main.c" "$library"
