#!/bin/sh
# Makes the router's configuration of the list of nodes, which has as many as the autoscaler may start.
set -eu
cd "$(dirname "$0")"
exec ../router/configure.py nodes --router envoy --bind :8080 --output base/router --installed-at /etc/envoy
