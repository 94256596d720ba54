#!/usr/bin/python3
"""Prints the table of bench/compare_torch_cpu.sh from the outputs of its three runs."""
import json
import math
import sys

f32, bf16 = (json.load(open(path)) for path in sys.argv[1:3])
torch = [json.loads(line) for line in open(sys.argv[3])]
tokens = f32["batch"] * f32["context"]
print(f"{f32['threads']} threads, batch {f32['batch']} x {f32['context']}, vocabulary "
      f"{f32['vocab']}; tokens/s, best step; product peaks "
      f"{f32['product_flops_per_second'] / 1e9:.0f} (f32) and "
      f"{bf16['product_flops_per_second'] / 1e9:.0f} (bf16) GFLOP/s\n")
print(f"{'L x D':>8} {'PyTorch':>9} {'f32':>9} {'ratio':>6} {'of peak':>8} {'bf16':>9} {'ratio':>6}"
      f" {'of peak':>8} {'memory':>9} {'PyTorch process':>16}")
ratios = {"f32": [], "bf16": []}
for base, full, half in zip(torch, f32["shapes"], bf16["shapes"]):
    speed = {"torch": tokens / base["best_seconds"]}
    for name, row in (("f32", full), ("bf16", half)):
        speed[name] = row["tokens_per_second_best"]
        ratios[name].append(speed[name] / speed["torch"])
    print(f"{base['shape']:>8} {speed['torch']:9.0f} {speed['f32']:9.0f} {ratios['f32'][-1]:6.2f}"
          f" {100 * full['share_of_peak']:7.0f}% {speed['bf16']:9.0f} {ratios['bf16'][-1]:6.2f}"
          f" {100 * half['share_of_peak']:7.0f}% {full['memory_bytes'] / 1e6:6.0f} MB"
          f" {base['peak_memory_bytes'] / 1e6:13.0f} MB")
for name, values in ratios.items():
    mean = math.exp(sum(map(math.log, values)) / len(values))
    print(f"{name}: geometric mean {mean:.2f}x, lowest {min(values):.2f}x")
