"""PyTorch as an implementation of the contract: answers one JSON request a line.

    python tests/goldens/answers.py < requests > replies

A request is {"call": "norm.forward", ...sizes and flat values...}. A reply is {"ok": values} or
{"refused": words}. The numbers come from PyTorch's own operations, written as a PyTorch user would
write them: torch.nn.functional.rms_norm, layer_norm, embedding, scaled_dot_product_attention, silu and cross_entropy,
torch.nn.init, autograd for every gradient, and RoPE with float32 angles as in the Hugging Face models; for stretched
RoPE transformers' own functions.

`tests/suite/implementations/pytorch/` asks, and keeps the replies in `answers.json`.
"""

import json
import math
import os
import sys

os.environ["ATEN_CPU_CAPABILITY"] = "avx2"  # as in generate.py, and before PyTorch starts

import torch
import torch.nn.functional as F

CALLS = {}


def call(function):
    """Registers `norm_forward`, which answers the call `norm.forward`."""
    CALLS[function.__name__] = function
    return function


def floats(values, shape, **options):
    return torch.tensor([float(v) for v in values], dtype=torch.float32).reshape(shape).requires_grad_(
        options.get("grad", False)
    )


# GroupRMSNorm: PyTorch's rms_norm over the last axis of [b, s, g, gz].


def group_rms_norm(x, gamma, q):
    b, s, h = q["shape"]
    grouped = x.float().view(b, s, h // q["group_size"], q["group_size"])
    xhat = F.rms_norm(grouped, (q["group_size"],), eps=q["eps"])
    return (xhat.view(b, s, h) * gamma).to(x.dtype)


def check_groups(q):
    if q["group_size"] == 0 or q["shape"][2] % q["group_size"]:
        # The view below would say so too, in words about sizes of views.
        raise ValueError("group size does not divide hidden size")


@call
def norm_initial_gamma(q):
    torch.manual_seed(q["seed"])
    return torch.nn.init.uniform_(torch.empty(q["hidden_size"]), *q["range"])


@call
def norm_forward(q):
    check_groups(q)
    return group_rms_norm(floats(q["x"], q["shape"]), floats(q["gamma"], -1), q)


@call
def norm_forward_half(q):
    check_groups(q)
    x = floats(q["x"], q["shape"]).half()
    y = group_rms_norm(x, floats(q["gamma"], -1), q)
    assert y.dtype == torch.float16
    return y.float()


@call
def norm_backward(q):
    check_groups(q)
    x = floats(q["x"], q["shape"], grad=True)
    gamma = floats(q["gamma"], -1, grad=True)
    group_rms_norm(x, gamma, q).backward(floats(q["dy"], q["shape"]))
    return torch.cat([x.grad.flatten(), gamma.grad])


# LayerNorm: PyTorch's layer_norm over the last axis.


def layer_norm(x, gamma, beta, q):
    return F.layer_norm(x, (q["shape"][2],), gamma, beta, q["eps"])


@call
def layernorm_forward(q):
    return layer_norm(floats(q["x"], q["shape"]), floats(q["gamma"], -1), floats(q["beta"], -1), q)


@call
def layernorm_backward(q):
    x = floats(q["x"], q["shape"], grad=True)
    gamma, beta = floats(q["gamma"], -1, grad=True), floats(q["beta"], -1, grad=True)
    layer_norm(x, gamma, beta, q).backward(floats(q["dy"], q["shape"]))
    return torch.cat([x.grad.flatten(), gamma.grad, beta.grad])


# Embeddings: PyTorch's embedding; a rank masks its input, looks up, and zeroes its output.


def normal(shape, q):
    torch.manual_seed(q["seed"])
    return torch.nn.init.normal_(torch.empty(shape), q["mean"], q["std"])


def ids_of(q):
    return torch.tensor(q["ids"], dtype=torch.int64).view(q["shape"])


@call
def embedding_initial_table(q):
    return normal((q["vocab_size"], q["embedding_dim"]), q)


def look_up(q, table):
    ids = ids_of(q)
    y = F.embedding(ids, table)
    return y, ids


@call
def embedding_forward(q):
    y, ids = look_up(q, floats(q["table"], (q["vocab_size"], q["embedding_dim"])))
    return torch.cat([y.flatten().double(), ids.flatten().double()])


@call
def embedding_backward(q):
    table = floats(q["table"], (q["vocab_size"], q["embedding_dim"]), grad=True)
    y, _ = look_up(q, table)
    y.backward(floats(q["dy"], y.shape))
    return table.grad


def shard_of(q):
    if q["world_size"] == 0 or q["vocab_size"] % q["world_size"]:
        raise ValueError("world size does not divide vocabulary size")
    if q["rank"] >= q["world_size"]:
        raise ValueError("rank does not exist")
    rows = q["vocab_size"] // q["world_size"]
    return q["rank"] * rows, (q["rank"] + 1) * rows


@call
def parallel_shard_range(q):
    return shard_of(q)


@call
def parallel_initial_shard(q):
    start, end = shard_of(q)
    return normal((end - start, q["embedding_dim"]), {**q, "seed": (q["seed"] + q["rank"]) % 2**64})


def look_up_shard(q, shard):
    start, end = shard_of(q)
    for place, id in enumerate(q["ids"]):
        if id >= q["vocab_size"]:
            row, column = divmod(place, q["shape"][1])
            raise IndexError(f"id {id} at [{row}, {column}] is not below {q['vocab_size']}")
    ids = ids_of(q)
    foreign = (ids < start) | (ids >= end)
    local = (ids - start).masked_fill(foreign, 0)
    return F.embedding(local, shard).masked_fill(foreign.unsqueeze(-1), 0.0), ids


@call
def parallel_forward(q):
    start, end = shard_of(q)
    y, ids = look_up_shard(q, floats(q["shard"], (end - start, q["embedding_dim"])))
    return torch.cat([y.flatten().double(), ids.flatten().double()])


@call
def parallel_backward(q):
    start, end = shard_of(q)
    shard = floats(q["shard"], (end - start, q["embedding_dim"]), grad=True)
    y, _ = look_up_shard(q, shard)
    y.backward(floats(q["dy"], y.shape))
    return shard.grad


# RoPE: frequencies as tensors, angles in float32, rotate_half; gradients by autograd.


def inverse_frequencies(q, dtype):
    d, base, ratio = q["head_dim"], float(q["base"]), float(q["ratio"])
    if d < 4 or d % 2 or not (math.isfinite(base) and base > 1) or not (math.isfinite(ratio) and ratio >= 1):
        raise ValueError("bad head_dim, base or ratio")
    base = base * ratio ** (d / (d - 2))
    return 1.0 / base ** (torch.arange(0, d, 2, dtype=dtype) / d)


@call
def rope_frequencies(q):
    return inverse_frequencies(q, torch.float64)


@call
def rope_tables(q):
    positions = torch.arange(q["start"], q["end"], dtype=torch.float32)
    angles = torch.outer(positions, inverse_frequencies(q, torch.float32))
    angles = torch.cat([angles, angles], dim=-1)
    return torch.cat([angles.cos().flatten(), angles.sin().flatten()])


def quarter_turn(x, layout):
    if layout == "HalfSplit":
        first, second = x.chunk(2, dim=-1)
        return torch.cat([-second, first], dim=-1)
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack([-second, first], dim=-1).flatten(-2)


def rotate(x, q):
    _, s, _, hd = q["shape"]
    cos = floats(q["cos"], (1, s, 1, hd))
    sin = floats(q["sin"], (1, s, 1, hd))
    return x * cos + quarter_turn(x, q["layout"]) * sin


@call
def rope_rotate(q):
    return rotate(floats(q["x"], q["shape"]), q)


@call
def rope_rotate_backward(q):
    x = floats(q["x"], q["shape"], grad=True)
    rotate(x, q).backward(floats(q["dy"], q["shape"]))
    return x.grad


@call
def rope_to_interleaved(q):
    hd = q["head_dim"]
    return floats(q["x"], (-1, 2, hd // 2)).transpose(1, 2).reshape(-1, hd)


@call
def rope_to_half_split(q):
    hd = q["head_dim"]
    return floats(q["x"], (-1, hd // 2, 2)).transpose(1, 2).reshape(-1, hd)


# SwiGLU: PyTorch's linear and silu. The size's rule is that of Llama's own model code.


@call
def feedforward_size(q):
    size = int(2 * (4 * q["hidden_size"]) / 3)
    if q["multiplier"] is not None:
        size = int(q["multiplier"] * size)
    return torch.tensor([-(-size // q["multiple_of"]) * q["multiple_of"]])


def swiglu(x, gate, up, down):
    return F.linear(F.silu(F.linear(x, gate)) * F.linear(x, up), down)


def swiglu_weights(q, grad=False):
    h, f = q["shape"][2], q["ffn_hidden_size"]
    shapes = {"gate": (f, h), "up": (f, h), "down": (h, f)}
    return [floats(q[name], shape, grad=grad) for name, shape in shapes.items()]


@call
def feedforward_forward(q):
    return swiglu(floats(q["x"], q["shape"]), *swiglu_weights(q))


@call
def feedforward_backward(q):
    x, weights = floats(q["x"], q["shape"], grad=True), swiglu_weights(q, grad=True)
    swiglu(x, *weights).backward(floats(q["dy"], q["shape"]))
    return torch.cat([tensor.grad.flatten() for tensor in (x, *weights)])


# The loss: PyTorch's cross_entropy, with -100 where nothing is asked.


@call
def loss_next_tokens(q):
    ids = ids_of(q)
    if ids.shape[1] < 2:
        raise ValueError("a text of one token has no next token")
    return torch.cat([ids[:, :-1].flatten(), ids[:, 1:].flatten()])


def cross_entropy(q, logits):
    targets = [-100 if target is None else target for target in q["targets"]]
    return F.cross_entropy(logits.view(-1, q["shape"][2]), torch.tensor(targets, dtype=torch.int64))


@call
def loss_forward(q):
    return cross_entropy(q, floats(q["logits"], q["shape"])).reshape(1)


@call
def loss_backward(q):
    logits = floats(q["logits"], q["shape"], grad=True)
    cross_entropy(q, logits).backward(torch.tensor(float(q["dloss"])))
    return logits.grad


@call
def loss_perplexity(q):
    losses, places = floats(q["losses"], -1), torch.tensor(q["places"], dtype=torch.float32)
    return torch.exp((losses * places).sum() / places.sum()).reshape(1)


# Attention: PyTorch's scaled_dot_product_attention. Its is_causal knows no cache, so the mask is given.


def causal_mask(s, p):
    return torch.ones(s, p + s, dtype=torch.bool).tril(diagonal=p)


def attend(q, k, v):
    (_, s, nh, _), (_, t, nkv, _) = q.shape, k.shape
    if nkv == 0 or nh % nkv:
        raise ValueError("key heads do not divide query heads")
    if t < s:
        raise ValueError("fewer keys than queries")
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=causal_mask(s, t - s), enable_gqa=True)
    return y.transpose(1, 2)


@call
def attention_repeat(q):
    return floats(q["x"], q["shape"]).repeat_interleave(q["times"], dim=2)


@call
def attention_repeat_backward(q):
    b, t, nkv, hd = q["shape"]
    x = torch.zeros(q["shape"], requires_grad=True)
    x.repeat_interleave(q["times"], dim=2).backward(floats(q["dy"], (b, t, nkv * q["times"], hd)))
    return x.grad


@call
def attention_mask(q):
    return causal_mask(q["s"], q["p"]).int()


@call
def attention_window_mask(q):
    """The band between two diagonals. PyTorch counts them in 64 bits with a sign."""
    s, p = q["s"], q["p"]
    return causal_mask(s, p).triu(diagonal=p + 1 - min(q["window"], p + s)).int()


def attention_inputs(q, grad):
    return [floats(q[name], q[of], grad=grad) for name, of in (("q", "of_q"), ("k", "of_k"), ("v", "of_k"))]


@call
def attention_forward(q):
    return attend(*attention_inputs(q, False))


@call
def attention_backward(q):
    inputs = attention_inputs(q, True)
    attend(*inputs).backward(floats(q["dy"], q["of_q"]))
    return torch.cat([x.grad.flatten() for x in inputs])


@call
def attention_softmax_backward(q):
    y, dy = floats(q["y"], q["shape"]), floats(q["dy"], q["shape"])
    return torch._softmax_backward_data(dy, y, -1, torch.float32)
# The model: torch.nn.functional's rms_norm, linear, scaled_dot_product_attention, silu and cross_entropy.

BLOCK = ["input_norm", "q", "k", "v", "o", "post_norm", "gate", "up", "down"]


def block_shapes(q):
    _, h, nh, nkv, hd, f = q["sizes"]
    return [(h,), (nh * hd, h), (nkv * hd, h), (nkv * hd, h), (h, nh * hd), (h,), (f, h), (f, h), (h, f)]


def split(values, shapes, grad=False):
    values = iter(values)
    take = lambda shape: floats([next(values) for _ in range(math.prod(shape))], shape, grad=grad)
    return [take(shape) for shape in shapes]


def turned(x, q, start):
    """Heads [b, n, s, hd] at positions from `start` on."""
    half = x.shape[-1] // 2
    inverse = float(q["base"]) ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.outer(torch.arange(start, start + x.shape[2], dtype=torch.float64), inverse)
    cos, sin = (torch.cat([t, t], dim=-1).float().to(x.dtype) for t in (angles.cos(), angles.sin()))
    return x * cos + quarter_turn(x, "HalfSplit") * sin


def block(x, weights, q, cache):
    """[b, s, h]. `cache` is a list of the keys and of the values, [b, nkv, p, hd] each, or empty."""
    w = dict(zip(BLOCK, weights))
    _, h, nh, nkv, hd, _ = q["sizes"]
    b, s, _ = x.shape
    heads = lambda x, matrix, n: F.linear(x, matrix).view(b, s, n, hd).transpose(1, 2)
    start = cache[0].shape[2] if cache else 0
    n = F.rms_norm(x, (h,), w["input_norm"], q["eps"])
    keys, values = turned(heads(n, w["k"], nkv), q, start), heads(n, w["v"], nkv)
    if cache:
        keys, values = torch.cat([cache[0], keys], dim=2), torch.cat([cache[1], values], dim=2)
    cache[:] = [keys, values]
    mask = torch.ones(s, start + s, dtype=torch.bool).tril(start)
    queries = turned(heads(n, w["q"], nh), q, start)
    found = F.scaled_dot_product_attention(queries, keys, values, attn_mask=mask, enable_gqa=True)
    x = x + F.linear(found.transpose(1, 2).reshape(b, s, nh * hd), w["o"])
    n = F.rms_norm(x, (h,), w["post_norm"], q["eps"])
    return x + F.linear(F.silu(F.linear(n, w["gate"])) * F.linear(n, w["up"]), w["down"])


@call
def model_block(q):
    x, offset, cache = floats(q["x"], (*q["tokens"], q["sizes"][1])), q.get("offset", 0), []
    parts = x.split([offset, x.shape[1] - offset], dim=1) if offset else [x]
    weights = split(q["weights"], block_shapes(q))
    return torch.cat([block(part, weights, q, cache) for part in parts], dim=1)


@call
def model_block_backward(q):
    x = floats(q["x"], (*q["tokens"], q["sizes"][1]), grad=True)
    weights = split(q["weights"], block_shapes(q), grad=True)
    block(x, weights, q, []).backward(floats(q["dy"], x.shape))
    return torch.cat([tensor.grad.flatten() for tensor in [x, *weights]])


def model_weights(q, grad=False):
    v, h, *_ = q["sizes"]
    head = [] if q["tied"] else [(v, h)]
    return split(q["weights"], [(v, h), *block_shapes(q) * q["blocks"], (h,), *head], grad)


def model_ids(q):
    v, (b, s) = q["sizes"][0], q["tokens"]
    for place, id in enumerate(q["ids"]):
        if id >= v:
            raise IndexError(f"id {id} at [{place // s}, {place % s}] is not below {v}")
    return torch.tensor(q["ids"], dtype=torch.int64).view(b, s)


def model_logits(ids, weights, q, caches):
    x = F.embedding(ids, weights[0])
    for nth, cache in enumerate(caches):
        x = block(x, weights[1 + 9 * nth :][:9], q, cache)
    norm = weights[1 + 9 * q["blocks"]]
    head = weights[0] if q["tied"] else weights[-1]
    return F.linear(F.rms_norm(x, norm.shape, norm, q["eps"]), head)


@call
def model_forward(q):
    return model_logits(model_ids(q), model_weights(q), q, [[] for _ in range(q["blocks"])])


@call
def model_backward(q):
    ids, weights = model_ids(q), model_weights(q, grad=True)
    logits = model_logits(ids, weights, q, [[] for _ in range(q["blocks"])])
    logits.backward(floats(q["dy"], logits.shape))
    return torch.cat([weight.grad.flatten() for weight in weights])


@call
def model_decode(q):
    ids, weights, caches = model_ids(q), model_weights(q), [[] for _ in range(q["blocks"])]
    if sum(q["pieces"]) > q["positions"]:
        raise ValueError("the caches are full")
    pieces = ids.split(q["pieces"], dim=1)
    return torch.cat([model_logits(piece, weights, q, caches) for piece in pieces], dim=1)


@call
def model_sample(q):
    logits, temperature, top_p = floats(q["logits"], -1), float(q["temperature"]), float(q["top_p"])
    if torch.isnan(logits).any() or torch.isposinf(logits).any() or torch.isneginf(logits).all():
        raise ValueError("these are no logits")
    if not (math.isfinite(temperature) and temperature >= 0) or q["top_k"] == 0 or not 0 < top_p <= 1:
        raise ValueError("bad temperature, top_k or top_p")
    logits, ids = logits.double().sort(descending=True, stable=True)
    if temperature == 0:
        return ids[:1]
    logits = logits[: q["top_k"]]
    p = F.softmax(logits / temperature, dim=0)
    if top_p < 1:
        p = p[p.cumsum(0) - p < top_p]
    place = torch.searchsorted(p.cumsum(0), torch.tensor([q["unit"]], dtype=p.dtype) * p.sum(), right=True)
    return ids[place.clamp(max=len(p) - 1)]


@call
def model_train(q):
    ids, weights = model_ids(q), model_weights(q, grad=True)
    if ids.shape[1] < 2:
        raise ValueError("no token follows the only one of a text")  # PyTorch's mean of nothing is NaN
    logits = model_logits(ids, weights, q, [[] for _ in range(q["blocks"])])
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    torch.optim.SGD(weights, lr=q["rate"]).step()
    return torch.cat([loss.view(1), *[weight.flatten() for weight in weights]])


# Absolute positions: sine and cosine of float64 angles, and PyTorch's embedding for a learned table.


def sinusoids(h, base, positions):
    base = float(base)
    if h < 2 or h % 2 or not (math.isfinite(base) and base > 1):
        raise ValueError("these have no sinusoids")
    angles = torch.outer(positions.double(), base ** (-torch.arange(0, h, 2, dtype=torch.float64) / h))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2).float()


@call
def absolute_table(q):
    return sinusoids(q["hidden_size"], q["base"], torch.arange(q["start"], q["end"]))


@call
def absolute_shift(q):
    sin, cos = sinusoids(q["hidden_size"], q["base"], torch.tensor([q["steps"]])).view(-1, 2).unbind(-1)
    return torch.block_diag(*torch.stack((cos, sin, -sin, cos), dim=-1).view(-1, 2, 2))


def with_sinusoids(x, q):
    _, s, h = q["shape"]
    return x + sinusoids(h, q["base"], torch.arange(q["offset"], q["offset"] + s))


@call
def absolute_add_sinusoids(q):
    return with_sinusoids(floats(q["x"], q["shape"]), q)


@call
def absolute_sinusoids_backward(q):
    x = floats(q["x"], q["shape"], grad=True)
    with_sinusoids(x, q).backward(floats(q["dy"], q["shape"]))
    return x.grad


def with_learned(x, table, q):
    _, s, _ = q["shape"]
    if q["offset"] + s > 2**63:
        raise IndexError("index out of range in self")
    return x + F.embedding(torch.arange(q["offset"], q["offset"] + s), table)


@call
def absolute_add_learned(q):
    return with_learned(floats(q["x"], q["shape"]), floats(q["table"], (q["max_seq_len"], q["shape"][2])), q)


@call
def absolute_learned_backward(q):
    x = floats(q["x"], q["shape"], grad=True)
    table = floats(q["table"], (q["max_seq_len"], q["shape"][2]), grad=True)
    with_learned(x, table, q).backward(floats(q["dy"], q["shape"]))
    return torch.cat([x.grad.flatten(), table.grad.flatten()])


# Stretched RoPE: the functions of transformers, in float32 as its models call them. NTK with a fixed factor is not among them.
# The rotation is that of GPT-NeoX in transformers, which turns a part of a head; gradients by autograd.


def rope_parameters(q):
    rule = q["rule"]
    if rule == "Plain":
        return "default", {}
    ((name, settings),) = rule.items()
    settings = dict(settings)
    trained = settings.pop("max_seq_len", None)
    kind = {"Interpolated": "linear", "DynamicNtk": "dynamic", "LongRope": "longrope"}.get(name, name.lower())
    if kind in ("yarn", "llama3", "longrope"):
        settings["original_max_position_embeddings"] = trained
    return kind, settings


@call
def frequencies_rule(q):
    # Here and not above: it takes seconds, and only these questions need it.
    from transformers import LlamaConfig
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
    from transformers.utils import logging

    logging.set_verbosity_error()
    d, base, (kind, parameters) = q["rotary_dim"], float(q["base"]), rope_parameters(q)
    if kind in ("default", "ntk"):
        base *= parameters.get("factor", 1.0) ** (d / (d - 2))
        return torch.cat([1.0 / base ** (torch.arange(0, d, 2, dtype=torch.float32) / d), torch.ones(1)])
    trained = next(iter(q["rule"].values())).get("max_seq_len", 2048)
    config = LlamaConfig(
        hidden_size=q["head_dim"],
        num_attention_heads=1,
        head_dim=q["head_dim"],
        max_position_embeddings=trained,
        rope_parameters={
            "rope_type": kind,
            "rope_theta": base,
            "partial_rotary_factor": d / q["head_dim"],
            **parameters,
        },
    )
    inverse, scale = ROPE_INIT_FUNCTIONS[kind](config, seq_len=q["offset"] + q["seq_len"])
    return [*inverse.tolist(), scale]


def stretched(x, theta, q):
    from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb

    positions = torch.arange(q["offset"], q["offset"] + q["shape"][1], dtype=torch.float32)
    angles = torch.outer(positions, theta)
    angles = torch.cat([angles, angles], dim=-1)[None]
    cos, sin = angles.cos() * q["scale"], angles.sin() * q["scale"]
    return apply_rotary_pos_emb(x, x, cos, sin, unsqueeze_dim=2)[0]


@call
def frequencies_forward(q):
    return stretched(floats(q["x"], q["shape"]), floats(q["frequencies"], -1), q)


@call
def frequencies_backward(q):
    x, theta = floats(q["x"], q["shape"], grad=True), floats(q["frequencies"], -1, grad=True)
    stretched(x, theta, q).backward(floats(q["dy"], q["shape"]))
    return torch.cat([x.grad.flatten(), theta.grad])


# ScoreBiases: slopes and keys' biases as BLOOM has them, buckets and their table as T5 has them, KERPLE's two formulas with
# autograd, Transformer-XL's scores with XLNet's shift. transformers is imported where it is asked, since the other calls need none.


def causal_weights(scores):
    """[.., s, t], the softmax over what the last s of t positions see."""
    s, t = scores.shape[-2:]
    seen = torch.ones(s, t, dtype=torch.bool).tril(t - s)
    return scores.masked_fill(~seen, -torch.inf).softmax(-1)


@call
def biases_slopes(q):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    # What the second key gets is the slope once.
    return build_alibi_tensor(torch.ones(1, 2, dtype=torch.long), q["num_heads"], torch.float32)[:, 0, 1]


@call
def biases_alibi(q):
    from transformers.models.bloom.modeling_bloom import build_alibi_tensor

    s, t, nh, hd = q["shape"]
    queries, keys = floats(q["q"], (s, nh, hd)).transpose(0, 1), floats(q["k"], (t, nh, hd)).transpose(0, 1)
    alibi = build_alibi_tensor(torch.ones(1, t, dtype=torch.long), nh, torch.float32)  # [nh, 1, t]
    return causal_weights(alibi.baddbmm(queries, keys.transpose(1, 2), beta=1.0, alpha=1 / math.sqrt(hd)))


@call
def biases_bucket(q):
    from transformers.models.t5.modeling_t5 import T5Attention

    sizes = {name: q[name] for name in ("bidirectional", "num_buckets", "max_distance")}
    return T5Attention._relative_position_bucket(torch.tensor([q["relative"]]), **sizes)


def t5_attention(q):
    from transformers.models.t5.configuration_t5 import T5Config
    from transformers.models.t5.modeling_t5 import T5Attention

    config = T5Config(
        num_heads=q["num_heads"],
        d_model=8,
        relative_attention_num_buckets=q["num_buckets"],
        relative_attention_max_distance=q["max_distance"],
    )
    config.is_decoder = not q["bidirectional"]
    attention = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    table = floats(q["table"], (q["num_buckets"], q["num_heads"]))
    attention.relative_attention_bias.weight = torch.nn.Parameter(table)
    s, t = q["shape"]
    return attention.compute_bias(s, t, past_seen_tokens=t - s)[0], attention.relative_attention_bias.weight


@call
def biases_t5(q):
    return t5_attention(q)[0].detach()


@call
def biases_t5_backward(q):
    bias, table = t5_attention(q)
    bias.backward(floats(q["dy"], bias.shape))
    return table.grad


def kerple(q):
    # As the authors keep them: moved to their bounds, and differentiated there.
    r1, r2 = (floats(q[name], -1) for name in ("r1", "r2"))
    r1 = r1.clamp(min=0.01).requires_grad_()
    r2 = (r2.clamp(0.01, 2) if q["power"] else r2.clamp(min=0.01)).requires_grad_()
    distance = torch.arange(q["positions"], dtype=torch.float32)
    if q["power"]:
        return -r1[:, None] * distance ** r2[:, None], r1, r2
    return -r1[:, None] * torch.log(1 + r2[:, None] * distance), r1, r2


@call
def biases_kerple(q):
    return kerple(q)[0].detach()


@call
def biases_kerple_backward(q):
    bias, r1, r2 = kerple(q)
    bias.backward(floats(q["dy"], bias.shape))
    return torch.cat([r1.grad, r2.grad])


@call
def biases_transformer_xl(q):
    from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

    (b, s, nh, hd), t, h = q["shape"], q["keys"], q["hidden_size"]
    queries, keys = floats(q["q"], (b, s, nh, hd)), floats(q["k"], (b, t, nh, hd))
    u, v = floats(q["u"], (nh, hd)), floats(q["v"], (nh, hd))
    # XLNet's shift wants the distances t .. 1 - s in a row.
    distance = torch.arange(t, -s, -1.0)
    inverse = 1 / (float(q["base"]) ** (torch.arange(0, h, 2.0) / h))
    angles = torch.outer(distance, inverse)
    sinusoids = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)
    heads = F.linear(sinusoids, floats(q["weight"], (nh * hd, h))).view(-1, nh, hd)
    place = torch.einsum("bsnd,jnd->bnsj", queries + v, heads)
    place = XLNetRelativeAttention.rel_shift_bnij(place, klen=t)
    content = torch.einsum("bsnd,btnd->bnst", queries + u, keys)
    return causal_weights((content + place) / math.sqrt(hd))


# More rotations: tables in float64, rounded once, and the rotation as the Hugging Face models write it; elu, cumsum and
# autograd for linear attention.


def rotations_turned(x, angles, scale=None):
    """`x` [b, s, nh, hd], half-split, turned by `angles` [s, hd / 2], and multiplied by `scale` of the same shape."""
    scale = torch.ones_like(angles) if scale is None else scale
    cos, sin = ((table * scale).repeat(1, 2).float()[:, None] for table in (angles.cos(), angles.sin()))
    first, second = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-second, first], dim=-1) * sin


def rotations_theta(planes, base):
    return base ** (-torch.arange(planes, dtype=torch.float64) / planes)


@call
def rotations_xpos(q):
    _, s, _, hd = q["shape"]
    positions = torch.arange(q["offset"], q["offset"] + s, dtype=torch.float64)
    angles = torch.outer(positions, rotations_theta(hd // 2, q["base"]))
    zeta = (torch.arange(0, hd, 2, dtype=torch.float64) / hd + 0.4) / 1.4
    power = (positions[:, None] - q["center"]) / q["scale_base"]
    queries = rotations_turned(floats(q["q"], q["shape"]), angles, zeta**power)
    return torch.cat([queries, rotations_turned(floats(q["k"], q["shape"]), angles, zeta**-power)])


def rotations_axial_turned(x, q):
    planes, hd = torch.tensor(q["planes"]), q["shape"][3]
    theta = rotations_theta(hd // 2, q["base"])
    if q["sections"] == "Anew":
        theta = torch.cat([rotations_theta(p, q["base"]) for p in q["planes"]])
    coordinates = torch.tensor(q["coordinates"], dtype=torch.float64).view(-1, len(planes))
    return rotations_turned(x, coordinates.repeat_interleave(planes, dim=1) * theta)


@call
def rotations_axial(q):
    return rotations_axial_turned(floats(q["x"], q["shape"]), q)


@call
def rotations_axial_backward(q):
    x = floats(q["x"], q["shape"], grad=True)
    rotations_axial_turned(x, q).backward(floats(q["dy"], q["shape"]))
    return x.grad


def rotations_features(q, start, x):
    """Plain and turned, [b, s, nh, hd] each; row 0 is at position `start`."""
    features = F.elu(x) + 1
    if q["base"] is None:
        return features, features
    positions = torch.arange(start, start + x.shape[1], dtype=torch.float64)
    return features, rotations_turned(features, torch.outer(positions, rotations_theta(x.shape[3] // 2, q["base"])))


def rotations_attention(q, queries, keys, values):
    (queries, turned_q), (keys, turned_k) = (rotations_features(q, q["offset"], x) for x in (queries, keys))
    seen = torch.ones(q["shape"][1], q["shape"][1]).tril()
    weights = torch.einsum("bmnd,btnd->bnmt", turned_q, turned_k) * seen
    numerators = torch.einsum("bnmt,btnd->bmnd", weights, values)
    return numerators / (queries * keys.cumsum(1)).sum(-1, keepdim=True)


@call
def rotations_linear(q):
    return rotations_attention(q, *(floats(q[name], q["shape"]) for name in "qkv"))


@call
def rotations_linear_backward(q):
    leaves = [floats(q[name], q["shape"], grad=True) for name in "qkv"]
    rotations_attention(q, *leaves).backward(floats(q["dy"], q["shape"]))
    return torch.cat([leaf.grad for leaf in leaves])


@call
def rotations_running(q):
    sums, total, start, out = 0, 0, q["offset"], []
    pieces = zip(*(floats(q[name], q["shape"]).split(q["pieces"], dim=1) for name in "qkv"))
    for queries, keys, values in pieces:
        (queries, turned_q), (keys, turned_k) = (rotations_features(q, start, x) for x in (queries, keys))
        sums = sums + (turned_k[..., None] * values[..., None, :]).cumsum(1)  # [b, s, nh, hd, hd]
        total = total + keys.cumsum(1)
        numerators = torch.einsum("bsnd,bsnde->bsne", turned_q, sums)
        out.append(numerators / (queries * total).sum(-1, keepdim=True))
        sums, total, start = sums[:, -1:], total[:, -1:], start + queries.shape[1]
    return torch.cat(out, dim=1)


# Collectives: PyTorch's cross_entropy of the whole vocabulary, and sums of halves.


@call
def collectives_entropy(q):
    logits = floats(q["logits"], q["shape"], grad=True)
    loss = F.cross_entropy(logits, torch.tensor(q["targets"], dtype=torch.int64))
    loss.backward()
    return torch.cat([loss.detach().view(1), logits.grad.flatten()])


@call
def collectives_tree_sum(q):
    blocks = floats(q["values"], q["shape"])
    while blocks.shape[0] > 1:
        blocks = blocks[0::2] + blocks[1::2]
    return blocks[0]


def plain(value):
    """A number that JSON has, or its name."""
    return value if math.isfinite(value) else str(value)


def reply(line):
    question = json.loads(line)
    try:
        values = CALLS[question["call"].replace(".", "_")](question)
    except (ValueError, IndexError, RuntimeError, ArithmeticError) as error:
        return {"refused": str(error).splitlines()[0]}
    if isinstance(values, torch.Tensor):
        values = values.detach().flatten().tolist()
    return {"ok": [plain(value) for value in values]}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for line in sys.stdin:
        print(json.dumps(reply(line)), flush=True)


if __name__ == "__main__":
    main()
