#!/usr/bin/env python3
"""Writes tests/golden/families/*: small random folders of every family, with the logits of transformers.

Runs once where transformers is installed; tests/pretrained/golden_test.cpp only reads the files. Each
folder holds config.json, model.safetensors (f32) and golden.json: ids and the f32 logits of a forward
pass in eval mode. Sizes are tiny, so that a folder takes some tens of kilobytes.

    python3 tools/make_probe_golden.py tests/golden/families
"""
import json
import pathlib
import sys

import torch
import transformers as tf

D, H, G, K, F, V, L, T = 24, 4, 2, 8, 40, 37, 3, 21
LLAMA = dict(hidden_size=D, intermediate_size=F, num_hidden_layers=L, num_attention_heads=H, num_key_value_heads=G, vocab_size=V,
             max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
CLASSIC = dict(hidden_size=D, num_hidden_layers=L, num_attention_heads=H, vocab_size=V, max_position_embeddings=64)


def rope(kind, **more):
    return dict(rope_scaling=dict(rope_type=kind, **more))


CASES = {
    "gpt2": lambda: tf.GPT2LMHeadModel(tf.GPT2Config(n_embd=D, n_layer=L, n_head=H, n_positions=64, vocab_size=V)),
    "llama": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**LLAMA)),
    "llama_linear": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**LLAMA, **rope("linear", factor=4.0))),
    "llama_llama3": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**LLAMA, **rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32))),
    "llama_yarn": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**LLAMA, **rope("yarn", factor=4.0, original_max_position_embeddings=16))),
    "llama_dynamic": lambda: tf.LlamaForCausalLM(tf.LlamaConfig(**{**LLAMA, "max_position_embeddings": 16}, **rope("dynamic", factor=2.0))),
    "mistral": lambda: tf.MistralForCausalLM(tf.MistralConfig(**LLAMA, sliding_window=7)),
    "smollm3": lambda: tf.SmolLM3ForCausalLM(tf.SmolLM3Config(**{**LLAMA, "num_hidden_layers": 4}, no_rope_layers=[1, 0, 1, 0])),
    "qwen2": lambda: tf.Qwen2ForCausalLM(tf.Qwen2Config(**LLAMA, tie_word_embeddings=True)),
    "qwen3": lambda: tf.Qwen3ForCausalLM(tf.Qwen3Config(**LLAMA, head_dim=K)),
    "gpt_neox": lambda: tf.GPTNeoXForCausalLM(tf.GPTNeoXConfig(**CLASSIC, intermediate_size=F, rotary_pct=0.5)),
    "gpt_neox_sequential": lambda: tf.GPTNeoXForCausalLM(tf.GPTNeoXConfig(**CLASSIC, intermediate_size=F, rotary_pct=1.0, use_parallel_residual=False)),
    "opt": lambda: tf.OPTForCausalLM(tf.OPTConfig(**CLASSIC, ffn_dim=F, word_embed_proj_dim=D)),
    "opt_post": lambda: tf.OPTForCausalLM(tf.OPTConfig(**CLASSIC, ffn_dim=F, word_embed_proj_dim=16, do_layer_norm_before=False)),
    "gemma2": lambda: tf.Gemma2ForCausalLM(tf.Gemma2Config(**{**LLAMA, "num_hidden_layers": 4}, head_dim=K, query_pre_attn_scalar=12, sliding_window=5)),
    "gemma3": lambda: tf.Gemma3ForCausalLM(tf.Gemma3TextConfig(**{**LLAMA, "num_hidden_layers": 6}, head_dim=K, query_pre_attn_scalar=12, sliding_window=5)),
    "phi3": lambda: tf.Phi3ForCausalLM(tf.Phi3Config(**LLAMA)),
    "phi3_longrope": lambda: tf.Phi3ForCausalLM(tf.Phi3Config(**LLAMA, original_max_position_embeddings=16, **rope("longrope", short_factor=[1.0, 1.1, 1.2], long_factor=[2.0, 3.0, 4.0]))),
    "olmo2": lambda: tf.Olmo2ForCausalLM(tf.Olmo2Config(**LLAMA)),
    "bert": lambda: tf.BertForMaskedLM(tf.BertConfig(**CLASSIC, intermediate_size=F)),
    "roberta": lambda: tf.RobertaForMaskedLM(tf.RobertaConfig(**CLASSIC, intermediate_size=F, pad_token_id=1)),
}


def randomise(model):
    """Every parameter away from its initial value: gains and biases too."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise * (0.25 if parameter.ndim > 1 else 0.1))


def main(target):
    for name, make in CASES.items():
        torch.manual_seed(0)
        model = make().float().eval()
        randomise(model)
        folder = pathlib.Path(target) / name
        model.save_pretrained(folder, safe_serialization=True)
        for extra in ("generation_config.json",):
            (folder / extra).unlink(missing_ok=True)
        ids = [(7 * t * t + 3 * t + 2) % V for t in range(T)]
        ids = [i if i != 1 else 3 for i in ids]  # RoBERTa skips positions at its padding id
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0].double()
        golden = dict(transformers=tf.__version__, ids=ids, logits=[[round(x, 7) for x in row] for row in logits.tolist()])
        (folder / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
        print(name, tuple(logits.shape), float(logits.abs().max()))


if __name__ == "__main__":
    main(sys.argv[1])
