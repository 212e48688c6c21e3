"""Golden numbers for the Rust tests, computed by PyTorch.

python generate.py           rewrites the .safetensors files next to this script
python generate.py norm      rewrites norm.safetensors only
python generate.py --check   recomputes them, compares bit for bit, exits 1 on a difference

The position encodings (absolute, frequencies, biases, rotations) need transformers beside PyTorch.
Without it a run that names no file leaves them out, and says so.

Every forward pass is written the way a PyTorch user writes it: the layers are in layers.py, and the book shows them.
Every gradient comes from autograd.
Letters: b batch, s sequence length, h hidden size, gz elements per group, v vocabulary,
e embedding dim, w ranks, nh heads, hd head dim.
"""

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path

# One instruction set for everybody, so that the last bits do not depend on the processor.
# PyTorch reads this when it starts. AVX2 and AVX-512 processors both honour it.
os.environ["ATEN_CPU_CAPABILITY"] = "avx2"

import torch
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import save_file
from torch import nn

import from_pytorch
import layers

torch.set_num_threads(1)
torch.use_deterministic_algorithms(True)

HERE = Path(__file__).resolve().parent
DTYPES = {"f16": torch.float16, "f32": torch.float32, "f64": torch.float64}


def randn(gen, *shape, dtype=torch.float32):
    """Standard normal test data from a private generator."""
    return torch.randn(*shape, generator=gen, dtype=dtype)


def leaf(tensor, dtype=None):
    """A copy that autograd follows."""
    return tensor.detach().to(dtype or tensor.dtype).clone().requires_grad_()


def with_weights(layer, weights, dtype):
    """A layer with copies of these weights, in the order of its parameters."""
    layer = layer.to(dtype)
    with torch.no_grad():
        for parameter, weight in zip(layer.parameters(), weights, strict=True):
            parameter.copy_(weight)
    return layer


def layer_run(layer, weights, x, dy, dtype):
    """y, dx, and the gradient of each weight, in one dtype."""
    layer, x = with_weights(layer, weights, dtype), leaf(x, dtype)
    y = layer(x)
    y.backward(dy.to(dtype))
    return [y.detach(), x.grad, *(weight.grad for weight in layer.parameters())]


# ---------------------------------------------------------------- init: initial values

# The short labels keep dots out of the case names.
UNIFORM_RANGES = {
    "unit": (0.0, 1.0),  # the raw draw
    "sym": (-1.0, 1.0),  # hi - lo is a power of two: exact
    "half": (-0.5, 0.5),  # hi - lo is one: exact
    "frac": (0.3, 0.9),  # hi - lo is no power of two: the multiply-add rounds
    "narrow": (1.0, 1.0 + 2.0**-23),  # half of the sums round up to hi, and become lo
}
NORMAL_MOMENTS = {
    "std": (0.0, 1.0),  # the raw draw
    "shift": (0.5, 0.02),  # scale and shift
}


def init_cases():
    """The list of initial-value cases."""
    cases = []

    def uniform(label, seed, shape, dtype="f32"):
        low, high = UNIFORM_RANGES[label]
        add("uniform", label, seed, shape, dtype, low=low, high=high)

    def normal(label, seed, shape, dtype="f32"):
        mean, std = NORMAL_MOMENTS[label]
        add("normal", label, seed, shape, dtype, mean=mean, std=std)

    def add(kind, label, seed, shape, dtype, **numbers):
        size = "x".join(str(d) for d in shape)
        tail = "" if dtype == "f32" else f"_{dtype}"
        n = 1
        for d in shape:
            n *= d
        cases.append(
            dict(name=f"{kind}_{label}_seed{seed}_n{size}{tail}", kind=kind, seed=seed, n=n)
            | dict(shape=list(shape), dtype=dtype)
            | numbers
        )

    # 42 is the usual seed, 0 the smallest. 2^32 + 7 must act like 7: only 32 bits count.
    for seed in (42, 0, 2**32 + 7):
        # 1, 12, 15: normal_ draws one by one. 16: one whole block.
        # 17, 30: the last 16 slots are drawn again. 1000: past the first 624 outputs.
        for n in (1, 12, 15, 16, 17, 30, 1000):
            for label in UNIFORM_RANGES:
                uniform(label, seed, (n,))
            for label in NORMAL_MOMENTS:
                normal(label, seed, (n,))
    # Long draws: many state refills, and the rare roundings.
    uniform("sym", 42, (100_000,))
    uniform("frac", 42, (100_000,))
    normal("std", 42, (100_000,))
    # Two dimensions: only the number of elements counts (21 and 20 here).
    normal("std", 42, (7, 3))
    normal("std", 42, (4, 5))
    # Double tensors: other draws (53 bits, two outputs each), below and above 16 elements.
    for n in (12, 30):
        uniform("sym", 42, (n,), "f64")
        uniform("frac", 42, (n,), "f64")
        normal("std", 42, (n,), "f64")
    # Half tensors: the f32 draws, rounded; what rounds up to hi becomes lo.
    for label in ("unit", "sym", "frac"):
        uniform(label, 42, (1000,), "f16")
    return cases


def init_draw(case, shape):
    """What a user gets from manual_seed and torch.nn.init."""
    values = torch.empty(shape, dtype=DTYPES[case["dtype"]])
    torch.manual_seed(case["seed"])
    if case["kind"] == "uniform":
        return torch.nn.init.uniform_(values, case["low"], case["high"])
    return torch.nn.init.normal_(values, case["mean"], case["std"])


def make_init(case):
    values = init_draw(case, case["shape"])
    # The shape does not matter.
    assert torch.equal(values.flatten(), init_draw(case, [case["n"]]))
    # The high bits of the seed do not matter.
    low_bits = case | {"seed": case["seed"] % 2**32}
    assert torch.equal(values, init_draw(low_bits, case["shape"]))
    return {"values": values}


# ---------------------------------------------------------------- norm: GroupRMSNorm


def norm_cases():
    """The list of GroupRMSNorm cases. `data` says how x is made."""

    def case(name, b, s, h, gz, eps, seed, dtype="f32", data="normal"):
        return dict(name=name, b=b, s=s, h=h, gz=gz, eps=eps, dtype=dtype, seed=seed, data=data)

    return [
        # One group: plain RMSNorm, taken from torch.nn.functional.rms_norm.
        case("plain", 2, 3, 8, 8, 1e-5, seed=1),
        # The usual case: two groups.
        case("two_groups", 2, 3, 8, 4, 1e-5, seed=2),
        # Groups of one element: y is almost the sign of x, dx almost nothing.
        case("singles", 2, 3, 8, 1, 1e-5, seed=3),
        # Sizes that are no power of two.
        case("odd_sizes", 1, 5, 12, 3, 1e-6, seed=4),
        # More rows and more groups: dweight sums over six rows.
        case("many_groups", 3, 2, 64, 16, 1e-5, seed=5),
        # Plain RMSNorm over a longer row: the error of a long sum.
        case("wide", 1, 4, 128, 128, 1e-6, seed=6),
        # Small x and a large eps: eps wins, so its place in the formula shows.
        case("eps_matters", 2, 3, 8, 4, 1e-2, seed=7, data="small"),
        # Rows from 1e-6 to 1e4: no loss at either end.
        case("row_scales", 2, 3, 8, 4, 1e-5, seed=8, data="row_scales"),
        # Double precision from end to end.
        case("double", 2, 3, 8, 4, 1e-5, seed=9, dtype="f64"),
        # Half precision: the square of 300 is too large for it, so f32 inside.
        case("half", 2, 3, 8, 4, 1e-5, seed=10, dtype="f16", data="large"),
    ]


def wide_dtype(case):
    """Test data is drawn in f64 for an f64 case, else in f32."""
    return torch.float64 if case["dtype"] == "f64" else torch.float32


def norm_input(case, gen):
    """x of one case, in the dtype of the case."""
    b, s, h = case["b"], case["s"], case["h"]
    x = randn(gen, b, s, h, dtype=wide_dtype(case))
    if case["data"] == "small":
        x = x * 1e-2
    elif case["data"] == "row_scales":
        scales = torch.logspace(-6, 4, b * s)
        x = x * scales.reshape(b, s, 1)
    elif case["data"] == "large":
        x[0, 0, 0], x[0, 1, 5], x[1, 0, 2], x[1, 2, 7] = 300.0, -300.0, -300.0, 300.0
        x[1, 1, :4] = 300.0  # a whole group
    elif case["data"] == "far":
        x = x + 1000.0
    return x.to(DTYPES[case["dtype"]])


def norm_run(x, weight, dy, case, dtype):
    """Forward and backward in one dtype. One group is PyTorch's own norm."""
    h, gz, eps = (case[k] for k in ("h", "gz", "eps"))
    layer = nn.RMSNorm(h, eps) if gz == h else layers.GroupRMSNorm(h, gz, eps)
    return layer_run(layer, [weight], x, dy, dtype)


def make_norm(case):
    dtype = DTYPES[case["dtype"]]
    gen = torch.Generator().manual_seed(case["seed"])
    # The weight is the first draw after the seed. It stays far from one.
    weight = torch.nn.init.uniform_(torch.empty(case["h"]), -2.0, 2.0, generator=gen).to(dtype)
    x = norm_input(case, gen)
    dy = randn(gen, *x.shape, dtype=wide_dtype(case)).to(dtype)
    y, dx, dweight = norm_run(x, weight, dy, case, dtype)
    out = dict(x=x, weight=weight, dy=dy, y=y, dx=dx, dweight=dweight)
    if dtype == torch.float32:
        out["y64"], out["dx64"], out["dweight64"] = norm_run(x, weight, dy, case, torch.float64)
    return out


# ---------------------------------------------------------------- layernorm: LayerNorm


def layernorm_cases():
    """The list of LayerNorm cases. `data` says how x is made."""

    def case(name, b, s, h, eps, seed, dtype="f32", data="normal"):
        return dict(name=name, b=b, s=s, h=h, eps=eps, dtype=dtype, seed=seed, data=data)

    return [
        case("plain", 2, 3, 8, 1e-5, seed=1),
        # A size that is no power of two.
        case("odd_size", 1, 5, 12, 1e-6, seed=2),
        # A longer row: the error of a long sum.
        case("wide", 1, 4, 128, 1e-6, seed=3),
        # Small x and a large eps: eps wins, so its place in the formula shows.
        case("eps_matters", 2, 3, 8, 1e-2, seed=4, data="small"),
        # Rows from 1e-6 to 1e4: no loss at either end.
        case("row_scales", 2, 3, 8, 1e-5, seed=5, data="row_scales"),
        # A mean a thousand times larger than the standard deviation.
        case("far", 2, 3, 8, 1e-5, seed=6, data="far"),
        # Double precision from end to end.
        case("double", 2, 3, 8, 1e-5, seed=7, dtype="f64"),
        # Half precision: the square of 300 is too large for it, so f32 inside.
        case("half", 2, 3, 8, 1e-5, seed=8, dtype="f16", data="large"),
    ]


def layernorm_run(x, weight, bias, dy, case, dtype):
    """Forward and backward in one dtype. Half precision: PyTorch's own, with f32 inside."""
    return layer_run(layers.LayerNorm(case["h"], case["eps"]), [weight, bias], x, dy, dtype)


def make_layernorm(case):
    dtype = DTYPES[case["dtype"]]
    gen = torch.Generator().manual_seed(case["seed"])
    # Far from one and from zero.
    weight = torch.nn.init.uniform_(torch.empty(case["h"]), -2.0, 2.0, generator=gen).to(dtype)
    bias = torch.nn.init.uniform_(torch.empty(case["h"]), -2.0, 2.0, generator=gen).to(dtype)
    x = norm_input(case, gen)
    dy = randn(gen, *x.shape, dtype=wide_dtype(case)).to(dtype)
    y, dx, dweight, dbias = layernorm_run(x, weight, bias, dy, case, dtype)
    out = dict(x=x, weight=weight, bias=bias, dy=dy, y=y, dx=dx, dweight=dweight, dbias=dbias)
    names = ("y64", "dx64", "dweight64", "dbias64")
    return out | dict(zip(names, layernorm_run(x, weight, bias, dy, case, torch.float64)))


# ---------------------------------------------------------------- embedding: VocabEmbedding

# Duplicates, the first row, the last row, and rows that nobody looks up.
EMBEDDING_IDS = {
    11: [[0, 10, 3, 3, 1, 0, 9], [10, 3, 5, 7, 3, 0, 1]],
    12: [[0, 11, 3, 3, 2, 4, 0], [7, 9, 5, 3, 8, 6, 11]],  # both sides of every rank edge
    32: [[0, 31, 3, 3, 16, 0, 30], [31, 3, 15, 17, 3, 0, 1]],
    100: [[0, 99, 64, 64, 1, 0, 98], [99, 64, 50, 7, 64, 0, 1]],
}


def embedding_cases():
    """The list of VocabEmbedding cases."""
    return [
        # Small and odd-sized: 55 elements, so the table has a redrawn tail.
        dict(name="small", v=11, e=5, seed=42, mean=0.0, std=1.0, dtype="f32"),
        # Mean and std as in a real model, another seed.
        dict(name="scaled", v=32, e=16, seed=7, mean=0.1, std=0.02, dtype="f32"),
        # A larger table, 800 elements: most rows are never used.
        dict(name="sparse", v=100, e=8, seed=42, mean=0.0, std=1.0, dtype="f32"),
        # A double table: other draws than the f32 one.
        dict(name="double", v=11, e=5, seed=42, mean=0.0, std=1.0, dtype="f64"),
    ]


def make_embedding(case):
    settings = [case[k] for k in ("v", "e", "mean", "std", "seed")]
    layer = layers.VocabEmbedding(*settings, dtype=DTYPES[case["dtype"]])
    ids = torch.tensor(EMBEDDING_IDS[case["v"]], dtype=torch.int64)
    gen = torch.Generator().manual_seed(1000 + case["seed"])
    dy = randn(gen, *ids.shape, case["e"], dtype=layer.weight.dtype)
    y = layer(ids)
    y.backward(dy)
    return dict(table=layer.weight.detach(), ids=ids, dy=dy, y=y.detach(), dtable=layer.weight.grad)


# ---------------------------------------------------------------- parallel: ParallelVocabEmbedding


def parallel_cases():
    """The list of ParallelVocabEmbedding cases: rank r draws its rows with seed + r."""
    common = dict(v=12, e=5, seed=42, mean=0.0, std=1.0, dtype="f32")
    return [
        dict(name="w1", w=1) | common,  # one rank: the plain embedding
        dict(name="w2", w=2) | common,  # 30 elements a rank
        dict(name="w3", w=3) | common,  # 20 elements a rank
        dict(name="w4", w=4) | common,  # 15 elements a rank: the short way to draw normals
    ]


def make_parallel(case):
    v, e, w = case["v"], case["e"], case["w"]
    ids = torch.tensor(EMBEDDING_IDS[v], dtype=torch.int64)
    gen = torch.Generator().manual_seed(2000)  # the same dy for every w
    dy = randn(gen, *ids.shape, e)
    out = dict(ids=ids, dy=dy)
    tables, grads, ys = [], [], []
    for r in range(w):
        layer = layers.ParallelVocabEmbedding(v, e, r, w, *(case[k] for k in ("mean", "std", "seed")))
        y = layer(ids)
        y.backward(dy)
        out |= {f"table_{r}": layer.weight.detach(), f"y_{r}": y.detach(), f"dtable_{r}": layer.weight.grad}
        tables.append(layer.weight.detach())
        grads.append(layer.weight.grad)
        ys.append(y.detach())
    out["y_sum"] = torch.stack(ys).sum(0)
    # The ranks together are one embedding with the stacked table.
    full = leaf(torch.cat(tables))
    y = F.embedding(ids, full)
    y.backward(dy)
    assert torch.equal(out["y_sum"], y)
    assert torch.equal(torch.cat(grads), full.grad)
    return out


# ---------------------------------------------------------------- rope: rotary positions


def rope_cases():
    """The list of rotary cases."""

    def case(name, b, s, nh, hd, base, max_seq_len, ratio, offset, seed):
        return dict(name=name, b=b, s=s, nh=nh, hd=hd, base=base, max_seq_len=max_seq_len) | dict(
            ratio=ratio, offset=offset, k_used=ratio_used(max_seq_len, ratio, offset + s), seed=seed
        )

    return [
        # The smallest head with two planes, no stretching.
        case("small", 2, 6, 3, 4, 10000, 16, 1, 0, seed=1),
        # Stretched four times, and a decoding offset.
        case("stretched_offset", 1, 8, 2, 8, 10000, 16, 4, 5, seed=2),
        # A large base and a head of 64.
        case("large_base", 2, 5, 2, 64, 500000, 32, 2, 3, seed=3),
        # The usual head of 128.
        case("head128", 1, 4, 2, 128, 10000, 64, 1, 0, seed=4),
        # Longer than the cache: 40 > 16, so the ratio becomes 4.
        case("long_call", 1, 40, 1, 8, 10000, 16, 1, 0, seed=5),
        # Far positions: float32 angles are visibly off. Also a long call, ratio 490.
        case("far", 1, 4, 1, 64, 10000, 2048, 1, 1_000_000, seed=6),
        # Near the end of a stretched cache, still inside it.
        case("near_end", 1, 3, 2, 128, 10000, 8192, 2, 16000, seed=7),
    ]


def ratio_used(max_seq_len, ratio, length):
    """The given ratio if the cache is long enough, else the smallest even one that is."""
    if length <= max_seq_len * ratio:
        return ratio
    k = 2
    while max_seq_len * k < length:
        k += 2
    return k


def cos_sin(angles):
    """Both halves of a head use the same angles."""
    doubled = torch.cat((angles, angles), dim=-1)
    return doubled.cos(), doubled.sin()


def angles_f64(case):
    """theta_i = (c * beta)^-i, written as base^(-2i/d) * c^-i, all in float64."""
    d, k = case["hd"], case["k_used"]
    i = torch.arange(d // 2, dtype=torch.float64)
    c = torch.tensor(k, dtype=torch.float64) ** (2 / (d - 2))
    theta = torch.tensor(case["base"], dtype=torch.float64) ** (-2 * i / d) * c ** (-i)
    positions = torch.arange(case["offset"], case["offset"] + case["s"], dtype=torch.float64)
    return torch.outer(positions, theta)


def rope_run(x, dy, rotate, dtype):
    """Forward and backward in one dtype."""
    x = leaf(x, dtype)
    y = rotate(x)
    y.backward(dy.to(dtype))
    return y.detach(), x.grad


def make_rope(case):
    gen = torch.Generator().manual_seed(case["seed"])
    shape = [case[k] for k in ("b", "s", "nh", "hd")]
    x, dy = randn(gen, *shape), randn(gen, *shape)
    # The usual code: a changed base, and float32 everywhere.
    rope = layers.RotaryEmbedding(case["hd"], case["base"], case["k_used"])
    y, dx = rope_run(x, dy, lambda x: rope(x, case["offset"]), torch.float32)
    angles = angles_f64(case)
    cos64, sin64 = cos_sin(angles)
    y64, dx64 = rope_run(x, dy, lambda x: layers.apply_rotary(x, cos64, sin64), torch.float64)
    return dict(
        x=x, dy=dy, y=y, dx=dx, y64=y64, dx64=dx64, cos64=cos64, sin64=sin64
    ) | {"y64_interleaved": layers.turn(x.double(), angles, adjacent=True)}


# ---------------------------------------------------------------- feedforward: SwiGLU


def feedforward_cases():
    """The list of SwiGLU cases. `scale` is how large x is."""

    def case(name, b, s, h, f, seed, dtype="f32", scale=1.0):
        return dict(name=name, b=b, s=s, h=h, f=f, seed=seed, dtype=dtype, scale=scale)

    return [
        case("plain", 2, 3, 8, 16, seed=1),
        # Narrower between than outside, and no power of two.
        case("narrow", 1, 5, 6, 2, seed=2),
        # Gates that are open or shut.
        case("far", 2, 3, 8, 16, seed=3, scale=100.0),
        # Double precision from end to end.
        case("double", 2, 3, 8, 16, seed=4, dtype="f64"),
    ]


def feedforward_run(tensors, dy, dtype):
    """Forward and backward in one dtype."""
    x, gate, up, down = tensors
    return layer_run(layers.SwiGLU(gate.shape[1], gate.shape[0]), [gate, up, down], x, dy, dtype)


def make_feedforward(case):
    dtype = DTYPES[case["dtype"]]
    gen = torch.Generator().manual_seed(case["seed"])
    b, s, h, f = (case[k] for k in ("b", "s", "h", "f"))
    x = randn(gen, b, s, h, dtype=dtype) * case["scale"]
    tensors = [x, *(randn(gen, *shape, dtype=dtype) for shape in ((f, h), (f, h), (h, f)))]
    dy = randn(gen, b, s, h, dtype=dtype)
    names = ("y", "dx", "dgate", "dup", "ddown")
    out = dict(zip(("x", "gate", "up", "down"), tensors)) | {"dy": dy}
    out |= dict(zip(names, feedforward_run(tensors, dy, dtype)))
    wide = feedforward_run(tensors, dy, torch.float64)
    return out | {f"{name}64": value for name, value in zip(names, wide)}


# ---------------------------------------------------------------- loss: cross-entropy


def loss_cases():
    """The list of loss cases. `ignored` is every how manyth place is not asked about, 0 for none."""

    def case(name, b, s, v, seed, dtype="f32", scale=1.0, level=0.0, ignored=0):
        numbers = dict(scale=scale, level=level, ignored=ignored)
        return dict(name=name, b=b, s=s, v=v, seed=seed, dtype=dtype) | numbers

    return [
        case("plain", 2, 3, 7, seed=1),
        # Some places are padding.
        case("padded", 3, 5, 12, seed=2, ignored=3),
        # exp of these logits is infinite in f32, or 0.
        case("high", 2, 3, 7, seed=3, level=1000.0),
        case("low", 2, 3, 7, seed=4, level=-1000.0, ignored=2),
        # Sure of itself, and wrong.
        case("far", 2, 4, 9, seed=5, scale=60.0),
        # A vocabulary of some size.
        case("wide", 1, 4, 1000, seed=6),
        # Double precision from end to end.
        case("double", 3, 5, 12, seed=7, dtype="f64", ignored=3),
    ]


def loss_run(logits, targets, dtype):
    """Forward and backward in one dtype."""
    logits = leaf(logits, dtype)
    loss = layers.cross_entropy(logits, targets)
    loss.backward()
    return loss.detach().reshape(1), logits.grad


def make_loss(case):
    dtype = DTYPES[case["dtype"]]
    gen = torch.Generator().manual_seed(case["seed"])
    b, s, v = (case[k] for k in ("b", "s", "v"))
    logits = randn(gen, b, s, v, dtype=dtype) * case["scale"] + case["level"]
    targets = torch.randint(0, v, (b, s), generator=gen)
    if case["ignored"]:
        targets.view(-1)[1 :: case["ignored"]] = -100
    loss, dlogits = loss_run(logits, targets, dtype)
    loss64, dlogits64 = loss_run(logits, targets, torch.float64)
    out = dict(logits=logits, targets=targets, loss=loss, dlogits=dlogits)
    return out | dict(loss64=loss64, dlogits64=dlogits64)


# ---------------------------------------------------------------- attention


def attention_cases():
    """The list of attention cases. `scale` multiplies the queries."""

    def case(name, b, s, p, nh, nkv, hd, seed, dtype="f32", scale=1.0):
        return dict(name=name, b=b, s=s, p=p, nh=nh, nkv=nkv, hd=hd, dtype=dtype, seed=seed, scale=scale)

    return [
        # A head for each query head; nothing in the cache.
        case("multi_head", 2, 5, 0, 3, 3, 4, seed=1),
        # Two groups of two, and of three: neighbours share a key.
        case("grouped", 2, 4, 0, 4, 2, 8, seed=2),
        case("groups_of_three", 1, 4, 0, 6, 2, 4, seed=3),
        # One key head for all.
        case("multi_query", 2, 4, 0, 4, 1, 8, seed=4),
        # A piece after others, and one token after many.
        case("with_cache", 2, 3, 4, 4, 2, 8, seed=5),
        case("one_token", 1, 1, 30, 4, 2, 8, seed=6),
        # One text of the assignment: 16 tokens, 8 query heads, 2 key heads, heads of 16.
        case("assignment", 1, 16, 0, 8, 2, 16, seed=7),
        # Scores of some hundreds: one position takes all.
        case("large_scores", 1, 4, 0, 2, 1, 8, seed=8, scale=200.0),
        # Double precision from end to end.
        case("double", 2, 4, 1, 4, 2, 8, seed=9, dtype="f64"),
        # Half precision, with float32 inside.
        case("half", 2, 4, 0, 4, 2, 8, seed=10, dtype="f16"),
    ]


def attention_run(inputs, dy, dtype):
    """Forward and backward in one dtype. Half precision computes in float32 and casts once."""
    inputs = [leaf(x, dtype) for x in inputs]
    compute = torch.float32 if dtype == torch.float16 else dtype
    wide = [x.to(compute) for x in inputs]
    y = layers.attention(*wide).to(dtype)
    # PyTorch's own gives the same.
    torch.testing.assert_close(layers.attention_by_pytorch(*wide).to(dtype), y)
    y.backward(dy.to(dtype))
    return [y.detach(), *(x.grad for x in inputs)]


def make_attention(case):
    dtype = DTYPES[case["dtype"]]
    gen = torch.Generator().manual_seed(case["seed"])
    b, s, t, nkv, hd = case["b"], case["s"], case["p"] + case["s"], case["nkv"], case["hd"]
    wide = wide_dtype(case)
    q = (randn(gen, b, s, case["nh"], hd, dtype=wide) * case["scale"]).to(dtype)
    k, v = (randn(gen, b, t, nkv, hd, dtype=wide).to(dtype) for _ in range(2))
    dy = randn(gen, *q.shape, dtype=wide).to(dtype)
    names = ("y", "dq", "dk", "dv")
    out = dict(q=q, k=k, v=v, dy=dy) | dict(zip(names, attention_run((q, k, v), dy, dtype)))
    double = attention_run((q, k, v), dy, torch.float64)
    return out | {f"{name}64": value for name, value in zip(names, double)}


# ---------------------------------------------------------------- model


def model_cases():
    """The list of models. Their sizes are in the contract's menu: `contract/src/model/menu.rs`."""

    def case(name, b, s, v, h, nh, nkv, hd, f, blocks, tied, seed):
        sizes = dict(b=b, s=s, v=v, h=h, nh=nh, nkv=nkv, hd=hd, f=f, blocks=blocks, tied=tied)
        return dict(name=name, eps=1e-5, base=10000.0, seed=seed) | sizes

    return [
        # Two query heads share a key head.
        case("grouped", 2, 6, 7, 16, 4, 2, 4, 6, blocks=2, tied=False, seed=1),
        # One key head for all, and the table serves as output.
        case("tied", 1, 9, 5, 8, 2, 1, 4, 3, blocks=3, tied=True, seed=2),
        # A key head for each query head.
        case("multi_head", 3, 4, 11, 12, 3, 3, 4, 8, blocks=1, tied=False, seed=3),
    ]


def model_of(case):
    sizes = [case[name] for name in ("v", "h", "nh", "nkv", "hd", "f", "blocks", "eps", "base", "tied")]
    return layers.Llama(*sizes)


def model_run(weights, ids, case, dtype):
    """Logits, the loss of the next tokens, and the gradient of all weights in their order."""
    model = with_weights(model_of(case), weights, dtype)
    logits = model(ids)
    loss = layers.next_token_loss(logits, ids)
    loss.backward()
    gradient = torch.cat([weight.grad.flatten() for weight in model.parameters()])
    return logits.detach(), loss.detach().view(1), gradient


def make_model(case):
    gen = torch.Generator().manual_seed(case["seed"])
    shapes = [weight.shape for weight in model_of(case).parameters()]
    # Gammas are near 1, so that a norm is one; matrices leave the softmax in its bend.
    weights = [1 + 0.3 * randn(gen, *shape) if len(shape) == 1 else 0.4 * randn(gen, *shape) for shape in shapes]
    ids = torch.randint(case["v"], (case["b"], case["s"]), generator=gen)
    names = ("logits", "loss", "gradient")
    out = dict(weights=torch.cat([weight.flatten() for weight in weights]), ids=ids)
    out |= dict(zip(names, model_run(weights, ids, case, torch.float32)))
    double = model_run(weights, ids, case, torch.float64)
    return out | {f"{name}64": value for name, value in zip(names, double)}


# ---------------------------------------------------------------- position encodings, by transformers too

# What makes these files, one module each, imports transformers. Without it the others are made all the same.
ENCODINGS = ("absolute", "frequencies", "biases", "rotations")


def encoding_cases(stem):
    """The cases of a module. The tests read float64."""
    return [case | dict(dtype="f64") for case in importlib.import_module(stem).cases()]


def make_encoding(stem, case):
    """Each kind of case has a function of its name."""
    return getattr(importlib.import_module(stem), f"make_{case['kind']}")(case)


def absolute_cases():
    """Sinusoids: `absolute.py`."""
    return encoding_cases("absolute")


def make_absolute(case):
    return make_encoding("absolute", case)


def frequencies_cases():
    """RoPE for longer texts: `frequencies.py`."""
    return encoding_cases("frequencies")


def make_frequencies(case):
    return make_encoding("frequencies", case)


def biases_cases():
    """What is added to scores: `biases.py`."""
    return encoding_cases("biases")


def make_biases(case):
    return make_encoding("biases", case)


def rotations_cases():
    """Other rotations, and linear attention: `rotations.py`."""
    return encoding_cases("rotations")


def make_rotations(case):
    return make_encoding("rotations", case)


# ---------------------------------------------------------------- collectives


def collectives_cases():
    """The list of collectives cases. `w` ranks share the vocabulary; the numbers are those of one process with all of it."""

    def case(name, t, v, w, seed, level=0.0):
        return dict(name=name, t=t, v=v, w=w, seed=seed, dtype="f32", level=level)

    return [
        case("two", 5, 12, 2, seed=1),
        # As many ranks as ids.
        case("one_id_each", 4, 8, 8, seed=2),
        # exp of these logits is infinite in f32.
        case("high", 3, 12, 4, seed=3, level=1000.0),
        case("wide", 2, 999, 3, seed=4),
    ]


def make_collectives(case):
    gen = torch.Generator().manual_seed(case["seed"])
    logits = randn(gen, case["t"], case["v"], dtype=torch.float32) + case["level"]
    targets = torch.randint(0, case["v"], (case["t"],), generator=gen)
    wide = leaf(logits, torch.float64)
    loss = F.cross_entropy(wide, targets)
    loss.backward()
    return dict(logits=logits, targets=targets, loss64=loss.detach().reshape(1), dlogits64=wide.grad)


# ---------------------------------------------------------------- files

FILES = {
    "init": (init_cases, make_init),
    "norm": (norm_cases, make_norm),
    "embedding": (embedding_cases, make_embedding),
    "parallel": (parallel_cases, make_parallel),
    "rope": (rope_cases, make_rope),
    "layernorm": (layernorm_cases, make_layernorm),
    "feedforward": (feedforward_cases, make_feedforward),
    "loss": (loss_cases, make_loss),
    "attention": (attention_cases, make_attention),
    "model": (model_cases, make_model),
    "absolute": (absolute_cases, make_absolute),
    "frequencies": (frequencies_cases, make_frequencies),
    "biases": (biases_cases, make_biases),
    "rotations": (rotations_cases, make_rotations),
    "collectives": (collectives_cases, make_collectives),
}


def compute(stem):
    """The tensors and the metadata of one file."""
    list_cases, make = FILES[stem]
    cases = list_cases()
    tensors = {}
    for case in cases:
        for what, tensor in make(case).items():
            name = f"{case['name']}.{what}"
            assert name not in tensors, f"two tensors are called {name}"
            assert tensor.isfinite().all(), f"{name} is not finite"
            tensors[name] = tensor.contiguous()
    return tensors, {"cases": json.dumps(cases)}


def same_bits(a, b):
    """Equal dtype, shape and bits. Minus zero is not plus zero."""
    if a.dtype != b.dtype or a.shape != b.shape:
        return False
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))


def check(stem):
    """A list of lines, one for each difference between the file and a fresh run."""
    path = HERE / f"{stem}.safetensors"
    if not path.exists():
        return [f"{path.name}: missing"]
    want, metadata = compute(stem)
    with safe_open(path, framework="pt") as file:
        found_metadata = file.metadata()
        found = {name: file.get_tensor(name) for name in file.keys()}
    lines = []
    if found_metadata != metadata:
        lines.append(f"{path.name}: the case list differs")
    for name in sorted(want.keys() | found.keys()):
        if name not in found:
            lines.append(f"{path.name}: {name} is missing")
        elif name not in want:
            lines.append(f"{path.name}: {name} is not expected")
        elif not same_bits(want[name], found[name]):
            a, b = want[name], found[name]
            if a.shape == b.shape and a.dtype == b.dtype:
                why = f"by at most {(a.double() - b.double()).abs().max().item():.3g}"
            else:
                why = "in dtype or shape"
            lines.append(f"{path.name}: {name} differs {why}")
    return lines


def main():
    parser = argparse.ArgumentParser(description="Write or check the golden files.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("file", nargs="*", help=f"of {', '.join(FILES)}; all, if none is named")
    arguments = parser.parse_args()
    from_pytorch.run()
    stems = arguments.file or list(FILES)
    if not arguments.file and importlib.util.find_spec("transformers") is None:
        stems = [stem for stem in stems if stem not in ENCODINGS]
        print(f"left out, because transformers is not here: {', '.join(ENCODINGS)}")
    for stem in stems:
        if stem not in FILES:
            parser.error(f"there is no file {stem}: choose of {', '.join(FILES)}")
    if arguments.check:
        lines = [line for stem in stems for line in check(stem)]
        print("\n".join(lines) or "all golden files match")
        sys.exit(1 if lines else 0)
    for stem in stems:
        tensors, metadata = compute(stem)
        path = HERE / f"{stem}.safetensors"
        save_file(tensors, path, metadata=metadata)
        print(f"{path.name}: {len(tensors)} tensors, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
