#!/usr/bin/env python3
"""Table of compare_torch.sh: ours, PyTorch's best mode, the ratio, the share of the measured peak."""
import json
import sys


def main():
    with open(sys.argv[1]) as file:
        ours = json.load(file)
    peers = {}
    with open(sys.argv[2]) as file:
        for line in file:
            row = json.loads(line)
            key = row["layers"], row["width"]
            if key not in peers or row["milliseconds"] < peers[key]["milliseconds"]:
                peers[key] = row
    peak = ours["product_flops_per_second"]
    print(f"{ours['place']}, context {ours['context']}, {ours['batch'] * ours['context']} tokens a "
          f"step, vocabulary {ours['vocab']}; products reach {peak / 1e12:.0f} TFLOP/s\n")
    print("| L x D | ms/step | tokens/s | TFLOP/s | of peak | first step s | memory GB | "
          "PyTorch ms | its mode | its start s | its memory GB | ratio |")
    print("|---" * 12 + "|")
    for row in ours["shapes"]:
        seconds = row["best_seconds"]
        cells = [f"{row['layers']} x {row['width']}", f"{seconds * 1e3:.2f}",
                 f"{row['tokens_per_second_best'] / 1e6:.2f} M",
                 f"{row['flops'] / seconds / 1e12:.0f}", f"{row['share_of_peak']:.0%}",
                 f"{row['first_seconds']:.2f}", f"{row['memory_bytes'] / 1e9:.1f}"]
        peer = peers.get((row["layers"], row["width"]))
        if peer:
            cells += [f"{peer['milliseconds']:.2f}", peer["mode"], f"{peer['warm_seconds']:.0f}",
                      f"{peer['memory_bytes'] / 1e9:.1f}",
                      f"{peer['milliseconds'] / seconds / 1e3:.2f}x"]
        else:
            cells += ["-"] * 5
        print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
