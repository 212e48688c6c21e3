"""The components as a PyTorch user writes them. The book shows them beside ours.

`generate.py` computes its numbers with these, and so do the modules of the encodings. What stands between two marks is on a
page of the book.

Letters: b batch, s tokens of this call, t tokens so far, h hidden size, nh query heads, nkv key heads, hd head size,
v vocabulary size.
"""

import math

import torch
import torch.nn.functional as F
from torch import nn


# ANCHOR: norm
class GroupRMSNorm(nn.Module):
    """nn.RMSNorm for each group of `group_size` neighbours."""

    def __init__(self, hidden_size, group_size, eps=1e-5):
        super().__init__()
        self.group_size, self.eps = group_size, eps
        self.weight = nn.Parameter(torch.ones(hidden_size))

    def forward(self, x):
        wide = torch.promote_types(x.dtype, torch.float32)  # float32 for half precision
        groups = x.to(wide).unflatten(-1, (-1, self.group_size))
        normed = groups * torch.rsqrt(groups.pow(2).mean(-1, keepdim=True) + self.eps)
        return (normed.flatten(-2) * self.weight.to(wide)).to(x.dtype)


# ANCHOR_END: norm


# ANCHOR: layernorm
class LayerNorm(nn.Module):
    """What nn.LayerNorm(hidden_size) is."""

    def __init__(self, hidden_size, eps=1e-5):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.bias = nn.Parameter(torch.zeros(hidden_size))

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, self.eps)


# ANCHOR_END: layernorm


# ANCHOR: embedding
class VocabEmbedding(nn.Embedding):
    """An nn.Embedding whose table is drawn from a seed."""

    def __init__(self, vocab_size, embedding_dim, mean=0.0, std=1.0, seed=42, dtype=None):
        super().__init__(vocab_size, embedding_dim, dtype=dtype)
        torch.manual_seed(seed)
        nn.init.normal_(self.weight, mean, std)


# ANCHOR_END: embedding


# ANCHOR: parallel
class ParallelVocabEmbedding(VocabEmbedding):
    """One rank's rows of a table that is cut over `world_size` ranks."""

    def __init__(self, vocab_size, embedding_dim, rank, world_size, mean=0.0, std=1.0, seed=42):
        rows = vocab_size // world_size
        super().__init__(rows, embedding_dim, mean, std, seed + rank)
        self.first = rank * rows

    def forward(self, ids):
        local = ids - self.first
        foreign = (local < 0) | (local >= self.num_embeddings)
        y = super().forward(local.masked_fill(foreign, 0))
        return y.masked_fill(foreign.unsqueeze(-1), 0.0)  # then all-reduce


# ANCHOR_END: parallel


# ANCHOR: rope
def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def apply_rotary(x, cos, sin):
    """x [b, s, nh, hd]; cos and sin [s, hd], the same for every head."""
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)
    return x * cos + rotate_half(x) * sin


class RotaryEmbedding(nn.Module):
    """Half-split RoPE whose base is raised for texts `ratio` times as long."""

    def __init__(self, head_dim, base=10000.0, ratio=1):
        super().__init__()
        base = base * ratio ** (head_dim / (head_dim - 2))
        inv_freq = 1.0 / (base ** (torch.arange(0, head_dim, 2).float() / head_dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, x, offset=0):
        positions = torch.arange(offset, offset + x.shape[1]).float()
        angles = torch.outer(positions, self.inv_freq)
        angles = torch.cat((angles, angles), dim=-1)
        return apply_rotary(x, angles.cos(), angles.sin())


# ANCHOR_END: rope


# ANCHOR: attention
def attention(q, k, v):
    """q [b, s, nh, hd]; k and v [b, t, nkv, hd]; the queries are the last s of t positions."""
    (s, nh, hd), (t, nkv, _) = q.shape[1:], k.shape[1:]
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    k, v = (x.repeat_interleave(nh // nkv, dim=1) for x in (k, v))
    scores = q @ k.transpose(-2, -1) / math.sqrt(hd)
    seen = torch.ones(s, t, dtype=torch.bool).tril(diagonal=t - s)
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    return (weights @ v).transpose(1, 2)


def attention_by_pytorch(q, k, v):
    """The same in one call."""
    seen = torch.ones(q.shape[1], k.shape[1], dtype=torch.bool).tril(k.shape[1] - q.shape[1])
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen, enable_gqa=True)
    return y.transpose(1, 2)


# ANCHOR_END: attention


# ANCHOR: feedforward
class SwiGLU(nn.Module):
    def __init__(self, hidden_size, ffn_hidden_size):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, ffn_hidden_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, ffn_hidden_size, bias=False)
        self.down_proj = nn.Linear(ffn_hidden_size, hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


# ANCHOR_END: feedforward


# ANCHOR: loss
def cross_entropy(logits, targets):
    """logits [b, s, v], targets [b, s]; a target of -100 is not asked about."""
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def next_token_loss(logits, ids):
    """Each token is asked for the one that follows it."""
    return cross_entropy(logits[:, :-1], ids[:, 1:])


# ANCHOR_END: loss


# ANCHOR: model
def rotary_tables(length, head_dim, base):
    """cos and sin, [s, hd], from float64 and rounded once."""
    half = head_dim // 2
    theta = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = torch.outer(torch.arange(length, dtype=torch.float64), theta).repeat(1, 2)
    return angles.cos().float(), angles.sin().float()


class SelfAttention(nn.Module):
    def __init__(self, h, nh, nkv, hd):
        super().__init__()
        self.head_dim = hd
        self.q_proj = nn.Linear(h, nh * hd, bias=False)
        self.k_proj = nn.Linear(h, nkv * hd, bias=False)
        self.v_proj = nn.Linear(h, nkv * hd, bias=False)
        self.o_proj = nn.Linear(nh * hd, h, bias=False)

    def heads(self, x):
        return x.unflatten(-1, (-1, self.head_dim))  # [b, s, n, hd]

    def forward(self, x, tables):
        k = apply_rotary(self.heads(self.k_proj(x)), *tables)
        v = self.heads(self.v_proj(x))
        q = apply_rotary(self.heads(self.q_proj(x)), *tables)
        return self.o_proj(attention_by_pytorch(q, k, v).flatten(-2))


class Block(nn.Module):
    def __init__(self, h, nh, nkv, hd, f, eps):
        super().__init__()
        self.input_layernorm = nn.RMSNorm(h, eps)
        self.self_attn = SelfAttention(h, nh, nkv, hd)
        self.post_attention_layernorm = nn.RMSNorm(h, eps)
        self.mlp = SwiGLU(h, f)

    def forward(self, x, tables):
        x = x + self.self_attn(self.input_layernorm(x), tables)
        return x + self.mlp(self.post_attention_layernorm(x))


class Llama(nn.Module):
    def __init__(self, v, h, nh, nkv, hd, f, blocks, eps=1e-6, base=10000.0, tied=False):
        super().__init__()
        self.head_dim, self.base = hd, base
        self.embed_tokens = nn.Embedding(v, h)
        self.layers = nn.ModuleList(Block(h, nh, nkv, hd, f, eps) for _ in range(blocks))
        self.norm = nn.RMSNorm(h, eps)
        self.lm_head = nn.Linear(h, v, bias=False)
        if tied:
            self.lm_head.weight = self.embed_tokens.weight

    def forward(self, ids):
        x = self.embed_tokens(ids)
        tables = [table.to(x.dtype) for table in rotary_tables(ids.shape[1], self.head_dim, self.base)]
        for layer in self.layers:
            x = layer(x, tables)
        return self.lm_head(self.norm(x))


# ANCHOR_END: model


# ANCHOR: absolute
def sinusoids(positions, hidden_size, base=10000.0):
    """[s, h]: a sine and a cosine side by side for each frequency."""
    theta = base ** (-torch.arange(0, hidden_size, 2, dtype=torch.float64) / hidden_size)
    angles = torch.outer(positions, theta)
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


# ANCHOR_END: absolute


# ANCHOR: biases
def kerple_bias(r1, r2, length, form="log"):
    """[nh, t]: what a key at each distance gets, for the two numbers of each head."""
    distance = torch.arange(length, dtype=r1.dtype)
    r1, r2 = r1[:, None], r2[:, None]
    return -r1 * torch.log(1 + r2 * distance) if form == "log" else -r1 * distance**r2


def by_distance(bias, s):
    """The bias of each distance, [nh, t], at the places of the last s queries, [nh, s, t]."""
    t = bias.shape[1]
    return bias[:, (torch.arange(t - s, t)[:, None] - torch.arange(t)).clamp_min(0)]


def biased_attention(q, k, v, *biases):
    """q [b, s, nh, hd]; k and v [b, t, nkv, hd]; each bias [nh, s, t] or [b, nh, s, t]."""
    (s, nh, hd), (t, nkv, _) = q.shape[1:], k.shape[1:]
    k, v = (x.repeat_interleave(nh // nkv, dim=2) for x in (k, v))
    scores = torch.einsum("bsnd,btnd->bnst", q, k) / math.sqrt(hd)
    for bias in biases:
        scores = scores + bias
    seen = torch.ones(s, t, dtype=torch.bool).tril(diagonal=t - s)
    return torch.einsum("bnst,btnd->bsnd", scores.masked_fill(~seen, -torch.inf).softmax(-1), v)


# ANCHOR_END: biases


# ANCHOR: frequencies
def turn(x, angles, scale=None, adjacent=False):
    """Each plane of x [b, s, nh, hd] as a complex number, times e^(i angle); angles and scale [s, hd/2].

    The two elements of a plane are half a head apart, or side by side.
    """
    pairs = x.unflatten(-1, (-1, 2)) if adjacent else x.unflatten(-1, (2, -1)).transpose(-1, -2)
    scale = torch.ones_like(angles) if scale is None else scale
    turned = torch.view_as_complex(pairs.contiguous()) * torch.polar(scale, angles).unsqueeze(1)
    turned = torch.view_as_real(turned)
    return turned.flatten(-2) if adjacent else turned.transpose(-1, -2).flatten(-2)


class LearnableRotary(nn.Module):
    """RoPE whose frequencies are trained."""

    def __init__(self, frequencies):
        super().__init__()
        self.frequencies = nn.Parameter(frequencies)

    def forward(self, x, offset=0):
        positions = torch.arange(offset, offset + x.shape[1], dtype=x.dtype)
        return turn(x, torch.outer(positions, self.frequencies))


# ANCHOR_END: frequencies


# ANCHOR: rotations
def linear_attention(q, k, v, angles):
    """q, k and v [b, s, nh, hd], angles [s, hd/2]: only the numerator turns."""
    q, k = (F.elu(x) + 1 for x in (q, k))
    seen = torch.ones(q.shape[1], q.shape[1], dtype=q.dtype).tril()
    above = torch.einsum("bmnd,btnd->bnmt", turn(q, angles), turn(k, angles)) * seen
    below = torch.einsum("bmnd,btnd->bnmt", q, k) * seen
    return torch.einsum("bnmt,btnd->bmnd", above, v) / below.sum(-1).transpose(1, 2)[..., None]


# ANCHOR_END: rotations
