"""Golden numbers for the position encodings, by Hugging Face's transformers and by PyTorch.

python encodings.py           rewrites encodings.safetensors
python encodings.py --check   recomputes it, compares bit for bit, exits 1 on a difference

What transformers has is computed by transformers' own functions: in float32, as its models do, and once more in
float64 by the same functions (`in_float64`). What it lacks is plain PyTorch in float64, written from the papers.
Every gradient comes from autograd.
Letters: b batch, s queries, t keys, p keys before the first query, nh heads, nkv key heads, hd head dim, h hidden size.
"""

import argparse
import sys

import generate  # it sets the instruction set and one thread, and so comes first
import biases
import rotations
from safetensors.torch import save_file
from transformers.utils import logging


def cases():
    """All cases. The tests read float64."""
    lists = (rotations.frequency_cases(), rotations.calls_cases(), rotations.rotation_cases(), biases.score_cases())
    return [case | dict(dtype="f64") for cases in lists for case in cases]


def make(case):
    name = f"make_{case['kind']}"
    return getattr(rotations if hasattr(rotations, name) else biases, name)(case)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    logging.set_verbosity_error()  # settings that no published model has are on purpose
    generate.FILES["encodings"] = (cases, make)
    if check:
        lines = generate.check("encodings")
        print("\n".join(lines) or "encodings.safetensors matches")
        sys.exit(1 if lines else 0)
    tensors, metadata = generate.compute("encodings")
    path = generate.HERE / "encodings.safetensors"
    save_file(tensors, path, metadata=metadata)
    print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
