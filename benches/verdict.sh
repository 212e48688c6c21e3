#!/usr/bin/env bash
# How long a learner waits: from an edit of one task to its verdict, and to all verdicts.
#
#   bash benches/verdict.sh [ROUNDS]
#
# Works on a copy under target/verdict, with the solved exercises, since an empty task has no verdict
# to wait for. Each round changes one line of code in a task's function, then runs the autograder; then it
# writes the function as a whole, from `todo!()`: with operations that were not there before, the compiler
# has more to do. Prints seconds: the first build, and the medians over the rounds.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-5}
copy=target/verdict
rm -rf "$copy"
mkdir -p "$copy"
git ls-files -z --cached --others --exclude-standard | tar --null --files-from=- --create | tar -x -C "$copy"
cd "$copy"
export CARGO_TARGET_DIR=target CARGO_TERM_COLOR=never
for solution in exercises/*/solution.rs; do
  cp "$solution" "exercises/src/$(basename "$(dirname "$solution")").rs"
done

now() { date +%s.%N; }
since() { awk -v a="$1" -v b="$(now)" 'BEGIN { printf "%.2f\n", b - a }'; }
median() { sort -n | awk '{ v[NR] = $1 } END { printf "%.2f", v[int((NR + 1) / 2)] }'; }

# Changes one line in the function of task $1 in file $2; $3 makes the change a new one.
edit() { sed -i -E "\\|task $1: begin|{n;/let _edit/d}; \\|task $1: begin|a let _edit = $3;" "exercises/src/$2"; }

# Leaves nothing in the function of task $1 in file $2.
empty() { sed -i "\\|task $1: begin|,\\|task $1: end|{\\|task $1:|!d}; \\|task $1: begin|a todo!()" "exercises/src/$2"; }

verdict() { # prints the seconds of one run with the arguments
  local start
  start=$(now)
  cargo test --quiet --package exercises -- "$@" >out.txt 2>&1 || { cat out.txt >&2; exit 1; }
  since "$start"
}

start=$(now)
cargo fetch --quiet
cargo test --quiet --package exercises >/dev/null 2>&1
printf 'first `cargo test -p exercises`, built from nothing   %7s s\n' "$(since "$start")"

printf '\nedit to verdict, median of %s %28s %16s\n' "$rounds" 'one line' 'whole function'
tasks=(norm/forward norm/backward embedding/forward parallel/forward rope/rotate rope/module)
tasks+=(attention/forward attention/cache feedforward/forward loss/backward model/block model/decode)
for name in "${tasks[@]}"; do
  file=${name%%/*}.rs
  line=$(for i in $(seq "$rounds"); do edit "$name" "$file" "$i"; verdict "$name"; done | median)
  cp "exercises/src/$file" solved.rs
  whole=$(for i in $(seq "$rounds"); do
    empty "$name" "$file"
    cargo test --quiet --package exercises --no-run >/dev/null 2>&1
    cp solved.rs "exercises/src/$file"
    verdict "$name"
  done | median)
  printf '  task %-44s %7s s %14s s\n' "$name" "$line" "$whole"
done
time=$(for i in $(seq "$rounds"); do edit norm/forward norm.rs "9$i"; verdict; done | median)
printf '  all tasks, after an edit of norm/forward          %7s s\n' "$time"
