"""The cases of biases.safetensors: what is added to scores, and attention with it."""

from float64 import F64, both, differentiate, drawn, in_float64, theta
from generate import randn
from layers import biased_attention, by_distance, kerple_bias

import torch
from transformers import T5Config
from transformers.models.bloom import modeling_bloom as bloom
from transformers.models.mpt.modeling_mpt import build_mpt_alibi_tensor
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.xlnet.modeling_xlnet import XLNetRelativeAttention

# ---------------------------------------------------------------- biases


def make_buckets(case):
    sizes = dict(bidirectional=case["bidirectional"], num_buckets=case["buckets"], max_distance=case["longest"])

    def run():
        # memory minus query: minus a distance
        return T5Attention._relative_position_bucket(torch.arange(-300, 301), **sizes)

    with in_float64():
        buckets64 = run()
    # In whole numbers: past bucket e there are n - 1 more, and k of them where (d / e)^n >= (longest / e)^k.
    n = case["buckets"] // 2 if case["bidirectional"] else case["buckets"]
    e, n = n // 2, n - n // 2
    for distance, bucket in zip(range(300, -1, -1), run().tolist()):
        past = [k for k in range(1, n) if distance**n * e**k >= case["longest"] ** k * e**n] if distance >= e else []
        assert bucket == (e + len(past) if distance >= e else distance), distance
    return dict(buckets=run(), buckets64=buckets64)


def make_t5(case):
    nh, s, t, p, buckets = (case[key] for key in ("nh", "s", "t", "p", "buckets"))
    weight, dy = drawn(case, [buckets, nh], [nh, s, t])
    if not case["bidirectional"]:
        dy = dy.tril(diagonal=p)  # what is ahead is not asked
    config = T5Config(num_heads=nh, d_model=8, relative_attention_num_buckets=buckets)
    config.is_decoder = not case["bidirectional"]
    attention = T5Attention(config, has_relative_attention_bias=True, layer_idx=0).double()
    attention.relative_attention_bias.weight = torch.nn.Parameter(weight)
    bias = attention.compute_bias(s, t, past_seen_tokens=p)[0]  # [nh, s, t]
    bias.backward(dy)
    dweight = attention.relative_attention_bias.weight.grad
    return dict(weight=weight, dy=dy, bias=bias.detach(), dweight=dweight)


def make_alibi(case):
    nh = case["nh"]
    bloom_slopes = both(lambda: bloom._get_alibi_slopes(nh, None))
    # The bias of a key at distance 1, which is the slope with a minus.
    mpt_slopes = both(lambda: -build_mpt_alibi_tensor(nh, 2)[:, 0, 0])
    # Bloom adds slope * n and MPT slope * (n - last): the softmax of a row takes no notice.
    key = bloom.build_alibi_tensor(torch.ones(1, 6, dtype=torch.long), nh, torch.float32).double()[:, 0]
    slopes = bloom_slopes[1][:, None, None]
    places = torch.arange(6, dtype=F64)
    by_distance = -slopes * (places[:, None] - places)
    seen = torch.ones(6, 6, dtype=torch.bool).tril()
    weights = [x.masked_fill(~seen, -torch.inf).softmax(-1) for x in (key[:, None, :].expand(nh, 6, 6), by_distance)]
    torch.testing.assert_close(*weights, rtol=1e-5, atol=1e-7)
    return dict(bloom=bloom_slopes[0], mpt=mpt_slopes[0], bloom64=bloom_slopes[1], mpt64=mpt_slopes[1])


def make_kerple(case):
    nh, t = case["nh"], case["t"]
    gen = torch.Generator().manual_seed(case["seed"])
    r1, r2 = (torch.rand(nh, generator=gen, dtype=F64) * 1.9 + 0.05 for _ in range(2))
    dy = randn(gen, nh, t, dtype=F64)

    def bias(r1, r2):
        return kerple_bias(r1, r2, t, case["form"])

    names = ("bias", "dr1", "dr2")
    return dict(r1=r1, r2=r2, dy=dy) | dict(zip(names, differentiate(bias, [r1, r2], dy)))


def make_transformer_xl(case):
    """(q + u).k + (q + v).(W_r R_j), straight from the paper, and its place j = m - n."""
    b, s, t, nh, hd, h = (case[key] for key in ("b", "s", "t", "nh", "hd", "h"))
    p = t - s
    q, k, u, v, w_r, dy = drawn(case, [b, s, nh, hd], [b, t, nh, hd], [nh, hd], [nh, hd], [nh, hd, h], [b, nh, s, t])
    dy = dy.tril(diagonal=p)  # what is ahead is not asked
    distance = torch.arange(p, p + s)[:, None] - torch.arange(t)  # [s, t]
    angles = distance.clamp_min(0).double()[..., None] * theta(h)
    sinusoids = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)  # [s, t, h]

    def scores(q, k, u, v, w_r):
        content = torch.einsum("bsnd,btnd->bnst", q + u, k)
        place = torch.einsum("bsnd,ndh,sth->bnst", q + v, w_r, sinusoids)
        return (content + place).tril(diagonal=p)

    names = ("scores", "dq", "dk", "du", "dv", "dw_r")
    out = dict(q=q, k=k, u=u, v=v, w_r=w_r, dy=dy)
    out |= dict(zip(names, differentiate(scores, [q, k, u, v, w_r], dy)))
    # XLNet's shift trick gives the same. It wants the distances t .. 1 - s in a row.
    angles = torch.arange(t, -s, -1).double()[:, None] * theta(h)
    sinusoids = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)
    place = torch.einsum("bsnd,ndh,jh->bnsj", q + v, w_r, sinusoids)
    place = XLNetRelativeAttention.rel_shift_bnij(place, klen=t)
    shifted = torch.einsum("bsnd,btnd->bnst", q + u, k) + place
    torch.testing.assert_close(shifted.tril(diagonal=p), out["scores"], rtol=1e-12, atol=1e-12)
    return out


# ---------------------------------------------------------------- attention


def make_biased(case):
    """Causal attention with a bias: by distance [nh, t], by score [b, nh, s, t], or both."""
    b, s, p, nh, nkv, hd = (case[key] for key in ("b", "s", "p", "nh", "nkv", "hd"))
    t = p + s
    q, k, v, near, each, dy = drawn(
        case, [b, s, nh, hd], [b, t, nkv, hd], [b, t, nkv, hd], [nh, t], [b, nh, s, t], [b, s, nh, hd]
    )

    def attention(q, k, v, near, each):
        return biased_attention(q, k, v, case["by_distance"] * by_distance(near, s), case["by_score"] * each)

    names = ("y", "dq", "dk", "dv", "dby_distance", "dby_score")
    out = dict(q=q, k=k, v=v, dy=dy, by_distance=near, by_score=each)
    return out | dict(zip(names, differentiate(attention, [q, k, v, near, each], dy)))


def cases():
    def case(kind, name, seed, **settings):
        return dict(name=f"{kind}_{name}", kind=kind, seed=seed) | settings

    biased = dict(by_distance=1, by_score=0)
    # The published size, a smaller one, one whose logarithms are no round numbers, one with one exact step.
    sizes = [(32, 128), (16, 64), (32, 1000), (8, 20)]
    return [
        *(
            case("buckets", f"{n}_{longest}_{'both' if two else 'causal'}", 0, buckets=n, longest=longest, bidirectional=two)
            for n, longest in sizes
            for two in (False, True)
        ),
        case("t5", "causal", 1, buckets=32, bidirectional=False, nh=3, s=24, t=24, p=0),
        case("t5", "cached", 2, buckets=32, bidirectional=False, nh=2, s=3, t=150, p=147),
        case("t5", "both", 3, buckets=32, bidirectional=True, nh=2, s=20, t=24, p=4),
        *(case("alibi", str(nh), 0, nh=nh) for nh in (*range(1, 21), 32)),
        *(case("kerple", form, 4, form=form, nh=4, t=20) for form in ("log", "power")),
        case("transformer_xl", "whole", 5, b=2, s=5, t=5, nh=2, hd=4, h=8),
        case("transformer_xl", "cached", 6, b=1, s=3, t=8, nh=3, hd=4, h=6),
        case("biased", "heads", 10, b=2, s=5, p=0, nh=3, nkv=3, hd=4, **biased),
        case("biased", "grouped", 11, b=2, s=4, p=0, nh=4, nkv=2, hd=8, **biased),
        case("biased", "cached", 12, b=1, s=3, p=6, nh=4, nkv=2, hd=8, **biased),
        case("biased", "one_token", 13, b=2, s=1, p=20, nh=2, nkv=1, hd=4, **biased),
        case("biased", "by_score", 14, b=2, s=4, p=2, nh=4, nkv=2, hd=4, by_distance=0, by_score=1),
        case("biased", "by_both", 15, b=2, s=4, p=2, nh=4, nkv=2, hd=4, by_distance=1, by_score=1),
    ]
