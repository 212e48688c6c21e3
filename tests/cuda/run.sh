#!/usr/bin/env bash
# Runs what build.sh beside this built: the suite, then the measurements beside PyTorch, if a `python3` has it. In the root of a
# checkout of the same commit, on a machine with an NVIDIA GPU, its driver, cuBLAS 13 and NVRTC 13, but without Rust:
#
#     bash FOLDER/run.sh [NAME]
#
# NAME runs only those files of the suite that have such a test, and measures nothing. The words of tests that failed and
# the measurements (*.json) are written into FOLDER/out, or into OUT.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$here/out}
mkdir -p "$out"
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

# The headers that kernels are compiled with, where the programs look for them.
while read -r place; do
    if [ ! -e "$place" ]; then
        mkdir -p "$(dirname "$place")"
        ln -sfn "$here/include" "$place"
    fi
done < "$here/headers"

# The tests read goldens and snapshots of the checkout.
export CARGO_MANIFEST_DIR=$PWD INSTA_WORKSPACE_ROOT=$PWD INSTA_UPDATE=no
# Each file of the suite is a process of its own: an assert on the device ends only that one. In it, a test at a time:
# memory that one frees late could be missing for another.
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
one() {
    local name=$1 log=$logs/${1//:/}
    if "$here/suite" --test-threads 1 "$name" > "$log" 2>&1; then
        echo "$name $(grep '^test result' "$log")"
    else
        echo "$name ended with $?: $(grep -E '^test result|^test .*FAILED|CUDA_ERROR' "$log" | sort -u | head -20)"
        cat "$log" >> "$out/failed.log"
        return 1
    fi
}
export -f one
export here logs out
failed=0
"$here/suite" --list "$@" | sed -n 's/: test$//p' | sed -E 's/^(contract_kept::.*|pytorch::[^:]*::|[^:]*::).*/\1/' | sort -u |
    xargs -P 8 -I {} bash -c 'one {}' || failed=1
if [ $# -eq 0 ] && python3 -c 'import torch' 2> /dev/null; then
    for what in "" --model --encodings; do
        python3 benches/peers/run.py --device cuda --built "$here" --python "$(command -v python3)" $what --rounds 11 \
            --json "$out/gpu${what#-}.json"
    done
fi
exit "$failed"
