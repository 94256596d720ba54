#!/usr/bin/python3
"""Tables (Markdown, on stdout) and pictures (SVG) of how well a parametrisation transfers.

    transfer_page.py coordinates FOLDER PICTURE.svg   of bench/coordinate_check.sh
    transfer_page.py sweep SWEEP.csv PICTURE.svg      of bench/learning_rate_sweep.sh

The same input gives the same bytes.
"""
import csv
import json
import math
import pathlib
import sys

from line_chart import DASHES, write_svg

COLOURS = {"standard": "#b5482f", "mup": "#8a6d00", "completep": "#1f6f8b"}


def exponent(points):
    xs, ys = [math.log(x) for x, _ in points], [math.log(y) for _, y in points]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys)) / sum((x - mx) ** 2 for x in xs)


def coordinates(folder, picture):
    curves, dashes = [], {}
    for path in sorted(pathlib.Path(folder).glob("*.json")):
        kind, rate = path.stem.split("_")
        rows = json.loads(path.read_text())["rows"]
        by = {axis: [row for row in rows if row["varied"] == axis] for axis in ("width", "layers")}
        curves.append((kind, float(rate), by["width"], by["layers"]))
    curves.sort(key=lambda c: (c[0] != "standard", c[0], c[1]))
    for c in curves:
        dashes.setdefault(c[1], DASHES[len(dashes)])
    measures = [("stream_rms", "size"), ("stream_moved", "movement")]
    panels = []
    for axis, pick, key in (("width", 2, "width"), ("depth", 3, "layers")):
        for measure, name in measures:
            print(f"\n### {name.capitalize()} of the last stream against {axis}\n")
            sizes = [row[key] for row in curves[0][pick]]
            print("| | learning rate | " + " | ".join(str(s) for s in sizes) + " | exponent |")
            print("|---" * (len(sizes) + 3) + "|")
            lines = []
            for c in curves:
                points = [(row[key], row[measure][-1]) for row in c[pick]]
                print(f"| {c[0]} | {c[1]:g} | " + " | ".join(f"{y:.3g}" for _, y in points) + f" | {exponent(points):+.2f} |")
                lines.append((points, COLOURS[c[0]], dashes[c[1]]))
            panels.append((f"{name} against {axis}", axis, "rms", lines, sizes, True))
    legend = [(f"{c[0]}, {c[1]:g}", COLOURS[c[0]], dashes[c[1]]) for c in curves]
    write_svg(picture, panels, legend)


def sweep(table, picture):
    losses = {}
    with open(table, newline="") as file:
        for row in csv.DictReader(file):
            value = float(row["loss"]) if row["loss"] not in ("", "null") else math.inf
            key = (row["parametrisation"], int(row["layers"]), int(row["width"]))
            losses.setdefault(key, {})[float(row["learning_rate"])] = value
    rates = sorted({rate for curve in losses.values() for rate in curve})
    shapes = sorted({key[1:] for key in losses})
    kinds = sorted({key[0] for key in losses}, key=lambda k: k != "standard")
    print("| | L x d | " + " | ".join(f"{rate:g}" for rate in rates) + " | best | steps of 2 from the smallest |")
    print("|---" * (len(rates) + 4) + "|")
    panels, dashes = [], {shape: DASHES[k % len(DASHES)] for k, shape in enumerate(shapes)}
    for kind in kinds:
        base, lines = None, []
        for shape in shapes:
            curve = losses.get((kind, *shape))
            if not curve:
                continue
            best = min(curve, key=lambda rate: curve[rate])
            base = base or best
            cells = []
            for rate in rates:
                loss = curve.get(rate)
                text = "" if loss is None else "diverged" if loss == math.inf else f"{loss:.4f}"
                cells.append(f"**{text}**" if rate == best else text)
            edge = " (edge)" if best in (rates[0], rates[-1]) else ""
            print(f"| {kind} | {shape[0]} x {shape[1]} | " + " | ".join(cells) +
                  f" | {best:g}{edge} | {math.log2(best / base):+.0f} |")
            points = [(r, curve[r]) for r in rates if curve.get(r, math.inf) < math.inf]
            lines.append((points, COLOURS[kind], dashes[shape]))
        panels.append((kind, "learning rate", "held-out loss (nats per token)", lines, rates, False))
    write_svg(picture, panels, [(f"{s[0]} x {s[1]}", "#444", dashes[s]) for s in shapes])


if __name__ == "__main__":
    if len(sys.argv) != 4 or sys.argv[1] not in ("coordinates", "sweep"):
        sys.exit(__doc__)
    (coordinates if sys.argv[1] == "coordinates" else sweep)(sys.argv[2], sys.argv[3])
