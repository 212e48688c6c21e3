#!/usr/bin/env bash
# PrairieLearn runs this for each submission, without a network. It takes /grade/results/results.json for the grade, if this
# ends with 0. Otherwise the job has failed: no points, no attempt lost, and no one gets 0 points because a machine
# failed.
set -euo pipefail
root=${GRADE_ROOT:-/grade}
home=${QUADRIVIUM_HOME:-/quadrivium}
export COURSE="$home/course" CARGO_NET_OFFLINE=true

# The question's settings, so that they can change without a new image.
settings=$root/tests/settings.toml
if [ ! -f "$settings" ]; then
    settings=$home/settings.toml
fi
exec bash "$home/grade.sh" prairielearn "$root/student" "$root/results/results.json" "$settings"
