"""Small line charts as SVG, several side by side, without a plotting library."""
import math
import pathlib

DASHES = ["", "6 3", "2 3", "8 3 2 3", "1 2", "10 4", "4 4", "3 1"]
PANEL_W, PANEL_H, LEFT, TOP, GAP = 330, 240, 62, 34, 78


def short(number):
    return f"{number / 1e6:g}M" if number >= 1e5 else f"{number:g}"


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
        out.append(f'<text x="{px(mark):.1f}" y="{TOP + PANEL_H + 16}" class="m">{short(mark)}</text>')
    out.append(f'<text x="{x0 + LEFT + PANEL_W / 2}" y="{TOP + PANEL_H + 34}" class="m">{x_label}</text>')
    out.append(f'<text x="{x0 + 14}" y="{TOP + PANEL_H / 2}" class="m" transform="rotate(-90 {x0 + 14} {TOP + PANEL_H / 2})">{y_label}</text>')
    dots = max(len(line[0]) for line in lines) <= 50
    for line, colour, dash in lines:
        path = " ".join(f"{px(x):.1f},{py(y):.1f}" for x, y in line)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.8" stroke-dasharray="{dash}"/>')
        if dots:
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
