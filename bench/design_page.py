#!/usr/bin/python3
"""The picture of what a design saves.

    planted_truth 16 rounds 9101 b > rounds.csv
    design_page.py rounds.csv PICTURE.svg

For every error the median over worlds of what it took to get there, in `levine` grids of one seed.
A world that did not get there counts as infinite. The same input gives the same bytes.
"""
import collections
import math
import sys

from line_chart import write_svg

ONE_GRID = 9.412e16  # FLOPs
COLOURS = {"grid": "#b5482f", "design": "#1f6f8b"}


def read(path):
    """goal -> kind -> world -> [(FLOPs, error)]"""
    goals = {}
    with open(path) as file:
        for line in file:
            cells = line.strip().split(",")
            if len(cells) != 5 or cells[0] not in COLOURS:
                continue
            kind, goal, world, cost, error = cells
            worlds = goals.setdefault(goal, {k: collections.defaultdict(list) for k in COLOURS})
            worlds[kind][world].append((float(cost), float(error)))
    return goals


def median_cost(worlds, error):
    costs = sorted(next((c for c, e in sorted(rounds) if e <= error), math.inf)
                   for rounds in worlds.values())
    return costs[len(costs) // 2]


def main(table, picture):
    panels = []
    for goal, kinds in read(table).items():
        errors = [e for k in kinds.values() for rounds in k.values() for _, e in rounds if e < 1e3]
        top = sorted(errors)[len(errors) * 9 // 10]
        bottom = min(errors)
        levels = [top * (bottom / top) ** (i / 30) for i in range(31)]
        lines = []
        for kind, worlds in kinds.items():
            points = [(median_cost(worlds, e) / ONE_GRID, e) for e in levels]
            lines.append(([p for p in points if p[0] < math.inf], COLOURS[kind], ""))
        panels.append((f"{goal}", "FLOPs, in grids of one seed", "standard error", lines,
                       [0.1, 0.2, 0.5, 1, 2, 5, 10], True))
    write_svg(picture, panels, [(f"{k}, median", c, "") for k, c in COLOURS.items()])


main(*sys.argv[1:])
