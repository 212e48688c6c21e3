"""The encodings of `src/bin/quadrivium/encodings.rs` in PyTorch, with the functions of transformers where it has them. Tables that do not
depend on the input and are kept by transformers' modules are made once."""

import math

import torch
import torch.nn.functional as F
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers import LlamaConfig

SEQ, HEADS, HEAD, HIDDEN = 2048, 32, 128, 4096
S, NH, HD = 1024, 8, 64
TRAINED, FACTOR = 512, 4.0


def plain(dim):
    return 1e4 ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)


def tables(angles, scale=1.0):
    """`cos` and `sin`, `[1, s, d]`, of angles `[s, d / 2]`."""
    angles = torch.cat((angles, angles), dim=-1)[None]
    return (angles.cos() * scale).float(), (angles.sin() * scale).float()


def rotate(x, cos, sin):
    """Queries `[b, s, nh, hd]`, as transformers turns them."""
    return apply_rotary_pos_emb(x, x[:, :, :1], cos, sin, unsqueeze_dim=2)[0]


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((-b, a), dim=-1)


def attend(q, k, v, bias):
    """`[b, s, nh, hd]`; the bias `[nh, s, s]` has minus infinity at what is hidden."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias[None]).transpose(1, 2)


def make(name, values):
    """What is computed, and of what; `values(first, *shape)` gives inputs."""
    positions = torch.arange(SEQ, dtype=torch.float64)
    heads, tokens = (values(0, 1, SEQ, HEADS, HEAD),), (values(0, 1, SEQ, HIDDEN),)
    qkv = [values(nth * S * NH * HD, 1, S, NH, HD) for nth in range(3)]
    hidden = torch.ones(S, S, dtype=torch.bool).triu(1)
    distances = torch.arange(S)[:, None] - torch.arange(S)[None]
    if name == "yarn":
        rope = {"rope_type": "yarn", "rope_theta": 1e4, "factor": FACTOR, "original_max_position_embeddings": TRAINED}
        config = LlamaConfig(hidden_size=HIDDEN, num_attention_heads=HEADS, head_dim=HEAD, max_position_embeddings=SEQ, rope_parameters=rope)
        frequencies, scale = ROPE_INIT_FUNCTIONS["yarn"](config, positions.device)
        cos, sin = tables(positions[:, None] * frequencies.double(), scale)
        return lambda x: rotate(x, cos, sin), heads
    if name == "partial":
        cos, sin = tables(positions[:, None] * plain(HEAD // 4))

        def partial(x):  # as GPT-NeoX and Phi have it
            turned, rest = x[..., : HEAD // 4], x[..., HEAD // 4 :]
            return torch.cat((rotate(turned, cos, sin), rest), dim=-1)

        return partial, heads
    if name == "xpos":
        zeta = (torch.arange(0, HEAD, 2, dtype=torch.float64) / HEAD + 0.4) / 1.4
        scales = zeta[None] ** (positions[:, None] / 512)
        scales = torch.cat((scales, scales), dim=-1)[None, :, None].float()
        cos, sin = tables(positions[:, None] * plain(HEAD))
        cos, sin = cos[:, :, None] * scales, sin[:, :, None] * scales
        return lambda x: x * cos + rotate_half(x) * sin, heads
    if name == "axial":
        rows, columns = positions // 64, positions % 64
        cos, sin = tables(torch.cat((rows[:, None] * plain(HEAD // 2), columns[:, None] * plain(HEAD // 2)), dim=-1))
        return lambda x: rotate(x, cos, sin), heads
    if name == "learnable":
        at = positions.float()[:, None]

        def learnable(x, theta):
            angles = at * theta
            angles = torch.cat((angles, angles), dim=-1)[None]
            return rotate(x, angles.cos(), angles.sin())

        return learnable, (*heads, plain(HEAD).float())
    if name == "sinusoidal":
        angles = positions[:, None] * plain(HIDDEN)
        table = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1).float()[None]
        return lambda x: x + table, tokens
    if name == "learned":
        ids = torch.arange(SEQ)[None]
        return lambda x, table: x + F.embedding(ids, table), (*tokens, values(0, SEQ, HIDDEN))
    if name == "alibi":
        by_key = build_alibi_tensor(torch.ones(1, S), NH, torch.float32)  # [nh, 1, s]: minus a constant of each row

        def alibi(q, k, v):
            return attend(q, k, v, by_key.expand(NH, S, S).masked_fill(hidden, -math.inf))

        return alibi, qkv
    if name == "t5":

        def t5(q, k, v, weight):
            buckets = T5Attention._relative_position_bucket(-distances, bidirectional=False, num_buckets=32, max_distance=128)
            return attend(q, k, v, F.embedding(buckets, weight).permute(2, 0, 1).masked_fill(hidden, -math.inf))

        return t5, (*qkv, values(7, 32, NH))
    if name == "kerple":
        far = distances.clamp(min=0).float()

        def kerple(q, k, v, r1, r2):
            bias = -r1[:, None, None] * torch.log1p(r2[:, None, None] * far)
            return attend(q, k, v, bias.masked_fill(hidden, -math.inf))

        return kerple, (*qkv, *(torch.full((NH,), 0.1) for _ in range(2)))
    if name == "linear":
        cos, sin = tables(positions[:S, None] * plain(HD))

        def linear(q, k, v):
            q, k = F.elu(q) + 1, F.elu(k) + 1
            turned_q, turned_k = rotate(q, cos, sin), rotate(k, cos, sin)
            q, k, v, turned_q, turned_k = (x.transpose(1, 2) for x in (q, k, v, turned_q, turned_k))
            weights = (turned_q @ turned_k.transpose(2, 3)).masked_fill(hidden, 0.0)
            sums = k.cumsum(dim=2)
            return (weights @ v / (q * sums).sum(dim=-1, keepdim=True)).transpose(1, 2)

        return linear, qkv
    return None
