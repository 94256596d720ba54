#!/usr/bin/env python3
"""Loads configs that `fathom plan --emit` wrote with transformers and compares parameter counts.

    tools/check_emitted_configs.py FOLDER

FOLDER holds NAME.json (an emitted config) beside NAME.count (the total Fathom reports); make it with
tools/emit_configs.sh. Needs torch and transformers. Models are built on the meta device, so size
costs nothing. Exits 1 on the first difference.
"""
import pathlib
import sys

import torch
from transformers import AutoConfig, AutoModelForCausalLM


def count(config_path):
    config = AutoConfig.from_pretrained(config_path)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)
    # Tied matrices are one parameter object and are listed once.
    return type(model).__name__, sum(p.numel() for p in model.parameters())


def main():
    folder = pathlib.Path(sys.argv[1])
    configs = sorted(folder.glob("*.json"))
    if not configs:
        sys.exit(f"{folder}: no *.json")
    for path in configs:
        expected = int(path.with_suffix(".count").read_text())
        name, found = count(path)
        verdict = "same" if found == expected else "DIFFERENT"
        print(f"{path.stem:24} {name:20} transformers {found:>16,}  fathom {expected:>16,}  {verdict}")
        if found != expected:
            sys.exit(1)
    print(f"{len(configs)} passed, 0 failed")


if __name__ == "__main__":
    main()
