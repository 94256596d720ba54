#!/usr/bin/env python3
"""Opens folders that `fathom probe --write` wrote with transformers and compares their loss.

    python3 tools/check_pruned.py FOLDER...

Beside config.json each folder holds check.json: {"ids": [[...], ...], "loss": nats, "layers": count};
optional "targets" (one for each id, -1: does not count) where the loss is not that of the next token.
f32 on the CPU; the loss must agree to 1e-4.
"""
import json
import pathlib
import sys

import torch
import transformers as tf


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    masked = config["model_type"] in ("bert", "roberta")
    cls = tf.AutoModelForMaskedLM if masked else tf.AutoModelForCausalLM
    try:
        model, report = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    except TypeError:
        model, report = cls.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    missing = [k for k in report["missing_keys"] if "lm_head" not in k] + list(report["unexpected_keys"])
    return model.float().eval(), missing


def loss(model, check):
    total, count = 0.0, 0
    for row, ids in enumerate(check["ids"]):
        with torch.no_grad():
            logp = torch.log_softmax(model(torch.tensor([ids])).logits[0].double(), dim=-1)
        targets = check["targets"][row] if "targets" in check else [*ids[1:], -1]
        for place, target in enumerate(targets):
            if target >= 0:
                total -= float(logp[place, target])
                count += 1
    return total / count


def main(folders):
    bad = 0
    for folder in map(pathlib.Path, folders):
        try:
            check = json.loads((folder / "check.json").read_text())
            model, missing = load(folder)
            ours, theirs = check["loss"], loss(model, check)
            right = abs(ours - theirs) < 1e-4 and model.config.num_hidden_layers == check["layers"] and not missing
            print(f"{folder.name}: {type(model).__name__}, {model.config.num_hidden_layers} layers, loss {theirs:.6f}, "
                  f"Fathom {ours:.6f}, {'agrees' if right else 'DIFFERS'}{' ' + str(missing[:3]) if missing else ''}", flush=True)
        except Exception as error:
            right = False
            print(f"{folder.name}: FAILED {type(error).__name__}: {error}", flush=True)
        bad += not right
    print(f"transformers {tf.__version__}: {len(folders) - bad} of {len(folders)} folders agree")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
