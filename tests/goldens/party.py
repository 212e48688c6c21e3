"""PyTorch as a party to the contract: answers one JSON request a line.

    python tests/goldens/party.py < requests > replies

A request is {"call": "norm.forward", ...sizes and flat values...}. A reply is {"ok": values} or
{"refused": words}. The numbers come from PyTorch's own operations, written as a PyTorch user would
write them: torch.nn.functional.rms_norm, layer_norm and embedding, torch.nn.init, autograd for every gradient,
and RoPE with float32 angles as in the Hugging Face models.

`tests/suite/parties/pytorch/` asks, and keeps the replies in `party.json`.
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
