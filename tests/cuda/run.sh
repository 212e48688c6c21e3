#!/usr/bin/env bash
# Runs what build.sh beside this built: the suite, then the benchmark. In the root of a checkout of the same commit,
# on a machine with an NVIDIA GPU, its driver, cuBLAS 13 and NVRTC 13, but without Rust:
#
#     bash FOLDER/run.sh [NAME]
#
# NAME runs the suite's tests of that name only, and no benchmark.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
if ! command -v nvidia-smi > /dev/null; then
    echo "There is no nvidia-smi, so no NVIDIA driver either. Run this on a machine with a GPU." >&2
    exit 1
fi
nvidia-smi --query-gpu=name,driver_version,compute_cap,memory.total --format=csv,noheader
echo "built of $(cat "$here/commit")"

# cuBLAS and NVRTC: a toolkit's, or those that came with PyTorch.
if ! ldconfig -p | grep -q 'libcublas\.so\.13'; then
    found=$(find /usr/local/cuda*/ /opt /usr/lib "${VIRTUAL_ENV:-/usr/local/lib}" -name 'libcublas.so.13' 2> /dev/null |
        head -1 || true)
    if [ -z "$found" ] && [ -z "${LD_LIBRARY_PATH:-}" ]; then
        echo "libcublas.so.13 was not found. Install CUDA 13, or nvidia-cublas and nvidia-cuda-nvrtc (PyPI), and" \
            "name their folder in LD_LIBRARY_PATH." >&2
        exit 1
    fi
    export LD_LIBRARY_PATH=${found:+$(dirname "$found"):}${LD_LIBRARY_PATH:-}
fi

# The tests read goldens and snapshots of the checkout.
export CARGO_MANIFEST_DIR=$PWD INSTA_WORKSPACE_ROOT=$PWD INSTA_UPDATE=no
# A test at a time: memory that one frees late could be missing for another.
"$here/suite" --test-threads 1 "$@"
if [ $# -eq 0 ]; then
    "$here/gpu" --bench
fi
