#!/usr/bin/env bash
# Grades one submission and puts the result where the system looks for it. Where there is no grade, there is no result.
#
#   grade.sh FORMAT SUBMISSION RESULT [SETTINGS]
#
# COURSE is the folder of the course. Ends with 0 if there is a result, and with 1 if there is none.
set -euo pipefail
format=$1 submission=$2 result=$3 settings=${4:-}

# What an earlier run left is no result of this one.
mkdir -p "$(dirname "$result")" "$submission"
rm -f "$result" "$result.new"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The sandbox is made of namespaces, by bubblewrap. Containers often forbid them: Docker's own seccomp profile does. Then
# Landlock and seccomp hold alone. This is tried here and not when the image is built: that may be another machine. For
# root, submissions run as nobody, so nobody must be able to do it too. None of this is ever left out.
try=(bwrap --unshare-all --unshare-user --disable-userns --ro-bind / / --proc /proc --tmpfs /tmp true)
sandbox=confined
if "${try[@]}"; then
    if [ "$(id -u)" != 0 ] || setpriv --reuid=65534 --regid=65534 --clear-groups "${try[@]}"; then
        sandbox=full
    fi
fi
echo "sandbox: $sandbox"

# An archive is always one submission. A folder of folders could be taken for a class.
tar -C "$(dirname "$submission")" -czf "$work/submission.tar.gz" "$(basename "$submission")"

more=()
if [ -n "$settings" ] && [ -f "$settings" ]; then
    more=(--settings "$settings")
fi
status=0
(cd "$COURSE" && cargo course grade "$work/submission.tar.gz" --out "$work/out" --format "$format" \
    --sandbox "$sandbox" "${more[@]}") || status=$?

# 0: graded. 1: not graded, and there may be a result that says why. Anything else is no result.
results=("$work"/out/*/"$format.json")
if [ "$status" -le 1 ] && [ "${#results[@]}" = 1 ] && [ -f "${results[0]}" ]; then
    cp "${results[0]}" "$result.new"
    mv "$result.new" "$result"
    exit 0
fi
echo "not graded: the grader ended with code $status and left no result. This is not 0 points: grade it again."
exit 1
