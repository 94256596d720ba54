#!/usr/bin/python3
"""Prints the table of bench/compare_torch_cpu.sh, in Markdown, from its folder and its shapes.

Shares of peak are of what two cores of this processor can do at most: 32 FLOPs a cycle and core in
f32, 64 in bf16 pairs, at 3.62 GHz (232 and 463 GFLOP/s).
"""
import json
import math
import pathlib
import sys

PEAK = {"f32": 232e9, "bf16": 463e9}
folder, shapes = pathlib.Path(sys.argv[1]), sys.argv[2].split(",")
ratios = {"f32": [], "bf16": []}
measured = {"f32": 0, "bf16": 0}
print("| L x d | PyTorch | Fathom f32 | ratio | of peak | Fathom bf16 | ratio | of peak"
      " | PyTorch memory | f32 memory | bf16 memory |")
print("|---" * 11 + "|")
for shape in shapes:
    base = json.loads((folder / f"{shape}.torch").read_text())
    cells, memory = [], [base["peak_memory_bytes"]]
    for name in ratios:
        document = json.loads((folder / f"{shape}.{name}").read_text())
        tokens, row = document["batch"] * document["context"], document["shapes"][0]
        speed = row["tokens_per_second_best"]
        ratios[name].append(speed / (tokens / base["best_seconds"]))
        measured[name] = max(measured[name], document["product_flops_per_second"])
        share = row["flops"] / row["best_seconds"] / PEAK[name]
        cells += [f"{speed:,.0f}", f"{ratios[name][-1]:.2f}", f"{100 * share:.0f} %"]
        memory.append(document["peak_memory_bytes"])
    print(f"| {shape.replace('x', ' x ')} | {tokens / base['best_seconds']:,.0f} | " + " | ".join(cells)
          + " | " + " | ".join(f"{bytes / 1e6:,.0f} MB" for bytes in memory) + " |")
print()
for name, values in ratios.items():
    mean = math.exp(sum(map(math.log, values)) / len(values))
    print(f"{name}: geometric mean {mean:.2f}, lowest {min(values):.2f}; products of 1024^3 reach "
          f"{measured[name] / 1e9:.0f} GFLOP/s")
