#!/usr/bin/env python3
"""Time of a training step of a GPT-2 style model in PyTorch on one GPU: the peer of
`fathom bench train --device cuda`.

Pre-norm blocks with biases and the tanh form of GELU, learned positions, tied head; bf16 autocast
with f32 master weights, scaled_dot_product_attention, gradient clipping at 1, fused AdamW; the
whole model through torch.compile. One JSON line per shape: milliseconds of a step, seconds until the
first steps were done, peak memory.

    torch_gpu_step.py 6x128,12x512 --context 1024 --mode reduce-overhead

Compiling takes most of the time and one core each. With --company FOLDER --of N, N processes of one
shape each compile side by side, wait for the last of them, and are timed one after the other.
"""
import argparse
import contextlib
import fcntl
import json
import os
import pathlib
import time

import torch
import torch.nn.functional as F
from torch import nn


@contextlib.contextmanager
def turn(options):
    """Alone on the GPU among the processes of the company."""
    if not options.company:
        yield
        return
    folder = pathlib.Path(options.company)
    (folder / f"warm-{os.getpid()}").touch()
    late = time.monotonic() + 240
    while len(list(folder.glob("warm-*"))) < options.of and time.monotonic() < late:
        time.sleep(0.2)
    with open(folder / "turn", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class Layer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.ffn_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        rows, context, width = x.shape
        qkv = self.qkv(self.attention_norm(x)).view(rows, context, 3, self.heads, -1)
        q, k, v = (part.transpose(1, 2) for part in qkv.unbind(2))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(rows, context, width))
        return x + self.down(F.gelu(self.up(self.ffn_norm(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, layers, width, heads, vocab, context):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, width), nn.Embedding(context, width)
        self.layers = nn.ModuleList(Layer(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.register_buffer("places", torch.arange(context))

    def forward(self, inputs, targets):
        x = self.tokens(inputs) + self.positions(self.places)
        for layer in self.layers:
            x = layer(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def measure(layers, width, options):
    torch.manual_seed(0)
    torch._dynamo.reset()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    start = time.perf_counter()
    heads = max(1, width // options.head_size)
    model = Model(layers, width, heads, options.vocab, options.context).cuda()
    adamw = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1,
                              fused=True)
    compiled = model
    if options.mode != "eager":
        compiled = torch.compile(model, mode=None if options.mode == "default" else options.mode)
    shape = (options.tokens // options.context, options.context)
    inputs, targets = (torch.randint(options.vocab, shape, device="cuda") for _ in range(2))

    def step():
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = compiled(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adamw.step()
        adamw.zero_grad(set_to_none=True)

    for _ in range(4):
        step()
    torch.cuda.synchronize()
    warm = time.perf_counter() - start
    times = []
    with turn(options):
        for _ in range(4):
            before = time.perf_counter()
            for _ in range(options.steps):
                step()
            torch.cuda.synchronize()
            times.append((time.perf_counter() - before) / options.steps)
    return {"layers": layers, "width": width, "mode": options.mode, "context": options.context,
            "milliseconds": min(times) * 1e3, "warm_seconds": warm,
            "memory_bytes": torch.cuda.max_memory_allocated()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("shapes")
    parser.add_argument("--tokens", type=int, default=65536)
    parser.add_argument("--context", type=int, default=1024)
    parser.add_argument("--vocab", type=int, default=2048)
    parser.add_argument("--head-size", type=int, default=64)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--mode", default="reduce-overhead")
    parser.add_argument("--company", help="folder shared by the processes timed in turn")
    parser.add_argument("--of", type=int, default=1)
    options = parser.parse_args()
    torch.set_float32_matmul_precision("high")
    for shape in options.shapes.split(","):
        layers, width = (int(part) for part in shape.split("x"))
        print(json.dumps(measure(layers, width, options)), flush=True)


if __name__ == "__main__":
    main()
