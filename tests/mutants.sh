#!/usr/bin/env bash
# Mutants by cargo-mutants, a tool that knows nothing of this field: it changes operators, empties functions.
#
#   bash tests/mutants.sh solutions|library|oracle [ARGUMENTS OF cargo mutants]
#
#   solutions   the model solutions, judged by the autograder
#   library     src/, judged by the suite and by what must not compile
#   oracle      the contract's oracle, judged by the library, PyTorch and itself, which must keep the contract
#
# The first takes a quarter of an hour on two cores, the others half a day: `--shard 0/20` takes a twentieth.
# Needs `cargo install cargo-mutants --version 27.1.0 --locked`. Works on a copy under target/mutants; what it
# found stands in target/mutants/mutants.out.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
    solutions)
        # The code of a property task is a test: what it must catch are the museum's bugs.
        chosen=(--package exercises --file 'exercises/src/*.rs' --exclude-re property)
        judged=(--test autograder)
        ;;
    library)
        chosen=(--package quadrivium --file 'src/**')
        judged=(--features f16 --test suite --test compile_fail)
        ;;
    oracle)
        chosen=(--package contract --file 'contract/src/oracle/*.rs' --file 'contract/src/*/oracle.rs')
        judged=(--package quadrivium --features f16 --test suite --test asked)
        judged+=(-- contract_kept:: everything_is_asked)
        ;;
    *)
        sed -n '2,12s/^# \{0,1\}//p' tests/mutants.sh >&2
        exit 2
        ;;
esac
shift

copy=target/mutants
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --create | tar -x -C "$copy"
cd "$copy"
for solution in exercises/*/solution.rs; do
    cp "$solution" "exercises/src/$(basename "$(dirname "$solution")").rs"
done
export CARGO_TARGET_DIR=target
# On a busy machine a task is slow, and slow is not wrong.
export QUADRIVIUM_SECONDS=60
cargo mutants --in-place --no-shuffle --timeout 600 "${chosen[@]}" "$@" -- "${judged[@]}"
