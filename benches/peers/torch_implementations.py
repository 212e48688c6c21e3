"""The implementations `torch-eager` and `torch-compiled`. `src/lib.rs` says how they are asked; they answer alike."""

import math
import sys
import time

import torch
import torch.nn.functional as F

import torch_model

SEQ, HIDDEN, HEADS, HEAD, GROUP, VOCAB = 2048, 4096, 32, 128, 128, 32_000
OWNED = range(8000, 16_000)  # the rows of rank 1 of 4
EPS = 1e-5
WARM_UP = 3
SETTLE = 0.05


def places(first, last):
    return torch.arange(first, last, dtype=torch.int64)


def values(first, *shape):
    """Values at places counted from `first`, without a pattern that matters."""
    i = places(first, first + math.prod(shape))
    return (((i * 2_654_435_761) % 1000).float() / 500.0 - 1.0).view(shape)


def norm_groups(x, gamma):
    groups = x.view(1, SEQ, HIDDEN // GROUP, GROUP)
    return F.rms_norm(groups, (GROUP,), eps=EPS).view_as(x) * gamma


def norm_whole(x, gamma):
    """What `torch.nn.RMSNorm` calls."""
    return F.rms_norm(x, (HIDDEN,), gamma, EPS)


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def rotate(x, cos, sin):
    return x * cos + rotate_half(x) * sin


def shard_lookup(table, ids):
    """The lines of Megatron-LM's VocabParallelEmbedding."""
    mask = (ids < OWNED.start) | (ids >= OWNED.stop)
    rows = ids.clone() - OWNED.start
    rows[mask] = 0
    y = F.embedding(rows, table)
    y[mask, :] = 0.0
    return y


def make(name, compiled):
    """A call, with inputs that are made here."""
    if name.startswith("model-"):
        torch._dynamo.reset()
        return torch_model.make(name.removeprefix("model-"), compiled)
    operation, _, mode = name.partition(" ")
    ids = (places(0, SEQ) * 2_654_435_761 % VOCAB).view(1, SEQ)
    if operation.startswith("encoding-"):
        import torch_encodings  # here, for it needs transformers

        made = torch_encodings.make(operation.removeprefix("encoding-"), values)
        if made is None:
            return None
        (run, trained), fixed = made, []
    elif operation.startswith("norm"):
        run = norm_groups if operation == "norm-128" else norm_whole
        trained, fixed = [values(0, 1, SEQ, HIDDEN), torch.ones(HIDDEN)], []
    elif operation == "rope":
        powers = torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD
        angles = torch.arange(SEQ, dtype=torch.float64)[:, None] * 10_000.0**-powers
        angles = torch.cat((angles, angles), dim=-1)[:, None, :]
        run, trained = rotate, [values(0, 1, SEQ, HEADS, HEAD)]
        fixed = [angles.cos().float(), angles.sin().float()]
    elif operation == "embedding":
        run, trained, fixed = lambda table, ids: F.embedding(ids, table), [values(0, VOCAB, HIDDEN)], [ids]
    elif operation == "shard":
        run, trained = shard_lookup, [values(OWNED.start * HIDDEN, len(OWNED), HIDDEN)]
        fixed = [ids]
    else:
        return None
    if compiled:
        torch._dynamo.reset()
        run = torch.compile(run)

    def forward():
        with torch.no_grad():
            return [run(*trained, *fixed)]

    def both():
        return torch.autograd.grad(run(*trained, *fixed).sum(), trained)

    if mode == "forward":
        return forward
    for tensor in trained:
        tensor.requires_grad_()
    return both


def synchronize():
    """On a GPU, a call returns before its work is done."""
    if torch.get_default_device().type == "cuda":
        torch.cuda.synchronize()


def seconds(call):
    """One call, after some that are not timed. Dropping its results is part of it."""
    start = time.perf_counter()
    while time.perf_counter() - start < SETTLE:
        call()
        synchronize()
    start = time.perf_counter()
    results = call()
    synchronize()
    del results
    return time.perf_counter() - start


def fingerprint(tensor):
    """Two sums that tell whether two results are the same."""
    sums = [0.0, 0.0]
    for nth, part in enumerate(tensor.flatten().split(1 << 22)):
        i = places(nth << 22, (nth << 22) + len(part))
        weight = (i * 40_503 % 1009).double() / 1009.0
        sums[0] += (part.double() * weight).sum().item()
        sums[1] += (part.double() ** 2 * weight).sum().item()
    return sums


def serve(make, numbers):
    """Answers until there is nothing more to read; a check by the numbers of a call's results."""
    made, call = None, None
    for line in sys.stdin:
        line = line.strip()
        name = line.removeprefix("check ")
        if name != made:
            call = None  # frees its memory first
            made, call = name, make(name)
            for _ in range(WARM_UP if call else 0):
                call()
        if call is None:
            answer = "none"
        elif line == name:
            answer = seconds(call)
        else:
            answer = " ".join(map(str, numbers(call())))
        print(answer, flush=True)


def main():
    compiled, threads, device = sys.argv[1] == "torch-compiled", int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(threads)
    torch.set_default_device(device)
    fingerprints = lambda results: [number for result in results for number in fingerprint(result.detach())]
    serve(lambda name: make(name, compiled), fingerprints)


if __name__ == "__main__":
    main()
