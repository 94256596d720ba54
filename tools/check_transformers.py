#!/usr/bin/env python3
"""transformers' half of the comparison of checkpoints (tools/hf_logits.cpp is the other).

    build/release/hf_logits export FOLDER          # Fathom writes models and logits
    tools/check_transformers.py check FOLDER       # transformers loads them and compares
    tools/check_transformers.py make FOLDER        # transformers writes random models and logits
    build/release/hf_logits check FOLDER           # Fathom imports them and compares

Both directions in f32 on the CPU; the largest difference of any logit must stay below 1e-4.
"""
import pathlib
import sys

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

TOLERANCE = 1e-4


def check(folder):
    worst_of_all = 0.0
    for path in sorted(p for p in folder.iterdir() if p.is_dir()):
        model = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager").eval()
        stored = load_file(path / "logits.safetensors")
        with torch.no_grad():
            logits = model(stored["tokens"].long()).logits
        worst = (logits - stored["logits"]).abs().max().item()
        print(f"{path.name}: {type(model).__name__}, largest logit {stored['logits'].abs().max():.3f}, "
              f"largest difference {worst:.2e}")
        worst_of_all = max(worst_of_all, worst)
    sys.exit(0 if worst_of_all <= TOLERANCE else 1)


def make(folder):
    torch.manual_seed(3)
    models = {
        "gpt2": GPT2LMHeadModel(GPT2Config(n_layer=3, n_embd=96, n_head=6, n_positions=64, vocab_size=211)),
        "llama": LlamaForCausalLM(LlamaConfig(num_hidden_layers=3, hidden_size=96, num_attention_heads=6,
                                              num_key_value_heads=2, intermediate_size=160, vocab_size=211,
                                              max_position_embeddings=64)),
    }
    tokens = torch.randint(0, 211, (2, 64))
    for name, model in models.items():
        model.eval()
        with torch.no_grad():
            for parameter in model.parameters():  # larger than the usual start, so that logits differ
                parameter.add_(0.1 * torch.randn_like(parameter))
            logits = model(tokens).logits
        model.save_pretrained(folder / name, safe_serialization=True)
        (folder / name / "generation_config.json").unlink(missing_ok=True)
        save_file({"tokens": tokens.int(), "logits": logits.contiguous()}, folder / name / "logits.safetensors")
        print(f"{name}: largest logit {logits.abs().max():.3f}")


if __name__ == "__main__":
    {"check": check, "make": make}[sys.argv[1]](pathlib.Path(sys.argv[2]))
