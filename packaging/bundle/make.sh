#!/usr/bin/env bash
# Creates gpurest-bundle.tar.gz: the programs with the libraries that a minimal machine lacks. Runs from any folder. The target `bundle` runs this script.
# make.sh OUTPUT.tar.gz VERSION PROGRAM... [LIBRARY.so.N]... [MODULE.so PART.a...]: libraries go into lib/gpurest, for `gpurest exec`; a module, which the
# service opens, into lib; of the parts that are linked into it only their terms and versions.
set -euo pipefail
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
ROOT=$(cd "$HERE/../.." && pwd)
[ $# -ge 3 ] || { echo "usage: make.sh OUTPUT.tar.gz VERSION PROGRAM... [LIBRARY.so.N]..." >&2; exit 2; }
output=$1 version=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=gpurest-$version
top=$work/$name
mkdir -p "$top"/{bin,libexec,lib,share/licences,share/man/man8}

# The parts of the C library must match the machine's loader, so the bundle leaves them out.
of_libc='^(ld-linux.*|libc|libm|libmvec|libpthread|libdl|librt|libresolv|libutil|libanl|libnss_[a-z]+|libnsl)\.so\.'

needed() { # PROGRAM: a library's name and its place a line
    local missing
    missing=$(ldd "$1" | awk '/not found/ {print $1}')
    [ -z "$missing" ] || { echo "bundle: $1 needs $missing, which is not here" >&2; return 1; }
    ldd "$1" | awk '$2 == "=>" && $3 ~ /^\// {print $1, $3}'
}

licence_of() { # FILE LIST: Debian's statement of the library's terms, where dpkg knows it; notes the package in the list
    local package
    package=$(dpkg -S "$(readlink -f "$1")" 2>/dev/null | head -n 1 | cut -d: -f1) || return 0
    [ -z "$package" ] || echo "$package" >>"$2"
    if [ -n "$package" ] && [ -e "/usr/share/doc/$package/copyright" ]; then
        cp -L "/usr/share/doc/$package/copyright" "$top/share/licences/$package"
    fi
}

take_libraries() { # PROGRAM: what it needs and a minimal machine lacks
    local libraries library place
    libraries=$(needed "$1")
    while read -r library place; do
        if [ -z "$library" ] || [[ $library =~ $of_libc ]] || [ -e "$top/lib/$library" ]; then continue; fi
        install -m 644 "$(readlink -f "$place")" "$top/lib/$library"
        licence_of "$place" "$work/packages"
    done <<<"$libraries"
}

programs=()
for program; do
    base=$(basename "$program")
    case $base in
    *.a)
        licence_of "$program" "$work/linked"
        continue
        ;;
    *.so)
        install -m 644 "$program" "$top/lib/$base"
        strip --strip-debug "$top/lib/$base"
        programs+=(--program "$top/lib/$base")
        take_libraries "$program"
        continue
        ;;
    esac
    if [[ $base == *.so* ]]; then
        install -D -m 644 "$program" "$top/lib/gpurest/$base"
        strip --strip-debug "$top/lib/gpurest/$base"
        programs+=(--program "$top/lib/gpurest/$base")
        continue
    fi
    programs+=(--program "$top/libexec/$base")
    install -m 755 "$program" "$top/libexec/$base"
    strip --strip-debug "$top/libexec/$base"
    install -m 755 "$HERE/launcher.sh" "$top/bin/$base"
    take_libraries "$program"
done

touch "$work/packages" "$work/linked"
status=/var/lib/dpkg/status
[ -e "$status" ] || status=/dev/null
python3 "$ROOT/packaging/sbom.py" --name gpurest-bundle --version "$version" --dpkg-status "$status" --only "$work/packages" \
    --linked-status "$status" --linked "$work/linked" \
    "${programs[@]}" >"$top/share/sbom.spdx.json"

"$top/bin/gpurestd" --man >"$top/share/man/man8/gpurestd.8"
if [ -e "$top/bin/gpurest" ]; then
    mkdir -p "$top/share/man/man1"
    "$top/bin/gpurest" help --man >"$top/share/man/man1/gpurest.1"
fi
install -m 644 "$ROOT/LICENSE" "$top/LICENSE"
mkdir -p "$top/share/systemd"
install -m 644 "$ROOT"/packaging/systemd/* "$top/share/systemd/"
glibc=$(find "$top/libexec" "$top/lib" -type f -exec objdump -T {} + | grep -oE 'GLIBC_[0-9]+\.[0-9.]+' | sed 's/GLIBC_//' | sort -uV | tail -n 1)
sed -e "s/@VERSION@/$version/" -e "s/@GLIBC@/$glibc/" -e "s/@MACHINE@/$(uname -m)/" "$HERE/README.in" >"$top/README"

mkdir -p "$(dirname "$output")"
tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner -czf "$output.part" "$name"
mv "$output.part" "$output"
echo "$output: $(du -h "$output" | cut -f1), $(find "$top/lib" -type f | wc -l) libraries, needs glibc $glibc"
