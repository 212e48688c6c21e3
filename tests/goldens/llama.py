"""Writes tiny Llama checkpoints with Hugging Face's transformers, and what transformers computes with them.

    python llama.py           # rewrites the folders in llama/
    python llama.py --check   # compares, exits 1 and names what differs

Each folder in `llama/` is a checkpoint as it is published, and `expected.safetensors` beside it:

- `ids` [2, 12]: tokens; `logits` [2, 12, v]: what the model says of them, in float32
- `loss` []: the mean cross-entropy of each next token
- `gradient.NAME`: the gradient of `loss` with respect to each weight
- `losses` [12], `norms` [12]: loss and norm of the gradient before each of 12 steps of training on `ids`, by AdamW with
  decay on matrices only, gradients clipped to a norm of 1, and a rate that rises for 3 steps to 0.01 and falls along a
  cosine to 0.001
- `text` [64]: the tokens that greedy decoding finds behind the first row of `ids`

`llama/scaled` is a model whose RoPE is scaled, in each of the ways that a `config.json` has for it. `cases.json` has the settings
that all share, and for each case its name, its settings as they stand in the file, and the length of its text. In
`expected.safetensors` stand `ids` [40], of which a text has the first, and `NAME` [8, v], the logits of its last 8 tokens.

The weights are drawn large, so that attention chooses and the logits are far apart: greedy decoding meets no tie.
"""

import argparse
import copy
import json
import math
import pathlib
import shutil
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

HERE = pathlib.Path(__file__).parent / "llama"

SIZES = dict(vocab_size=61, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=6,
             max_position_embeddings=96, rms_norm_eps=1e-5)

# name: settings, float type of the file, bytes of a file, and why the case is there
CASES = {
    "plain": (dict(num_key_value_heads=6), torch.float32, None, "a key head for each query head"),
    "grouped": (dict(num_key_value_heads=2, rope_theta=500_000.0), torch.float32, None, "three query heads to a key head"),
    "one-key": (dict(num_key_value_heads=1), torch.float16, None, "one key head; F16"),
    "tied": (dict(num_key_value_heads=2, tie_word_embeddings=True), torch.bfloat16, None, "tied output; BF16"),
    "sharded": (dict(num_key_value_heads=2), torch.bfloat16, "10KB", "several files"),
}


SHARED = dict(model_type="llama", vocab_size=31, hidden_size=32, intermediate_size=16, num_hidden_layers=1,
              num_attention_heads=2, num_key_value_heads=1, hidden_act="silu", rms_norm_eps=1e-5)
LONG = dict(short_factor=[1.0, 1.02, 1.05, 1.1, 1.2, 1.35, 1.5, 1.7], long_factor=[1.08, 1.3, 2.0, 4.5, 9.0, 17.3, 30.1, 33.0])
LLAMA3 = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=16)


def scaled_cases():
    def case(name, length, longest, **settings):
        return dict(name=name, length=length, settings=dict(max_position_embeddings=longest) | settings)

    theta = dict(rope_theta=100.0)
    return [
        case("plain", 40, 64, **theta),
        case("plain_parameters", 40, 64, rope_parameters=dict(rope_type="default", **theta)),
        # The three spellings: of old files, of newer ones, of transformers 5.
        case("linear_type", 40, 64, **theta, rope_scaling=dict(type="linear", factor=4.0)),
        case("linear", 40, 64, **theta, rope_scaling=dict(rope_type="linear", factor=4.0)),
        case("linear_parameters", 40, 64, rope_parameters=dict(rope_type="linear", factor=4.0, **theta)),
        # A text of the trained length and a longer one.
        case("dynamic_short", 16, 16, **theta, rope_scaling=dict(type="dynamic", factor=2.0)),
        case("dynamic", 40, 16, **theta, rope_scaling=dict(type="dynamic", factor=2.0)),
        case("dynamic_parameters", 40, 16, rope_parameters=dict(rope_type="dynamic", factor=2.0, **theta)),
        # With the longer length in the file, and with the trained one, as Qwen's.
        case("yarn", 40, 64, **theta, rope_scaling=dict(type="yarn", factor=4.0, original_max_position_embeddings=16)),
        case("yarn_trained", 40, 16, **theta,
             rope_scaling=dict(rope_type="yarn", factor=4.0, original_max_position_embeddings=16)),
        # As DeepSeek's settings; what a Llama makes of them.
        case("yarn_mscales", 40, 64, rope_parameters=dict(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=2, beta_slow=0.5, mscale=1.0,
            mscale_all_dim=0.5, **theta)),
        case("yarn_given", 40, 64, rope_parameters=dict(
            rope_type="yarn", factor=4.0, original_max_position_embeddings=16, truncate=False, attention_factor=1.25, **theta)),
        case("llama3", 40, 64, **theta, rope_scaling=LLAMA3),
        case("llama3_parameters", 40, 64, rope_parameters=LLAMA3 | theta),
        # Either list; the trained length outside, as Phi-3's, and among the others.
        *(case(f"longrope_{n}", n, 64, **theta, original_max_position_embeddings=16,
               rope_scaling=dict(type="longrope", **LONG)) for n in (16, 40)),
        case("longrope_parameters", 40, 64, rope_parameters=dict(
            rope_type="longrope", factor=3.0, original_max_position_embeddings=16, **LONG, **theta)),
    ]  # fmt: skip


def write_scaled(folder):
    torch.manual_seed(1)
    cases = scaled_cases()
    weights = None
    ids = torch.randint(0, SHARED["vocab_size"], (1, 40))
    expected = {"ids": ids[0]}
    for case in cases:
        # A copy: a configuration changes what it is given.
        model = LlamaForCausalLM(LlamaConfig.from_dict(copy.deepcopy(SHARED | case["settings"]))).eval()
        if weights is None:
            for parameter in model.parameters():
                torch.nn.init.normal_(parameter, std=0.35)
            weights = {name: weight.half().float() for name, weight in model.state_dict().items()}
            save_file({name: weight.half() for name, weight in weights.items()}, folder / "model.safetensors", {"format": "pt"})
        model.load_state_dict(weights)
        with torch.no_grad():
            expected[case["name"]] = model(ids[:, : case["length"]]).logits[0, -8:].clone()
    save_file(expected, folder / "expected.safetensors")
    (folder / "cases.json").write_text(json.dumps(dict(shared=SHARED, cases=cases), indent=1) + "\n")


def write(name, folder):
    if name == "scaled":
        return write_scaled(folder)
    settings, dtype, shard, _ = CASES[name]
    torch.manual_seed(sum(name.encode()))
    model = LlamaForCausalLM(LlamaConfig(**SIZES, **settings))
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.35)
        else:
            torch.nn.init.uniform_(parameter, 0.5, 1.5)
    model = model.to(dtype)
    model.save_pretrained(folder, **({"max_shard_size": shard} if shard else {}))

    # The file's numbers, computed in float32. (The model that was cast has its angles' frequencies cast, too.)
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.randint(0, SIZES["vocab_size"], (2, 12))
    out = model(ids, labels=ids)
    out.loss.backward()
    with torch.no_grad():
        text = ids[:1]
        for _ in range(64):
            text = torch.cat([text, model(text).logits[:, -1:].argmax(-1)], dim=1)
    expected = {"ids": ids, "logits": out.logits, "loss": out.loss, "text": text[0, 12:]}
    expected["losses"], expected["norms"] = train(folder, ids)
    for weight, parameter in model.named_parameters():
        expected[f"gradient.{weight}"] = parameter.grad
    save_file({key: value.detach().contiguous() for key, value in expected.items()}, folder / "expected.safetensors")
    (folder / "generation_config.json").unlink(missing_ok=True)


def train(folder, ids):
    model = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    matrices = [p for p in model.parameters() if p.dim() > 1]
    gains = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": gains, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, betas=(0.9, 0.95), eps=1e-8)
    losses, norms = [], []
    for step in range(12):
        part = (step - 2) / 9
        rate = 0.01 * (step + 1) / 3 if step < 3 else 0.001 + 0.009 * (1 + math.cos(math.pi * part)) / 2
        for group in adam.param_groups:
            group["lr"] = rate
        adam.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0))
        adam.step()
        losses.append(loss.detach())
    return torch.stack(losses), torch.stack(norms)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    check = parser.parse_args().check
    torch.set_num_threads(1)
    wrong = []
    for name in [*CASES, "scaled"]:
        with tempfile.TemporaryDirectory() as temporary:
            new = pathlib.Path(temporary) / name
            new.mkdir()
            write(name, new)
            if check:
                for file in sorted(new.glob("*.safetensors")):
                    old, now = load_file(HERE / name / file.name), load_file(file)
                    same = old.keys() == now.keys() and all(torch.equal(old[key], now[key]) for key in old)
                    wrong += [] if same else [f"{name}/{file.name}"]
            else:
                shutil.rmtree(HERE / name, ignore_errors=True)
                shutil.copytree(new, HERE / name)
    if wrong:
        sys.exit("differs: " + ", ".join(wrong))


if __name__ == "__main__":
    main()
