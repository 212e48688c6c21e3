"""The goldens of frequencies and rotations, for `encodings.py`."""

import math

from float64 import F64, both, differentiate, drawn, heads, in_float64, rows, theta, turn

import torch
from transformers import GPTNeoXConfig, LlamaConfig, PixtralVisionConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gpt_neox import modeling_gpt_neox as neox
from transformers.models.gptj import modeling_gptj as gptj
from transformers.models.llama import modeling_llama as llama
from transformers.models.pixtral import modeling_pixtral as pixtral
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2_vl
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLTextConfig, Qwen2VLVisionConfig

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


# ---------------------------------------------------------------- rotations


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


def make_sections(case):
    """Qwen2-VL: `mrope_section` planes by time, by height, by width."""
    positions = torch.tensor(case["positions"])[:, None]  # [3, 1, s]

    def rotate(x):
        parameters = dict(rope_type="default", rope_theta=case["base"], mrope_section=case["sections"])
        config = Qwen2VLTextConfig(hidden_size=case["hd"], num_attention_heads=1, rope_parameters=parameters)
        tables = qwen2_vl.Qwen2VLRotaryEmbedding(config)(x, positions)
        return by_heads(qwen2_vl.apply_rotary_pos_emb, x, *tables)

    return rotated(case, rotate)


def make_axial(case):
    """Half of the planes by row, half by column: Qwen2-VL's frequencies for images, and Pixtral's."""
    positions = torch.tensor(case["positions"])  # [s, 2]

    def rotate(x):
        parameters = dict(rope_type="axial", rope_theta=case["base"])
        if case["rule"] == "pixtral":
            config = PixtralVisionConfig(head_dim=case["hd"], hidden_size=case["hd"], num_attention_heads=1,
                                         rope_parameters=parameters)  # fmt: skip
            tables = pixtral.PixtralVisionRotaryEmbedding(config)(x, positions)
            return by_heads(pixtral.apply_rotary_pos_emb, x, *(table[None] for table in tables))
        config = Qwen2VLVisionConfig(embed_dim=case["hd"], num_heads=1, rope_parameters=parameters)
        config.num_attention_heads = 1
        tables = qwen2_vl.Qwen2VLVisionRotaryEmbedding(config)(x, positions)
        return qwen2_vl.apply_rotary_pos_emb_vision(x, x, *tables)[0]

    # The same from its definition: plane i turns by row or column times base^(-2j / (hd / 2)).
    out = rotated(case, rotate)
    planes = torch.arange(case["hd"] // 2)
    places, within = planes // (case["hd"] // 4), planes % (case["hd"] // 4)
    exponents = 4 * within + 2 * places if case["rule"] == "pixtral" else 4 * within
    angles = positions.double()[:, places] * case["base"] ** (-exponents.double() / case["hd"])
    torch.testing.assert_close(turn(out["x"], angles), out["y"], rtol=0, atol=1e-13)
    return out


def make_xpos(case):
    """q times z^(m / 512), k times z^(-n / 512), from the paper. torchscale counts from the middle: the scores are alike."""
    hd, s, power = case["hd"], case["s"], rows(case)[:, None] / case["scale_base"]
    angles = torch.outer(rows(case), theta(hd))
    z = (torch.arange(0, hd, 2, dtype=F64) / hd + 0.4) / 1.4
    q, k, dyq, dyk = drawn(case, *[heads(case)] * 4)
    out = dict(q=q, k=k, dyq=dyq, dyk=dyk)
    for tail, adjacent in (("", False), ("_interleaved", True)):
        out["yq" + tail], out["dq" + tail] = differentiate(lambda x: turn(x, angles, z**power, adjacent), [q], dyq)
        out["yk" + tail], out["dk" + tail] = differentiate(lambda x: turn(x, angles, z**-power, adjacent), [k], dyk)
    middle = (torch.arange(s, dtype=F64) - s // 2)[:, None]
    near = z ** (middle / case["scale_base"])
    centered = [turn(x, middle * theta(hd), scale, True) for x, scale in ((q, near), (k, 1 / near))]
    scores = [torch.einsum("bmnd,btnd->bnmt", *pair) for pair in (centered, [out["yq_interleaved"], out["yk_interleaved"]])]
    torch.testing.assert_close(*scores, rtol=0, atol=1e-12)
    return out


def make_learnable(case):
    """The rotation's gradient with respect to its frequencies."""
    x, dy, noise = drawn(case, heads(case), heads(case), [case["hd"] // 2])
    frequencies = theta(case["hd"]) * (1 + 0.1 * noise)
    inputs = [x, frequencies]
    y, dx, dfrequencies = differentiate(lambda x, theta: turn(x, torch.outer(rows(case), theta)), inputs, dy)
    return dict(x=x, frequencies=frequencies, dy=dy, y=y, dx=dx, dfrequencies=dfrequencies)


def rotation_cases():
    def case(kind, name, b, s, nh, hd, seed, offset=0, **settings):
        return dict(name=f"{kind}_{name}", kind=kind, b=b, s=s, nh=nh, hd=hd, seed=seed, offset=offset) | settings

    # Two words of text, a picture of 2 x 3, a word; then text alone.
    words_and_picture = [[0, 1, 2, 2, 2, 2, 2, 2, 5], [0, 1, 2, 2, 2, 3, 3, 3, 5], [0, 1, 2, 3, 4, 2, 3, 4, 5]]
    grid = [[row, column] for row in range(2) for column in range(3)]
    return [
        case("scaled", "yarn", 2, 5, 2, 16, 1, 90, rope_type="yarn", base=10000.0, trained=64, factor=4.0),
        case("scaled", "llama3", 1, 6, 2, 16, 2, 300, **LLAMA3, base=10000.0, trained=128, factor=8.0),
        case("scaled", "longrope", 1, 4, 2, 16, 3, 4200, **{k: v for k, v in LONG.items() if k != "hd"}, factor=4.0),
        case("scaled", "linear", 2, 4, 1, 8, 4, 7, rope_type="linear", base=10000.0, factor=4.0),
        case("scaled", "dynamic", 1, 4, 1, 8, 5, 100, rope_type="dynamic", base=10000.0, trained=64, factor=2.0),
        case("partial", "quarter", 2, 5, 2, 16, 6, 3, part=4),
        case("partial", "half", 1, 6, 3, 16, 7, part=8),
        case("partial", "whole", 1, 4, 1, 8, 8, 2, part=8),
        case("sections", "picture", 1, 9, 2, 16, 9, base=1e6, sections=[2, 3, 3], positions=words_and_picture),
        case("sections", "text", 1, 6, 2, 16, 10, base=1e6, sections=[2, 3, 3], positions=[list(range(4, 10))] * 3),
        case("axial", "qwen", 2, 6, 2, 16, 11, base=10000.0, rule="qwen", positions=grid),
        case("axial", "pixtral", 1, 6, 2, 16, 12, base=10000.0, rule="pixtral", positions=grid),
        case("xpos", "start", 2, 5, 2, 8, 13, scale_base=512.0),
        case("xpos", "later", 1, 6, 2, 16, 14, 700, scale_base=512.0),
        case("xpos", "steep", 1, 5, 1, 8, 15, 3, scale_base=16.0),
        case("learnable", "start", 2, 5, 2, 8, 16),
        case("learnable", "later", 1, 6, 3, 16, 17, 40),
    ]
