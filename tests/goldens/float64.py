"""Transformers' code in float64, and what the goldens of the position encodings share."""

import contextlib
from unittest import mock

from generate import leaf, randn  # it sets the instruction set, and so comes before torch

import torch

F64 = torch.float64


@contextlib.contextmanager
def in_float64():
    """Runs transformers' code in float64: wherever it names float32, it gets float64."""
    kept = torch.get_default_dtype()
    with contextlib.ExitStack() as stack:
        for place, name, value in (
            (torch, "float", F64),
            (torch, "float32", F64),
            (torch.Tensor, "float", torch.Tensor.double),
        ):
            stack.enter_context(mock.patch.object(place, name, value))
        torch.set_default_dtype(F64)
        try:
            yield
        finally:
            torch.set_default_dtype(kept)


def both(run):
    """What `run()` gives in float32 and in float64. They agree as two roundings of one formula do."""
    narrow = run()
    with in_float64():
        wide = run()
    assert (narrow.dtype, wide.dtype) == (torch.float32, F64)
    return narrow, wide


def differentiate(function, inputs, dy):
    """The value of `function(*inputs)` and the gradients of all inputs, in float64."""
    inputs = [leaf(x, F64) for x in inputs]
    y = function(*inputs)
    y.backward(dy)
    return [y.detach(), *(x.grad for x in inputs)]


def drawn(case, *shapes):
    """Standard normal tensors of the case's seed, in float64."""
    gen = torch.Generator().manual_seed(case["seed"])
    return [randn(gen, *shape, dtype=F64) for shape in shapes]


def heads(case):
    return [case[key] for key in ("b", "s", "nh", "hd")]


def rotated(case, rotate):
    """x, dy, y, dx of a rotation that takes and gives [b, s, nh, hd]."""
    x, dy = drawn(case, heads(case), heads(case))
    with in_float64():
        y, dx = differentiate(rotate, [x], dy)
    return dict(x=x, dy=dy, y=y, dx=dx)


def by_heads(apply, x, *tables):
    """transformers' rotations take [b, nh, s, hd], queries and keys."""
    q, k = apply(x.transpose(1, 2), x.transpose(1, 2), *tables)
    assert torch.equal(q, k)
    return q.transpose(1, 2)


def theta(hd, base=10000.0):
    return base ** (-torch.arange(0, hd, 2, dtype=F64) / hd)


def rows(case):
    """Positions of the case's rows."""
    return torch.arange(case["offset"], case["offset"] + case["s"], dtype=F64)
