#!/usr/bin/env bash
# What the exercises do not need: MPI for `cargo course ranks`, bubblewrap for `cargo course grade`, and a browser for the tests
# of the book. Where they can't be had, the container is good for everything else.
if ! { sudo apt-get update -qq &&
    sudo apt-get install -qq --no-install-recommends libopenmpi-dev openmpi-bin libclang-dev bubblewrap chromium fonts-dejavu-core; }; then
    echo "These were not installed. Only the ranks, the grader and the tests of the book need them; run this again for them."
fi
