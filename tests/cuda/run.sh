#!/usr/bin/env bash
# Runs what build.sh beside this built: the suite, then the benchmark. In the root of a checkout of the same commit,
# on a machine with an NVIDIA GPU, its driver and cuBLAS 13, but without Rust:
#
#     bash FOLDER/run.sh [NAME]
#
# NAME runs the suite's tests of that name only, and no benchmark.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader
echo "built of $(cat "$here/commit")"

# cuBLAS: a toolkit's, or the one that came with PyTorch.
if ! ldconfig -p | grep -q 'libcublas\.so\.13'; then
    found=$(find /usr/local/cuda*/ /opt /usr/lib "${VIRTUAL_ENV:-/usr/local/lib}" -name 'libcublas.so.13' 2> /dev/null |
        head -1 || true)
    if [ -z "$found" ]; then
        echo "libcublas.so.13 was not found. Install CUDA 13 or nvidia-cublas (PyPI), and add its folder" \
            "to LD_LIBRARY_PATH." >&2
        exit 1
    fi
    export LD_LIBRARY_PATH=$(dirname "$found")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi

# The tests read goldens and snapshots of the checkout.
export CARGO_MANIFEST_DIR=$PWD INSTA_WORKSPACE_ROOT=$PWD INSTA_UPDATE=no
# A test at a time: memory that one frees late could be missing for another.
"$here/suite" --test-threads 1 "$@"
if [ $# -eq 0 ]; then
    "$here/gpu" --bench
fi
