"""The cases of rotations.safetensors: rotations by several numbers, with a decay, and in linear attention."""

from float64 import F64, by_heads, differentiate, drawn, heads, rotated, rows, theta
from layers import linear_attention, turn

import torch
from transformers import PixtralVisionConfig
from transformers.models.pixtral import modeling_pixtral as pixtral
from transformers.models.qwen2_vl import modeling_qwen2_vl as qwen2_vl
from transformers.models.qwen2_vl.configuration_qwen2_vl import Qwen2VLTextConfig, Qwen2VLVisionConfig


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


def make_linear(case):
    """Su et al. 2021, equation 19: phi(q), phi(k) are turned in the numerator only; phi = elu + 1."""
    angles = torch.outer(rows(case), theta(case["hd"]))

    def attention(q, k, v):
        return linear_attention(q, k, v, angles)

    q, k, v, dy = drawn(case, *[heads(case)] * 4)
    names = ("y", "dq", "dk", "dv")
    return dict(q=q, k=k, v=v, dy=dy) | dict(zip(names, differentiate(attention, [q, k, v], dy)))


def cases():
    def case(kind, name, b, s, nh, hd, seed, offset=0, **settings):
        return dict(name=f"{kind}_{name}", kind=kind, b=b, s=s, nh=nh, hd=hd, seed=seed, offset=offset) | settings

    # Two words of text, a picture of 2 x 3, a word; then text alone.
    words_and_picture = [[0, 1, 2, 2, 2, 2, 2, 2, 5], [0, 1, 2, 2, 2, 3, 3, 3, 5], [0, 1, 2, 3, 4, 2, 3, 4, 5]]
    grid = [[row, column] for row in range(2) for column in range(3)]
    return [
        case("sections", "picture", 1, 9, 2, 16, 9, base=1e6, sections=[2, 3, 3], positions=words_and_picture),
        case("sections", "text", 1, 6, 2, 16, 10, base=1e6, sections=[2, 3, 3], positions=[list(range(4, 10))] * 3),
        case("axial", "qwen", 2, 6, 2, 16, 11, base=10000.0, rule="qwen", positions=grid),
        case("axial", "pixtral", 1, 6, 2, 16, 12, base=10000.0, rule="pixtral", positions=grid),
        case("xpos", "start", 2, 5, 2, 8, 13, scale_base=512.0),
        case("xpos", "later", 1, 6, 2, 16, 14, 700, scale_base=512.0),
        case("xpos", "steep", 1, 5, 1, 8, 15, 3, scale_base=16.0),
        case("linear", "causal", 2, 6, 2, 8, 7),
        case("linear", "later", 1, 5, 3, 4, 8, 50),
        case("linear", "one_head", 2, 9, 1, 8, 9),
    ]
