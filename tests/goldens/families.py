"""Writes tiny checkpoints of the families that `quadrivium::inference` reads, and what transformers computes with them.

    python families.py             # rewrites the folders in families/
    python families.py --check     # compares, exits 1 and names what differs
    python families.py --out DIR --count 60 --seed 1   # others, of the same kinds; the tests read DIR, see its README

Each folder is a checkpoint as `save_pretrained` writes it, and `expected.safetensors` beside it:

- `ids` [40]: tokens; `logits`, `logits64` [40, v]: what the model says of them, in float32 and in float64
- `prompt_0`, `prompt_1`: two texts of different lengths; `text_0`, `text_1` [64]: what `generate` finds behind them, greedily

Sizes, settings and weights are drawn from the seed. Weights are drawn large, so that attention chooses and greedy decoding meets
no tie.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForCausalLM

HERE = pathlib.Path(__file__).parent / "families"
KINDS = ["llama", "mistral", "qwen2", "qwen3", "smollm3", "phi3"]
TRAINED, LONGEST = 32, 128


def rope(draw, kind, planes):
    """`rope_parameters`, and `max_position_embeddings`."""
    theta = dict(rope_theta=draw.choice([100.0, 10_000.0, 1_000_000.0]))
    trained = dict(original_max_position_embeddings=TRAINED)
    factors = [dict(short_factor=[draw.uniform(1.0, 1.5) for _ in range(planes)],
                    long_factor=[draw.uniform(1.0, 8.0) for _ in range(planes)])]
    rules = {
        "default": (dict(rope_type="default"), LONGEST),
        "linear": (dict(rope_type="linear", factor=draw.choice([2.0, 4.0])), LONGEST),
        "dynamic": (dict(rope_type="dynamic", factor=draw.choice([2.0, 4.0])), TRAINED),
        "yarn": (dict(rope_type="yarn", factor=4.0, **trained), LONGEST),
        "llama3": (dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, **trained), LONGEST),
        "longrope": (dict(rope_type="longrope", **trained, **factors[0]), LONGEST),
    }  # fmt: skip
    if kind == "phi3":
        rules = {name: rules[name] for name in ("default", "longrope")}
    else:
        del rules["longrope"]  # only a Phi-3 computes a text again where its frequencies change
    rule, longest = rules[draw.choice(sorted(rules))]
    return rule | theta, longest


def settings(draw, kind):
    heads = draw.choice([1, 2, 3, 4])
    shared = draw.choice([n for n in range(1, heads + 1) if heads % n == 0])
    head_dim = draw.choice([4, 8, 12])
    hidden = heads * (head_dim if kind in ("phi3", "qwen2", "smollm3") else draw.choice([3, 5, 10]))
    layers = draw.choice([1, 2, 3]) if kind != "smollm3" else 4
    some = dict(
        vocab_size=draw.choice([31, 48, 61]), hidden_size=hidden, intermediate_size=draw.choice([8, 24, 37]),
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=shared,
        rms_norm_eps=draw.choice([1e-6, 1e-5, 1e-3]), tie_word_embeddings=draw.random() < 0.5, bos_token_id=None,
        eos_token_id=None, pad_token_id=None,
    )  # fmt: skip
    if kind in ("llama", "mistral", "qwen3"):
        some["head_dim"] = head_dim
    rotary = head_dim
    if kind == "phi3" and head_dim > 4 and draw.random() < 0.6:
        rotary = head_dim // 2
    some["rope_parameters"], some["max_position_embeddings"] = rope(draw, kind, rotary // 2)
    if kind == "phi3":
        some["rope_parameters"]["partial_rotary_factor"] = rotary / head_dim
        some["original_max_position_embeddings"] = TRAINED
    window = draw.choice([3, 8, 20])
    match kind:
        case "llama":
            some |= dict(attention_bias=draw.random() < 0.4, mlp_bias=draw.random() < 0.4)
        case "mistral" | "phi3":
            some |= dict(sliding_window=draw.choice([None, window]))
        case "qwen2" | "qwen3":
            some |= dict(use_sliding_window=draw.random() < 0.6, sliding_window=window, max_window_layers=draw.randrange(layers + 1))
            if kind == "qwen3":
                some |= dict(attention_bias=draw.random() < 0.5)
        case "smollm3":
            some |= dict(attention_bias=draw.random() < 0.5, mlp_bias=draw.random() < 0.5, use_sliding_window=draw.random() < 0.5,
                         sliding_window=window)  # fmt: skip
    return some


def write(kind, seed, folder):
    draw = random.Random(f"{kind} {seed}")
    torch.manual_seed(draw.randrange(1 << 31))
    some = settings(draw, kind)
    config = AutoConfig.for_model(kind, **some)
    model = AutoModelForCausalLM.from_config(config)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=1.5 / parameter.shape[1] ** 0.5)
        else:
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    for name, parameter in model.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.5)
    shard = {"max_shard_size": "8KB"} if draw.random() < 0.3 else {}
    model.to(draw.choice([torch.float32, torch.bfloat16, torch.float16])).save_pretrained(folder, **shard)
    (folder / "generation_config.json").unlink(missing_ok=True)

    def load(dtype):
        return AutoModelForCausalLM.from_pretrained(folder, dtype=dtype, attn_implementation="eager").eval()

    vocab = some["vocab_size"]
    ids = torch.randint(0, vocab, (1, 40))
    expected = {"ids": ids[0]}
    with torch.no_grad():
        expected["logits"] = load(torch.float32)(ids).logits[0]
        expected["logits64"] = load(torch.float64)(ids).logits[0]
        for nth, length in enumerate((draw.randrange(1, 12), draw.randrange(12, 45))):
            prompt = torch.randint(0, vocab, (1, length))
            # A fresh model for each text: one whose frequencies follow the length remembers the longest.
            text = load(torch.float32).generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=64, do_sample=False)
            expected[f"prompt_{nth}"], expected[f"text_{nth}"] = prompt[0], text[0, length:]
    save_file({key: value.contiguous() for key, value in expected.items()}, folder / "expected.safetensors")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    parser.add_argument("--out", type=pathlib.Path, default=HERE)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--seed", type=int, default=198, help="198 draws every setting at least once")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    wrong = []
    for nth in range(arguments.count):
        kind = KINDS[nth % len(KINDS)]
        name = f"{kind}-{nth // len(KINDS)}"
        with tempfile.TemporaryDirectory() as temporary:
            new = pathlib.Path(temporary) / name
            new.mkdir()
            write(kind, arguments.seed + nth // len(KINDS), new)
            if arguments.check:
                for file in sorted(new.glob("*.safetensors")):
                    old, now = load_file(HERE / name / file.name), load_file(file)
                    same = old.keys() == now.keys() and all(torch.equal(old[key], now[key]) for key in old)
                    wrong += [] if same else [f"{name}/{file.name}"]
            else:
                shutil.rmtree(arguments.out / name, ignore_errors=True)
                shutil.copytree(new, arguments.out / name)
    if wrong:
        sys.exit("differs: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
