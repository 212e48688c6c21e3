"""The cases of absolute.safetensors: sinusoids."""

from float64 import rows
from layers import sinusoids

import torch
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding


def make_sinusoidal(case):
    s, h = case["s"], case["h"]
    table = sinusoids(rows(case), h)
    # Marian has the sines first, then the cosines, from float64 and rounded once.
    marian = MarianSinusoidalPositionalEmbedding(case["offset"] + s, h).create_weight()[case["offset"] :]
    torch.testing.assert_close(marian.double(), torch.cat((table[:, 0::2], table[:, 1::2]), dim=-1), rtol=0, atol=6e-8)
    return dict(table=table)


def cases():
    return [
        dict(name="sinusoidal_small", kind="sinusoidal", seed=0, s=12, h=8, offset=0),
        dict(name="sinusoidal_later", kind="sinusoidal", seed=0, s=5, h=64, offset=1000),
    ]
