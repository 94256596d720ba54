#!/usr/bin/python3
"""Times training steps of a GPT-style model in PyTorch on the CPU: one JSON line per shape."""
import argparse
import json
import math
import resource
import time

import torch
import torch.nn.functional as F
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--shapes", required=True)
parser.add_argument("--seconds", type=float, default=8)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--context", type=int, default=256)
parser.add_argument("--vocab", type=int, default=1000)
args = parser.parse_args()
torch.set_num_threads(args.threads)
torch.manual_seed(0)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        hidden = torch.triu(torch.ones(args.context, args.context, dtype=torch.bool), 1)
        self.register_buffer("hidden", hidden)

    def attend(self, x):
        B, T, D = x.shape
        K = D // self.heads
        q, k, v = (t.view(B, T, self.heads, K).transpose(1, 2) for t in self.qkv(x).split(D, 2))
        scores = (q @ k.transpose(-2, -1)) / math.sqrt(K)
        weights = F.softmax(scores.masked_fill(self.hidden, float("-inf")), -1)
        return self.out((weights @ v).transpose(1, 2).reshape(B, T, D))

    def forward(self, x):
        x = x + self.attend(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Model(nn.Module):
    def __init__(self, layers, width, heads):
        super().__init__()
        self.tokens = nn.Embedding(args.vocab, width)
        self.positions = nn.Embedding(args.context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, 0, 0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight
        for block in self.blocks:
            x = block(x)
        logits = self.norm(x) @ self.tokens.weight.T
        return F.cross_entropy(logits.view(-1, args.vocab), targets.reshape(-1))


for shape in args.shapes.split(","):
    layers, width = map(int, shape.split("x"))
    model = Model(layers, width, max(1, width // (32 if width < 256 else 64)))
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1)
    ids = torch.randint(0, args.vocab, (args.batch, args.context))
    targets = torch.randint(0, args.vocab, (args.batch, args.context))
    times, begin = [], time.time()
    while len(times) < 4 or (time.time() - begin < args.seconds and len(times) < 1000):
        start = time.perf_counter()
        optimiser.zero_grad(set_to_none=True)
        model(ids, targets).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        times.append(time.perf_counter() - start)
    times = sorted(times[1:])
    print(json.dumps(dict(shape=shape, best_seconds=times[0], median_seconds=times[len(times) // 2],
                          peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                          )), flush=True)
