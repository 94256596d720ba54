#!/usr/bin/env python3
"""Measures the fixed time of a transformer layer on a GPU: what `*_layer_fixed_us` in a hardware profile means.

    tools/measure_fixed_costs.py

A layer so narrow that arithmetic and memory cost nothing still takes the time of its dependent kernels. The slope
of the time over the number of layers, inside a CUDA graph, is that cost: for one decoded token, and for the
forward and backward pass of a training step. Needs PyTorch with CUDA.
"""
import torch
import torch.nn.functional as F

WIDTH, HEADS, CONTEXT = 64, 1, 128


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = torch.nn.RMSNorm(WIDTH), torch.nn.RMSNorm(WIDTH)
        self.qkv = torch.nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.up = torch.nn.Linear(WIDTH, 4 * WIDTH, bias=False)
        self.down = torch.nn.Linear(4 * WIDTH, WIDTH, bias=False)

    def forward(self, x, cache=None):
        b, t, _ = x.shape
        q, k, v = (part.view(b, t, HEADS, -1).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        if cache is not None:
            cache[0][:, :, -1:], cache[1][:, :, -1:] = k, v
            k, v = cache
        y = F.scaled_dot_product_attention(q, k, v, is_causal=cache is None)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def time_graph(step, repeats=200):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    graph.replay()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeats):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) * 1e3 / repeats  # microseconds


def decode_time(layers):
    blocks = [Layer().cuda().bfloat16() for _ in range(layers)]
    x = torch.randn(1, 1, WIDTH, device="cuda", dtype=torch.bfloat16)
    caches = [[torch.randn(1, HEADS, CONTEXT, WIDTH, device="cuda", dtype=torch.bfloat16) for _ in range(2)]
              for _ in blocks]

    def step():
        with torch.no_grad():
            y = x
            for block, cache in zip(blocks, caches):
                y = block(y, cache)

    return time_graph(step)


def train_time(layers):
    model = torch.nn.Sequential(*[Layer() for _ in range(layers)]).cuda().bfloat16()
    x = torch.randn(1, CONTEXT, WIDTH, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    return time_graph(lambda: model(x).sum().backward())


if __name__ == "__main__":
    print(torch.cuda.get_device_name())
    for name, measure in (("decode", decode_time), ("train", train_time)):
        times = {layers: measure(layers) for layers in (4, 8, 16, 32)}
        slope = (times[32] - times[8]) / 24
        print(f"{name}: " + ", ".join(f"{n} layers {t:.1f} us" for n, t in times.items()) +
              f"; {slope:.1f} us a layer")
