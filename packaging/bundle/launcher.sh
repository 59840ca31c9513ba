#!/bin/sh
# Starts libexec/PROGRAM with the libraries of this bundle. They come after those in LD_LIBRARY_PATH, so the operator can override them.
set -e
self=$(readlink -f -- "$0")
root=${self%/bin/*}
LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$root/lib
export LD_LIBRARY_PATH
exec "$root/libexec/${self##*/}" "$@"
