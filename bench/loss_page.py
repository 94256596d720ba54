#!/usr/bin/python3
"""Pictures (SVG) and tables (Markdown, on stdout) of losses.

    loss_page.py studies PICTURE.svg NAME=points.csv ...    held-out loss against size, by depth
    loss_page.py steps PICTURE.svg NAME=metrics.jsonl ...   training loss by step, and how far the
                                                            others are from the first

The same input gives the same bytes.
"""
import csv
import json
import math
import sys

from line_chart import DASHES, write_svg

COLOURS = ["#1f6f8b", "#b5482f", "#8a6d00", "#5b4b8a", "#3c7a3c", "#444"]
SIZES = [2e5, 5e5, 1e6, 2e6, 5e6, 1e7, 2e7]


def studies(picture, named):
    panels, depths = [], set()
    for name, path in named:
        runs = {}
        with open(path, newline="") as file:
            for row in csv.DictReader(file):
                runs.setdefault((int(row["layers"]), float(row["params"])), []).append(float(row["loss"]))
        depths |= {layers for layers, _ in runs}
        lines = []
        for k, layers in enumerate(sorted(depths)):
            points = sorted((n, sum(losses) / len(losses)) for (l, n), losses in runs.items() if l == layers)
            lines.append((points, COLOURS[k % len(COLOURS)], ""))
        panels.append((name, "parameters without embeddings", "held-out loss (nats per token)", lines, SIZES, False))
    write_svg(picture, panels, [(f"{layers} layers", COLOURS[k % len(COLOURS)], "") for k, layers in enumerate(sorted(depths))])


def steps(picture, named):
    curves = []
    for name, path in named:
        with open(path) as file:
            rows = [json.loads(line) for line in file]
        curves.append((name, [(row["step"], row["loss"]) for row in rows if "loss" in row and "step" in row]))
    marks = [1, 2, 5, 10, 20, 50, 100, 200]
    lines = [(points, COLOURS[k], DASHES[k]) for k, (_, points) in enumerate(curves)]
    first = dict(curves[0][1])
    away = [([(s, 100 * (loss / first[s] - 1)) for s, loss in points], COLOURS[k], DASHES[k])
            for k, (_, points) in enumerate(curves) if k > 0]
    print("| | last loss | largest relative distance from the first | root mean square |")
    print("|---|---|---|---|")
    for name, points in curves:
        far = [abs(loss / first[s] - 1) for s, loss in points]
        print(f"| {name} | {points[-1][1]:.5f} | {max(far):.2e} | {math.sqrt(sum(f * f for f in far) / len(far)):.2e} |")
    write_svg(picture, [("training loss", "step", "nats per token", lines, marks, False),
                        (f"distance from {curves[0][0]}", "step", "percent", away, marks, False)],
              [(name, COLOURS[k], DASHES[k]) for k, (name, _) in enumerate(curves)])


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[1] not in ("studies", "steps"):
        sys.exit(__doc__)
    (studies if sys.argv[1] == "studies" else steps)(sys.argv[2], [pair.split("=", 1) for pair in sys.argv[3:]])
