#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image. There is a network.
set -euo pipefail
root=${AUTOGRADER_ROOT:-/autograder}
export COURSE="$root/source/course"
export CARGO_HOME=${CARGO_HOME:-/usr/local/cargo} RUSTUP_HOME=${RUSTUP_HOME:-/usr/local/rustup}
export PATH="$CARGO_HOME/bin:$PATH" DEBIAN_FRONTEND=noninteractive

apt-get update
apt-get install -y --no-install-recommends bubblewrap ca-certificates curl gcc libc6-dev util-linux
if ! command -v rustup; then
    curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs |
        sh -s -- -y --no-modify-path --profile minimal --default-toolchain none
fi
bash "$root/source/build.sh" gradescope "$root/source/settings.toml"
