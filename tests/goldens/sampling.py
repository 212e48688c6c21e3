"""Writes what transformers' processors make of logits: the probabilities from which a token is drawn.

    python sampling.py           # rewrites sampling.safetensors
    python sampling.py --check   # compares, exits 1 if they differ

Per case `logits` [v], `text` [n] (tokens that the text has) and `probabilities` [v] in float64. The settings are in the metadata.
"""

import json
import pathlib
import random
import sys

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM

FILE = pathlib.Path(__file__).with_name("sampling.safetensors")
SIZE = 24


def main():
    draw = random.Random(0)
    torch.manual_seed(0)
    # Only its method is used that puts the processors in transformers' own order.
    sizes = dict(hidden_size=4, intermediate_size=4, num_hidden_layers=1, num_attention_heads=1, vocab_size=SIZE)
    model = LlamaForCausalLM(LlamaConfig(**sizes))
    tensors, cases = {}, []
    for nth in range(40):
        settings = dict(temperature=draw.choice([0.3, 0.8, 1.0, 1.7]), top_k=draw.choice([0, 1, 5, 12]),
                        top_p=draw.choice([1.0, 0.9, 0.5, 0.2]), min_p=draw.choice([0.0, 0.05, 0.3]),
                        repetition_penalty=draw.choice([1.0, 1.3, 0.8]))  # fmt: skip
        logits, text = torch.randn(1, SIZE) * 3, torch.randint(0, SIZE, (1, 9))
        config = GenerationConfig(do_sample=True, **settings)
        config.update(**{name: None for name in ("bos_token_id", "eos_token_id", "pad_token_id")})
        processors = model._get_logits_processor(config, input_ids_seq_length=9)
        scores = processors(text, logits.double())
        tensors |= {f"{nth}.logits": logits[0], f"{nth}.text": text[0], f"{nth}.probabilities": scores.softmax(-1)[0]}
        cases.append(dict(name=str(nth), **settings))
    metadata = {"cases": json.dumps(cases)}
    if "--check" not in sys.argv:
        return save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, FILE, metadata)
    with safe_open(FILE, "pt") as old:
        same = old.metadata() == metadata and all(torch.equal(old.get_tensor(name), now) for name, now in tensors.items())
    if not same:
        sys.exit("sampling.safetensors differs")


if __name__ == "__main__":
    main()
