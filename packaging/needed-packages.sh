#!/bin/sh
# needed-packages.sh PROGRAM...: lists the Debian packages of the programs' shared libraries, one name per line.
set -eu

# dpkg may know a library under /lib that the loader finds under /usr/lib, or the reverse.
package_of() { # FILE
    real=$(readlink -f "$1")
    for path in "$1" "$real" "/usr$1" "${real#/usr}"; do
        if found=$(dpkg -S "$path" 2>/dev/null); then
            echo "$found" | head -n 1 | cut -d : -f 1
            return
        fi
    done
    echo "needed-packages: $1 belongs to no package" >&2
    return 1
}

for program; do
    missing=$(ldd "$program" | awk '/not found/ {print $1}')
    [ -z "$missing" ] || { echo "needed-packages: $program needs $missing, which is not here" >&2; exit 1; }
    ldd "$program" | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | while read -r library; do
        package_of "$library"
    done
done | sort -u
