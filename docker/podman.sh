# Runs containers with Debian's tools (buildah, podman, runc) in a separate store, without a daemon, systemd or a registry. To be sourced.
# podman_setup FOLDER creates the store there and configures both tools for it. Needs root, but not CAP_SYS_RESOURCE.

PODMAN_TOOLS=(buildah podman runc debootstrap)

podman_tools_missing() {
    local tool
    for tool in "${PODMAN_TOOLS[@]}"; do command -v "$tool" >/dev/null || echo "$tool"; done
}

podman_setup() { # FOLDER
    mkdir -p "$1/tmp"
    cat >"$1/storage.conf" <<S
[storage]
driver = "overlay"
graphroot = "$1/store"
runroot = "$1/run"
S
    # The defaults raise hard limits, which needs CAP_SYS_RESOURCE; crun of Debian 12 rejects hybrid control groups.
    cat >"$1/containers.conf" <<S
[containers]
netns = "host"
default_ulimits = ["nofile=16384:16384", "nproc=4096:4096"]
log_driver = "k8s-file"
[engine]
cgroup_manager = "cgroupfs"
runtime = "runc"
events_logger = "file"
S
    export CONTAINERS_STORAGE_CONF=$1/storage.conf CONTAINERS_CONF=$1/containers.conf TMPDIR=$1/tmp
}

# Creates an archive of Debian's base system, kept for a week, and prints its name.
debian_archive() { # CACHE-FOLDER
    local root archive
    archive=$1/debian-12-$(date +%G-%V).tar
    mkdir -p "$1"
    if [ ! -e "$archive" ]; then
        root=$(mktemp -d "$1/rootfs.XXXXXX")
        if ! { debootstrap --variant=minbase bookworm "$root" ${DEBIAN_MIRROR:-} >"$1/debootstrap.log" 2>&1 && podman_slim "$root" &&
            tar -C "$root" --numeric-owner --exclude='./dev/*' -cf "$archive.part" . && mv "$archive.part" "$archive"; }; then
            tail -n 5 "$1/debootstrap.log" >&2
            rm -rf "$root" "$archive.part"
            return 1
        fi
        rm -rf "$root"
    fi
    echo "$archive"
}

# Creates the base image from Debian's packages under the name in the Dockerfile.
podman_base() { # CACHE-FOLDER NAME
    local known archive
    known=$1/debian-12-$(date +%G-%V).tar
    # A second import would be another image and invalidate the build cache.
    if [ -e "$known" ] && podman image exists "$2"; then return; fi
    archive=$(debian_archive "$1") || return 1
    podman import -q "$archive" "$2" >/dev/null
}

podman_slim() { # ROOT: as the published slim image, without what nobody reads in a container
    (cd "$1" && rm -rf var/cache/apt/* var/lib/apt/lists/* var/log/* usr/share/man/* usr/share/locale/* usr/share/info/*)
    find "$1/usr/share/doc" -type f ! -name copyright -delete
    if grep -q '^VERSION_CODENAME=bookworm$' /etc/os-release && [ -e /etc/apt/sources.list.d/debian.sources ]; then
        cp /etc/apt/sources.list.d/debian.sources "$1/etc/apt/sources.list.d/"
        rm -f "$1/etc/apt/sources.list"
    fi
    echo 'DPkg::Post-Invoke { "rm -f /var/cache/apt/archives/*.deb /var/cache/apt/archives/partial/*.deb /var/cache/apt/*.bin || true"; };' \
        >"$1/etc/apt/apt.conf.d/docker-clean"
}

# Where CMAKE_C_COMPILER_LAUNCHER says that this machine compiles with ccache, builds inside take and give what it keeps: prints the options for that. ccache
# brings its libraries along, with the loader that they belong to, because the image may have others, or none.
podman_ccache() { # CACHE-FOLDER
    local folder=$1/ccache program library files
    [ "$(basename "${CMAKE_C_COMPILER_LAUNCHER:-}")" = ccache ] && program=$(command -v "$CMAKE_C_COMPILER_LAUNCHER") && files=$("$program" -k cache_dir) || return 0
    mkdir -p "$folder" "$files"
    for library in $(ldd "$program" | grep -o '/[^ ]*'); do cp -L "$library" "$folder/"; done
    cp -L "$program" "$folder/ccache"
    # The build's folder and language count for ccache, so they are as outside.
    cat >"$folder/launcher" <<S
#!/bin/bash
export CCACHE_DIR=/run/ccache-files CCACHE_BASEDIR=/src CCACHE_NOHASHDIR=1 ${LANG:+LANG=$LANG}
exec /run/ccache/ld-linux-*.so.? --library-path /run/ccache /run/ccache/ccache "\$@"
S
    chmod +x "$folder/launcher"
    printf '%s\n' --volume "$folder:/run/ccache:ro" --volume "$files:/run/ccache-files" --build-arg CMAKE_C_COMPILER_LAUNCHER=/run/ccache/launcher
}

# Only docker's format has HEALTHCHECK. pip inside the build gets this machine's certificate authorities.
podman_build() { # TARGET TAG [OPTION...]
    local authorities=()
    if [ -n "${PIP_CERT:-}" ]; then authorities=(--volume "$PIP_CERT:/run/authorities.pem:ro" --build-arg PIP_CERT=/run/authorities.pem); fi
    buildah bud --isolation chroot --layers --pull-never --network host --format docker "${authorities[@]}" \
        --build-arg VERSION="$VERSION" --build-arg REVISION="$REVISION" --build-arg CREATED="$CREATED" \
        -f docker/Dockerfile --target "$1" -t "$2" "${@:3}" .
}

# Checks, without any file of the project, that a command can run in an image with the network.
podman_can_build() { # BASE
    local can=0
    printf 'FROM %s\nRUN apt-get update\n' "$1" | buildah bud --isolation chroot --pull-never --network host -t localhost/gpurest-try - >/dev/null 2>&1 || can=1
    podman rmi -f localhost/gpurest-try >/dev/null 2>&1 || true
    return $can
}
