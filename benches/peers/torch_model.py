"""The model of `src/bin/quadrivium/model.rs` in PyTorch, as its users write it: modules, F.rms_norm, fused attention."""

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

DECODED = 32
# vocab_size, hidden_size, num_heads, num_kv_heads, head_dim, ffn_hidden_size, num_layers
SIZES = {
    "64": (512, 64, 4, 2, 16, 192, 2),
    "128": (512, 128, 4, 2, 32, 384, 4),  # as in class
    "256": (1000, 256, 8, 2, 32, 704, 2),
    "384": (4000, 384, 6, 2, 64, 1024, 12),  # many blocks
    "512": (4000, 512, 8, 4, 64, 1408, 2),
    "768": (8000, 768, 12, 4, 64, 2048, 2),
}
EPS = 1e-6
STD = 0.02
SEED = 42


def matrix(inputs, outputs, seed):
    """A projection with the weights that quadrivium draws from `seed`."""
    linear = torch.nn.Linear(inputs, outputs, bias=False)
    with torch.no_grad():
        linear.weight.normal_(0.0, STD, generator=torch.Generator().manual_seed(seed))
    return linear


def rotate(x, cos, sin):
    """`x` `[b, n, s, d]`; `cos` and `sin` `[s, d]`."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-b, a), dim=-1) * sin


class Block(torch.nn.Module):
    def __init__(self, sizes, seed):
        super().__init__()
        _, h, nh, nkv, hd, f, _ = sizes
        self.nh, self.nkv, self.hd = nh, nkv, hd
        self.norm_1, self.norm_2 = torch.nn.RMSNorm(h, eps=EPS), torch.nn.RMSNorm(h, eps=EPS)
        self.q, self.k = matrix(h, nh * hd, seed), matrix(h, nkv * hd, seed + 1)
        self.v, self.o = matrix(h, nkv * hd, seed + 2), matrix(nh * hd, h, seed + 3)
        self.gate, self.up, self.down = matrix(h, f, seed + 4), matrix(h, f, seed + 5), matrix(f, h, seed + 6)

    def attention(self, x, cos, sin, cache, first):
        b, s, _ = x.shape
        q = self.q(x).view(b, s, self.nh, self.hd).transpose(1, 2)
        k = self.k(x).view(b, s, self.nkv, self.hd).transpose(1, 2)
        v = self.v(x).view(b, s, self.nkv, self.hd).transpose(1, 2)
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        if cache is not None:  # memory for all positions, made once
            cache[0][:, :, first : first + s], cache[1][:, :, first : first + s] = k, v
            k, v = cache[0][:, :, : first + s], cache[1][:, :, : first + s]
        y = F.scaled_dot_product_attention(q, k, v, is_causal=s > 1, enable_gqa=True)
        return self.o(y.transpose(1, 2).reshape(b, s, -1))

    def forward(self, x, cos, sin, cache=None, first=0):
        x = x + self.attention(self.norm_1(x), cos, sin, cache, first)
        n = self.norm_2(x)
        return x + self.down(F.silu(self.gate(n)) * self.up(n))


class Model(torch.nn.Module):
    def __init__(self, sizes, recomputed=False):
        super().__init__()
        self.recomputed = recomputed
        v, h, _, _, hd, _, layers = sizes
        self.table = torch.nn.Embedding(v, h)
        with torch.no_grad():
            self.table.weight.normal_(0.0, STD, generator=torch.Generator().manual_seed(SEED))
        self.blocks = torch.nn.ModuleList(Block(sizes, SEED + 1 + 7 * nth) for nth in range(layers))
        self.norm, self.head = torch.nn.RMSNorm(h, eps=EPS), matrix(h, v, SEED + 1 + 7 * layers)
        powers = torch.arange(0, hd, 2, dtype=torch.float64) / hd
        angles = torch.arange(2048, dtype=torch.float64)[:, None] * 10_000.0**-powers
        angles = torch.cat((angles, angles), dim=-1)
        self.register_buffer("cos", angles.cos().float())
        self.register_buffer("sin", angles.sin().float())

    def forward(self, ids, caches=None, first=0):
        s = ids.shape[1]
        cos, sin = self.cos[first : first + s], self.sin[first : first + s]
        x = self.table(ids)
        for nth, block in enumerate(self.blocks):
            if self.recomputed:
                x = checkpoint(block, x, cos, sin, use_reentrant=False)
            else:
                x = block(x, cos, sin, caches and caches[nth], first)
        return self.head(self.norm(x))


def empty_caches(sizes, b, capacity):
    _, _, _, nkv, hd, _, layers = sizes
    return [[torch.empty(b, nkv, capacity, hd) for _ in "kv"] for _ in range(layers)]


def make(name, compiled):
    """A call of `H WORK S B`. Tokens are not decoded by compiled code: it would be compiled again as the cache grows."""
    h, work, s, b = name.split()
    if compiled and work == "decode":
        return None
    sizes, s, b = SIZES[h], int(s), int(b)
    with torch.device("cpu"):  # where the weights are drawn
        model = Model(sizes, work == "recomputed")
    model.to(torch.get_default_device())
    run = torch.compile(model) if compiled else model
    text = (torch.arange(b * (s + 1)) * 2_654_435_761 % 1_000_003 % sizes[0]).view(b, s + 1)
    ids, following = text[:, :-1].contiguous(), text[:, 1:].contiguous()
    if work in ("step", "recomputed"):
        matrices = [weight for weight in model.parameters() if weight.dim() > 1]
        gains = [weight for weight in model.parameters() if weight.dim() == 1]
        groups = [{"params": matrices, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}]
        adam = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.95), eps=1e-8)

        def step():
            loss = F.cross_entropy(run(ids).flatten(0, 1), following.flatten())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            adam.step()
            adam.zero_grad()
            return [torch.stack([torch.zeros(()), loss.detach()])]

        return step
    if work == "prefill":

        @torch.inference_mode()
        def prefill():
            return [run(ids, empty_caches(sizes, b, s))]

        return prefill
    caches = empty_caches(sizes, b, s)
    with torch.inference_mode():
        model(ids[:, : s - DECODED], caches)

    @torch.inference_mode()
    def decode():
        for t in range(s - DECODED, s):
            logits = run(ids[:, t : t + 1], caches, t)
        return [logits]

    return decode
