#!/usr/bin/env bash
# cross-clients.sh [TARGET...]: builds the C SDK and the command line for other systems on this one, into build/cross/TARGET: the programs
# in bin, the libraries in lib, the headers in include. Targets: aarch64-macos, x86_64-macos, x86_64-windows (default: all).
#
# The compiler is that of the Python package ziglang. cJSON is built from Debian's source package, or from the folder that
# GPUREST_CJSON_SOURCE names. There is no libcurl, so https:// is refused: use ssh -L, or build on the system itself.
# Warnings are errors. Exit code 77: the compiler or cJSON's source cannot be had here.
. "$(dirname "$0")/lib.sh"

COMPILER='ziglang==0.17.1'
MACOS=11.0 # the oldest that the programs are for, and the first on Apple's own processors
TARGETS=(aarch64-macos x86_64-macos x86_64-windows)
CROSS=$ROOT/build/cross
WARNINGS='-Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wswitch-enum -Wformat=2 -Wwrite-strings -Wundef -Werror'

missing() {
    printf 'gpurest: cannot cross-compile here: %s\n' "$*" >&2
    exit 77
}

# A complete venv contains the name of the package that it was made for.
get_compiler() {
    if [ "$(cat "$CROSS/venv/compiler" 2>/dev/null)" = "$COMPILER" ]; then return; fi
    python3 -m venv "$CROSS/venv" || missing "python3 -m venv does not work: install python3-venv"
    "$CROSS/venv/bin/python3" -m pip install -q "$COMPILER" || missing "pip cannot install $COMPILER"
    echo "$COMPILER" >"$CROSS/venv/compiler"
}

# Debian's source package, with its security fixes, from where this machine's packages come from. apt's own lists stay as they are.
get_cjson() {
    local apt=$CROSS/apt source
    local options=(-q -o "Dir::Etc::sourcelist=$apt/sources.list" -o "Dir::Etc::sourceparts=$apt/none" -o "Dir::State::lists=$apt/lists"
        -o "Dir::Cache=$apt/cache" -o "APT::Sandbox::User=$(id -un)")
    if [ -e "$CROSS/cjson/cJSON.c" ]; then return; fi
    if [ -n "${GPUREST_CJSON_SOURCE:-}" ]; then
        mkdir -p "$CROSS/cjson"
        cp "$GPUREST_CJSON_SOURCE"/cJSON.[ch] "$CROSS/cjson/" || missing "GPUREST_CJSON_SOURCE names no folder with cJSON.c and cJSON.h"
        return
    fi
    if ! command -v apt-get >/dev/null || ! command -v dpkg-source >/dev/null; then
        missing "apt-get and dpkg-source, which get cJSON's source, are not both here: set GPUREST_CJSON_SOURCE to a folder with cJSON.c and cJSON.h"
    fi
    rm -rf "$apt"
    mkdir -p "$apt/none" "$apt/lists/partial" "$apt/cache/archives/partial" "$apt/source"
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(ORIGIN) $(REPO_URI) $(RELEASE) main' 'Created-By: Packages' 'Component: main' |
        sed -n 's/^Debian /deb-src /p' | sort -u >"$apt/sources.list"
    if ! { apt-get "${options[@]}" update && cd "$apt/source" && apt-get "${options[@]}" source cjson && cd "$ROOT"; } >"$apt/log" 2>&1; then
        cat "$apt/log" >&2
        missing "apt-get cannot fetch the source package cjson: set GPUREST_CJSON_SOURCE to a folder with cJSON.c and cJSON.h"
    fi
    source=$(echo "$apt"/source/cjson-*/)
    mkdir -p "$CROSS/cjson.new"
    cp "$source"/cJSON.[ch] "$source"/LICENSE "$CROSS/cjson.new/"
    mv "$CROSS/cjson.new" "$CROSS/cjson"
}

# CMake wants programs without arguments. The package's own way, `python3 -m ziglang`, starts a Python for each file.
write_tool() { # NAME ARGUMENT...
    local at=$CROSS/tools/$1
    shift
    printf '#!/bin/sh\nexec "%s" %s "$@"\n' "$(echo "$CROSS"/venv/lib/python3*/site-packages/ziglang/zig)" "$*" >"$at.new"
    chmod +x "$at.new"
    mv "$at.new" "$at"
}

build() { # TARGET
    local target=$1 system=Windows zig=$1-gnu more=() made_for
    if [[ $target == *-macos ]]; then system=Darwin zig=$target.$MACOS more=(-DCMAKE_OSX_SYSROOT= -DCMAKE_OSX_DEPLOYMENT_TARGET=); fi
    write_tool "cc-$target" cc -target "$zig"
    made_for="$COMPILER $zig $WARNINGS" # what changes here makes every object stale
    [ "$(cat "$CROSS/build/$target/made-for" 2>/dev/null)" = "$made_for" ] || rm -rf "$CROSS/build/$target"
    mkdir -p "$CROSS/build/$target"
    echo "$made_for" >"$CROSS/build/$target/made-for"
    cmake -S sdk/cli -B "$CROSS/build/$target" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_SYSTEM_NAME="$system" \
        -DCMAKE_SYSTEM_PROCESSOR="${target%%-*}" -DCMAKE_C_COMPILER="$CROSS/tools/cc-$target" -DCMAKE_AR="$CROSS/tools/ar" \
        -DCMAKE_RANLIB="$CROSS/tools/ranlib" -DCMAKE_C_FLAGS="$WARNINGS" -DCMAKE_INSTALL_PREFIX="$CROSS/$target" \
        -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON -DGPUREST_CURL=OFF -DGPUREST_CJSON_SOURCE="$CROSS/cjson" "${more[@]}"
    cmake --build "$CROSS/build/$target"
    cmake --install "$CROSS/build/$target" --component sdk
    cmake --install "$CROSS/build/$target" --component cli
}

[ $# -gt 0 ] || set -- "${TARGETS[@]}"
for target in "$@"; do
    [[ " ${TARGETS[*]} " == *" $target "* ]] || die "unknown target $target: use ${TARGETS[*]}"
done
mkdir -p "$CROSS/tools"
exec 9>"$CROSS/lock"
flock 9
get_compiler
get_cjson
write_tool ar ar
write_tool ranlib ranlib
for target in "$@"; do
    say "the clients for $target"
    build "$target" >"$CROSS/$target.log" 2>&1 || {
        cat "$CROSS/$target.log" >&2
        die "the build for $target failed"
    }
    find "$CROSS/$target/bin" -type f
done
