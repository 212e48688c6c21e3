"""The implementations `transformers-f32`, `transformers-bf16` and `transformers-compiled`: decoding from a checkpoint's folder."""

import json
import pathlib
import sys

import torch
from transformers import AutoModelForCausalLM, DynamicCache, StaticCache

from torch_implementations import serve

PLACES = 32  # as in `src/lib.rs`


def make(name, kind, models):
    """A call of `WORK-SIZE`."""
    work, _, size = name.partition("-")
    # As `generate` does it, only what comes after the prompt is compiled.
    if work not in ["prompt", "decode"] or (work == "prompt" and kind == "compiled"):
        return None
    folder = models / size
    dtype = torch.bfloat16 if kind == "bf16" else torch.float32
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype)
    text = torch.tensor([json.loads((folder / "ids.json").read_text())])
    if work == "prompt":
        return prompt(model, text[:, :-2])
    return (compiled if kind == "compiled" else decode)(model, text[:, :-1], text[:, -1:])


def prompt(model, text):
    @torch.inference_mode()
    def call():
        return [model(text, past_key_values=DynamicCache(config=model.config), logits_to_keep=1).logits]

    return call


def decode(model, before, token):
    cache = DynamicCache(config=model.config)
    with torch.inference_mode():
        model(before, past_key_values=cache, logits_to_keep=1)

    @torch.inference_mode()
    def call():
        logits = model(token, past_key_values=cache).logits
        cache.crop(-1)
        return [logits]

    return call


def compiled(model, before, token):
    """With a cache at a fixed address, so that one compilation serves all calls."""
    torch._dynamo.reset()
    cache = StaticCache(config=model.config, max_cache_len=before.shape[1] + 1)
    run = torch.compile(model)
    with torch.no_grad():
        model(before, past_key_values=cache, logits_to_keep=1)

    @torch.no_grad()  # as `generate`: what is compiled writes to the cache
    def call():
        logits = run(token, past_key_values=cache).logits
        for layer in cache.layers:
            layer.cumulative_length.sub_(1)
        return [logits]

    return call


def some(results):
    """Logits at some places, and the largest."""
    logits = results[0].flatten().float()
    places = torch.arange(PLACES) * len(logits) // PLACES
    return [*logits[places].tolist(), logits.abs().max().item()]


def main():
    kind, threads, models = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    torch.set_num_threads(threads)
    serve(lambda name: make(name, kind, models), some)


if __name__ == "__main__":
    main()
