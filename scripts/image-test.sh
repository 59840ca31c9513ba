#!/usr/bin/env bash
# `make image-test`: builds the images of docker/Dockerfile with Debian's own tools, runs them, and checks the promises of
# docker/README.md. Skipped, with a message, where the tools are missing and cannot be installed. Caches its base image and layers in
# .cache/image/.
. "$(dirname "$0")/lib.sh"
. docker/podman.sh

skip() { say "image-test: skipped: $*"; exit 0; }

[ "$(id -u)" = 0 ] || skip "building images takes root here"
if [ -n "$(podman_tools_missing)" ]; then
    command -v apt-get >/dev/null || skip "no $(podman_tools_missing | xargs), and no apt-get to install them"
    say "installing $(podman_tools_missing | xargs)"
    install_quietly "${PODMAN_TOOLS[@]}" iptables ||
        skip "$(podman_tools_missing | xargs) cannot be installed"
fi
unshare --mount true 2>/dev/null || skip "this machine does not let containers be made"

CACHE=$ROOT/.cache/image
VERSION=$(sed -n 's/^project(gpurest VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
REVISION=$(git rev-parse HEAD 2>/dev/null || echo unknown)
CREATED=$(git log -1 --format=%cI 2>/dev/null || echo 1970-01-01T00:00:00Z)
export VERSION REVISION CREATED
TAG=localhost/gpurest-test:$$
podman_setup "$CACHE"
finish() { podman rmi -f "$TAG" "$TAG-cpu" "$TAG-cpu-small" "$TAG-vulkan" >/dev/null 2>&1 || true; }
trap finish EXIT
mapfile -t compiled < <(podman_ccache "$CACHE")
log=$CACHE/build.log

# buildah seals a copy of itself for every step. Linux refuses that while it moves a page of the copy, which is over in a moment; earlier steps are kept.
build() { # TARGET TAG
    podman_build "$1" "$2" "${compiled[@]}" >"$log" 2>&1 && return
    grep -q 'sealing memfd' "$log" || return
    say "once more: Linux refused a seal"
    podman_build "$1" "$2" "${compiled[@]}" >"$log" 2>&1
}

say "the base image"
podman_base "$CACHE" debian:12-slim || skip "Debian's base system cannot be fetched"
podman_can_build debian:12-slim || skip "this machine does not let images be built"
for target in runtime-cpu-small runtime-cpu runtime-vulkan runtime; do
    say "building the target $target"
    tag=$TAG${target#runtime}
    build $target "$tag" || { tail -n 40 "$log" >&2; die "the image could not be built"; }
done

say "running them"
export_test_python
if ! command -v docker-compose >/dev/null; then
    DEBIAN_FRONTEND=noninteractive apt-get install -yq --no-install-recommends docker-compose >/dev/null 2>&1 || say "no docker-compose: compose.yaml is not tried"
fi
GPUREST_IMAGE=$TAG GPUREST_IMAGE_CPU=$TAG-cpu GPUREST_IMAGE_CPU_SMALL=$TAG-cpu-small GPUREST_IMAGE_VULKAN=$TAG-vulkan python3 -m pytest -q -rsfE -p no:cacheprovider tests/packaging/test_{image,compose}.py "$@"
