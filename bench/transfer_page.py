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

COLOURS = {"standard": "#b5482f", "mup": "#8a6d00", "completep": "#1f6f8b"}
DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 2", "10 4", "4 4", "3 1"]
PANEL_W, PANEL_H, LEFT, TOP, GAP = 330, 240, 62, 34, 78


def ticks_of(low, high, log):
    if log:
        first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
        marks = [m * 10.0 ** e for e in range(first, last + 1) for m in (1, 2, 5)]
        return [m for m in marks if low <= m <= high]
    step = 10 ** math.floor(math.log10(high - low))
    while (high - low) / step < 3:
        step /= 2
    first = math.ceil(low / step)
    return [k * step for k in range(first, int(high / step) + 1)]


def panel(out, x0, title, x_label, y_label, lines, x_marks, log_y):
    """lines: [(points, colour, dash)], points (x, y) with x on a log scale."""
    points = [p for line in lines for p in line[0]]
    if not points:
        return
    x_low, x_high = min(x_marks), max(x_marks)
    ys = [y for _, y in points]
    y_low, y_high = min(ys), max(ys)
    if log_y:
        y_low, y_high = y_low / 1.15, y_high * 1.15
    else:
        pad = 0.06 * (y_high - y_low or 1)
        y_low, y_high = y_low - pad, y_high + pad

    def px(x):
        return x0 + LEFT + PANEL_W * math.log(x / x_low) / math.log(x_high / x_low)

    def py(y):
        share = math.log(y / y_low) / math.log(y_high / y_low) if log_y else (y - y_low) / (y_high - y_low)
        return TOP + PANEL_H * (1 - share)

    out.append(f'<text x="{x0 + LEFT}" y="{TOP - 12}" class="t">{title}</text>')
    out.append(f'<rect x="{x0 + LEFT}" y="{TOP}" width="{PANEL_W}" height="{PANEL_H}" class="f"/>')
    for mark in ticks_of(y_low, y_high, log_y):
        out.append(f'<line x1="{x0 + LEFT}" x2="{x0 + LEFT + PANEL_W}" y1="{py(mark):.1f}" y2="{py(mark):.1f}" class="g"/>')
        out.append(f'<text x="{x0 + LEFT - 6}" y="{py(mark) + 4:.1f}" class="r">{mark:g}</text>')
    for mark in x_marks:
        out.append(f'<text x="{px(mark):.1f}" y="{TOP + PANEL_H + 16}" class="m">{mark:g}</text>')
    out.append(f'<text x="{x0 + LEFT + PANEL_W / 2}" y="{TOP + PANEL_H + 34}" class="m">{x_label}</text>')
    out.append(f'<text x="{x0 + 14}" y="{TOP + PANEL_H / 2}" class="m" transform="rotate(-90 {x0 + 14} {TOP + PANEL_H / 2})">{y_label}</text>')
    for line, colour, dash in lines:
        path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"/>')
        out.extend(f'<circle cx="{px(x):.1f}" cy="{py(y):.1f}" r="2.4" fill="{colour}"/>' for x, y in line)


def write_svg(path, panels, legend):
    width = len(panels) * (LEFT + PANEL_W + GAP)
    height = TOP + PANEL_H + 56 + 18 * ((len(legend) + 3) // 4)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           "<style>.t{font-weight:600}.f{fill:none;stroke:#888}.g{stroke:#ddd}.r{text-anchor:end}.m{text-anchor:middle}</style>",
           f'<rect width="{width}" height="{height}" fill="#fff"/>']
    for k, arguments in enumerate(panels):
        panel(out, k * (LEFT + PANEL_W + GAP), *arguments)
    for k, (label, colour, dash) in enumerate(legend):
        x, y = LEFT + (k % 4) * 210, TOP + PANEL_H + 56 + 18 * (k // 4)
        out.append(f'<line x1="{x}" x2="{x + 30}" y1="{y - 4}" y2="{y - 4}" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"/>')
        out.append(f'<text x="{x + 36}" y="{y}">{label}</text>')
    out.append("</svg>")
    pathlib.Path(path).write_text("\n".join(out) + "\n")


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
