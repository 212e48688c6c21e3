"""The cases of frequencies.safetensors: frequencies for longer texts, and the rotations by them."""

import math

from float64 import F64, both, by_heads, differentiate, drawn, heads, rotated, theta
from layers import LearnableRotary

import torch
from transformers import GPTNeoXConfig, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gpt_neox import modeling_gpt_neox as neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.utils import logging

logging.set_verbosity_error()  # settings that no published model has are on purpose

EPS32 = 2.0**-23

# ---------------------------------------------------------------- frequencies, one vector and one scale

YARN = dict(rope_type="yarn", hd=128, base=10000.0, trained=4096)
LLAMA3 = dict(rope_type="llama3", low_freq_factor=1.0, high_freq_factor=4.0)
LONG = dict(
    rope_type="longrope", hd=16, base=10000.0, trained=4096,
    short_factor=[1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.7],
    long_factor=[1.08, 1.3, 2.0, 4.5, 9.0, 17.3, 30.1, 33.0],
)  # fmt: skip


def frequency_cases():
    """`longest` is max_position_embeddings, `length` the call's, `trained` the positions of the training."""

    def case(name, **settings):
        return dict(name=f"freq_{name}", kind="frequencies") | settings

    plain = dict(rope_type="default", base=10000.0)
    linear = dict(rope_type="linear", hd=64, base=10000.0)
    dynamic = dict(rope_type="dynamic", hd=128, base=10000.0, trained=2048)
    return [
        *(case(f"plain_{hd}", **plain, hd=hd) for hd in (4, 8, 64, 128)),
        case("plain_far", rope_type="default", hd=128, base=1e6),
        # Factor 1 changes nothing; 8.5 is no power of two.
        *(case(f"linear_{str(f).replace('.', '_')}", **linear, factor=f) for f in (1.0, 4.0, 8.5)),
        # No length, a short one, the trained one, one more, twice, four times, far.
        case("dynamic_none", **dynamic, factor=2.0),
        *(case(f"dynamic_{n}", **dynamic, factor=2.0, length=n) for n in (1000, 2048, 2049, 4096, 8192, 100_000)),
        # Factor 1: plain NTK by length / trained.
        case("dynamic_factor_1", **dynamic, factor=1.0, length=8192),
        case("dynamic_factor_8", rope_type="dynamic", hd=8, base=500000.0, trained=64, factor=8.0, length=200),
        # The paper's settings, and factor 1.
        *(case(f"yarn_{f}", **YARN, factor=float(f)) for f in (1, 4, 16, 32)),
        # Without rounding the ramp's ends; the last as gpt-oss has it.
        case("yarn_exact_16", **YARN, factor=16.0, truncate=False),
        case("yarn_gpt_oss", rope_type="yarn", hd=64, base=150000.0, trained=4096, factor=32.0, truncate=False),
        case("yarn_qwen", rope_type="yarn", hd=128, base=1e6, trained=32768, factor=4.0),
        # DeepSeek's scale: of both mscales it is a quotient; of one alone nothing is seen.
        case("yarn_mscales", **YARN, factor=40.0, mscale=1.0, mscale_all_dim=0.8),
        case("yarn_mscales_equal", **YARN, factor=40.0, mscale=0.707, mscale_all_dim=0.707),
        case("yarn_mscale_alone", **YARN, factor=40.0, mscale=0.5),
        case("yarn_scale_given", **YARN, factor=8.0, attention_factor=1.25),
        case("yarn_betas", **YARN, factor=8.0, beta_fast=64.0, beta_slow=2.0),
        # The factor from the lengths: 65536 / 4096.
        case("yarn_by_length", **YARN, longest=65536, factor=None),
        # Ramps that reach past the first plane, and one of no width.
        case("yarn_small", rope_type="yarn", hd=8, base=10000.0, trained=64, factor=4.0),
        case("yarn_small_exact", rope_type="yarn", hd=8, base=10000.0, trained=64, factor=4.0, truncate=False),
        case("yarn_tiny", rope_type="yarn", hd=8, base=10000.0, trained=6, factor=4.0),
        case("yarn_no_width", rope_type="yarn", hd=8, base=10000.0, trained=6, factor=4.0, truncate=False),
        # A low base: both ends of the ramp lie past the last plane, where hd - 1 cuts them off.
        case("yarn_low_base", rope_type="yarn", hd=8, base=2.0, trained=4096, factor=4.0),
        # Llama 3.1 and 3.2 (1B), and a small head whose planes lie in all three ranges.
        case("llama3_1", **LLAMA3, hd=128, base=500000.0, trained=8192, factor=8.0),
        case("llama3_2", **LLAMA3, hd=64, base=500000.0, trained=8192, factor=32.0),
        case("llama3_small", **LLAMA3, hd=16, base=10000.0, trained=128, factor=8.0),
        case("llama3_factor_1", **LLAMA3, hd=64, base=500000.0, trained=8192, factor=1.0),
        # The factor from the lengths, as Phi 3: 131072 / 4096. A call of the trained length is short.
        *(case(f"longrope_{n}", **LONG, longest=131072, length=n) for n in (None, 4096, 4097)),
        case("longrope_factor", **LONG, factor=4.0, length=5000),
        case("longrope_factor_1", **LONG, factor=1.0, length=5000),
        case("longrope_scale_given", **LONG, longest=131072, attention_factor=1.19, length=5000),
        # A part of the planes turns, and those by the whole head's exponents.
        case("proportional", rope_type="proportional", hd=32, base=1e6, partial_rotary_factor=0.25),
        case("proportional_8", rope_type="proportional", hd=32, base=1e6, partial_rotary_factor=0.25, factor=8.0),
    ]


OWN = {"name", "kind", "seed", "hd", "base", "trained", "longest", "length", "lengths", "b", "s", "nh", "offset", "dtype"}


def rope_config(case):
    """A Llama of these settings."""
    parameters = {key: value for key, value in case.items() if key not in OWN}
    parameters["rope_theta"] = case["base"]
    trained = case.get("trained", 2048)
    if case["rope_type"] in ("yarn", "llama3", "longrope"):
        parameters["original_max_position_embeddings"] = trained
    longest = case.get("longest") or trained
    sizes = dict(hidden_size=case["hd"], num_attention_heads=1, head_dim=case["hd"])
    return LlamaConfig(**sizes, max_position_embeddings=longest, rope_parameters=parameters)


def frequencies(case):
    """The frequencies and the scale of cosines and sines."""
    if case["rope_type"] == "default":
        return llama.LlamaRotaryEmbedding.compute_default_rope_parameters(rope_config(case))
    return ROPE_INIT_FUNCTIONS[case["rope_type"]](rope_config(case), seq_len=case.get("length"))


def make_frequencies(case):
    inv_freq, inv_freq64 = both(lambda: frequencies(case)[0])
    # Float32 rounds the exponent, a power, a quotient and, in the ramps, a difference of numbers up to base.
    error = ((inv_freq.double() - inv_freq64) / inv_freq64.clamp_min(1e-300)).abs().max().item()
    assert error < (16 + 2 * math.log(case["base"])) * EPS32, f"{case['name']}: {error}"
    return dict(inv_freq=inv_freq, inv_freq64=inv_freq64, scale64=torch.tensor([frequencies(case)[1]], dtype=F64))


def calls_cases():
    """Calls of several lengths, one after the other, of one module."""
    lengths = [10, 64, 100, 65, 80, 200, 64, 63, 80, 1]
    dynamic = dict(rope_type="dynamic", hd=8, base=10000.0, trained=64, factor=2.0)
    return [
        dict(name="calls_dynamic", kind="calls", lengths=lengths) | dynamic,
        dict(name="calls_longrope", kind="calls", lengths=[10, 4096, 4097, 100, 5000], longest=131072) | LONG,
    ]


def make_calls(case):
    def run():
        rope = llama.LlamaRotaryEmbedding(rope_config(case))
        rows = []
        for length in case["lengths"]:
            rope(torch.zeros(1), torch.arange(length)[None])
            rows.append(rope.inv_freq.clone())
        return torch.stack(rows)

    return dict(zip(("inv_freq", "inv_freq64"), both(run)))


# ---------------------------------------------------------------- rotations by them


def make_scaled(case):
    def rotate(x):
        rope = llama.LlamaRotaryEmbedding(rope_config(case))
        tables = rope(x, torch.arange(case["offset"], case["offset"] + case["s"])[None])
        return by_heads(llama.apply_rotary_pos_emb, x, *tables)

    return rotated(case, rotate)


def make_partial(case):
    hd, part = case["hd"], case["part"]
    positions = torch.arange(case["offset"], case["offset"] + case["s"])[None]

    def rotate(x):
        parameters = dict(rope_type="default", rope_theta=10000.0, partial_rotary_factor=part / hd)
        config = GPTNeoXConfig(hidden_size=hd, num_attention_heads=1, rope_parameters=parameters)
        return by_heads(neox.apply_rotary_pos_emb, x, *neox.GPTNeoXRotaryEmbedding(config)(x, positions))

    def adjacent(x):
        """GPT-J's: pairs side by side."""
        sin, cos = gptj.create_sinusoidal_positions(positions.max() + 1, part)[positions].chunk(2, dim=-1)
        return torch.cat((gptj.apply_rotary_pos_emb(x[..., :part], sin, cos), x[..., part:]), dim=-1)

    pairs = rotated(case, adjacent)
    return rotated(case, rotate) | dict(y_interleaved=pairs["y"], dx_interleaved=pairs["dx"])


def make_learnable(case):
    """The rotation's gradient with respect to its frequencies."""
    x, dy, noise = drawn(case, heads(case), heads(case), [case["hd"] // 2])
    frequencies = theta(case["hd"]) * (1 + 0.1 * noise)
    rope = LearnableRotary(frequencies)
    y, dx = differentiate(lambda x: rope(x, case["offset"]), [x], dy)
    return dict(x=x, frequencies=frequencies, dy=dy, y=y, dx=dx, dfrequencies=rope.frequencies.grad)


def rotation_cases():
    def case(kind, name, b, s, nh, hd, seed, offset=0, **settings):
        return dict(name=f"{kind}_{name}", kind=kind, b=b, s=s, nh=nh, hd=hd, seed=seed, offset=offset) | settings

    return [
        case("scaled", "yarn", 2, 5, 2, 16, 1, 90, rope_type="yarn", base=10000.0, trained=64, factor=4.0),
        case("scaled", "llama3", 1, 6, 2, 16, 2, 300, **LLAMA3, base=10000.0, trained=128, factor=8.0),
        case("scaled", "longrope", 1, 4, 2, 16, 3, 4200, **{k: v for k, v in LONG.items() if k != "hd"}, factor=4.0),
        case("scaled", "linear", 2, 4, 1, 8, 4, 7, rope_type="linear", base=10000.0, factor=4.0),
        case("scaled", "dynamic", 1, 4, 1, 8, 5, 100, rope_type="dynamic", base=10000.0, trained=64, factor=2.0),
        case("partial", "quarter", 2, 5, 2, 16, 6, 3, part=4),
        case("partial", "half", 1, 6, 3, 16, 7, part=8),
        case("partial", "whole", 1, 4, 1, 8, 8, 2, part=8),
        case("learnable", "start", 2, 5, 2, 8, 16),
        case("learnable", "later", 1, 6, 3, 16, 17, 40),
    ]


def cases():
    return frequency_cases() + calls_cases() + rotation_cases()
