#!/usr/bin/env bash
# Builds the suite and the measurements' program for CUDA on a machine without GPU, driver or toolkit (Linux, x86-64),
# and puts them into a folder that can be carried to a machine with a GPU:
#
#     bash tests/cuda/build.sh [FOLDER] [COMPUTE_CAPABILITY]
#
# FOLDER is target/cuda/carry if nothing else is said, COMPUTE_CAPABILITY 9.0 (an H100 or H200). A GPU of a higher
# one runs the same programs. Then, there, in a checkout of the same commit: bash FOLDER/run.sh
#
# Needs Rust, a C compiler, and Python 3.11 or newer. All else is installed under target/cuda.
set -euo pipefail
cd "$(dirname "$0")/../.."
carry=${1:-target/cuda/carry}
export CUDA_CAPABILITY=${2:-9.0}
work=$PWD/target/cuda

# The compiler, and the libraries to link with.
if [ ! -x "$work/env/bin/pip" ]; then
    python3 -m venv "$work/env"
fi
"$work/env/bin/pip" install --quiet --disable-pip-version-check --requirement tests/cuda/requirements.txt
CUDA_PATH=$("$work/env/bin/python" -c 'import nvidia; print(nvidia.__path__[0])')/cu13
for library in "$CUDA_PATH"/lib/lib*.so.*; do
    ln -sf "$library" "${library%%.so.*}.so" # the linker asks for the name without a version
done

# dfdx's build asks the driver's command which GPU is there.
mkdir -p "$work/bin"
cat > "$work/bin/nvidia-smi" << 'SMI'
#!/usr/bin/env bash
printf 'compute_cap\n%s\n' "$CUDA_CAPABILITY"
SMI
chmod +x "$work/bin/nvidia-smi"
export CUDA_PATH PATH=$work/bin:$CUDA_PATH/bin:$PATH

# The driver's library, by its names only: there is nothing behind them here.
cudarc=$(cargo metadata --locked --format-version 1 --features cuda | python3 -c '
import json, pathlib, sys
packages = json.load(sys.stdin)["packages"]
[path] = [p["manifest_path"] for p in packages if p["name"] == "cudarc"]
print(pathlib.Path(path).parent)')
grep -rhoE 'pub fn cu[A-Z][A-Za-z0-9_]*' "$cudarc/src/driver" | sed 's/pub fn //' | sort -u |
    sed 's/.*/void &(void) {}/' > "$work/driver.c"
cc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$CUDA_PATH/lib/libcuda.so" "$work/driver.c"

# Programs of their own target folder: another build with the feature `cuda` type-checks only.
programs() {
    cargo "$@" --locked --features cuda --message-format json |
        python3 -c 'import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable"):
        print(message["target"]["name"], message["executable"])'
}
rm -rf "$carry"
mkdir -p "$carry"
{
    programs test --package quadrivium --test suite --no-run --target-dir "$work/build"
    programs build --manifest-path benches/peers/Cargo.toml --release --bin quadrivium --target-dir "$work/peers"
} | while read -r name program; do
    strip -o "$carry/$name" "$program"
done
cp tests/cuda/run.sh "$carry"

# dfdx compiles some kernels when they are first used. It looks for headers where they were at build time.
{
    echo "$CUDA_PATH/include"
    find "$work" -path '*/build/dfdx-*/out' -type d
} > "$carry/headers"
mkdir "$carry/include"
cp -r "$CUDA_PATH/include/." "$carry/include"
find "$work" -path '*/build/dfdx-*/out/*.cuh' -exec cp {} "$carry/include" \;
git describe --always --dirty > "$carry/commit"
du -sh "$carry"/*
