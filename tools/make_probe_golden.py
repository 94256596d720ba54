#!/usr/bin/env python3
"""Writes tests/golden/families/*: small random folders of every family, with the numbers of transformers.

Runs once where transformers is installed; tests/pretrained/golden_test.cpp and tests/probe/golden_test.cpp
only read the files. Each folder holds config.json, model.safetensors and golden.json: token ids, the f32
logits (the last states where a folder has no head), Block Influence of every layer and the loss without it.
config_old.json, where there is one, says the same in the dialect of transformers 4, and was loaded by
transformers with the same logits. Weights are exact in the stored type, so the type loses nothing.

    python3 tools/make_probe_golden.py tests/golden/families [CASE...]

A case that fails does not stop the others; the last lines say which did.
"""
import json
import pathlib
import shutil
import sys
import tempfile
import traceback

import torch
import transformers as tf

D, H, G, K, F, V, L, T = 24, 4, 2, 8, 28, 37, 2, 21
LLAMA = dict(hidden_size=D, intermediate_size=F, num_hidden_layers=L, num_attention_heads=H, num_key_value_heads=G,
             vocab_size=V, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
CLASSIC = dict(hidden_size=D, num_hidden_layers=L, num_attention_heads=H, vocab_size=V, max_position_embeddings=64)
NEOX = {**CLASSIC, "hidden_size": 32, "intermediate_size": 40, "bos_token_id": 1, "eos_token_id": 2}
GEMMA = dict(head_dim=K, query_pre_attn_scalar=12, sliding_window=5)


def rope(kind, **more):
    return dict(rope_scaling=dict(rope_type=kind, **more))


def llama(**more):
    return tf.LlamaForCausalLM, lambda: tf.LlamaConfig(**{**LLAMA, **more})


def phi3(**more):
    return tf.Phi3ForCausalLM, lambda: tf.Phi3Config(**{**LLAMA, **more})


# name: (class, config); classes by name, so that one that is missing fails alone
CASES = {
    "gpt2": lambda: (tf.GPT2LMHeadModel, lambda: tf.GPT2Config(n_embd=D, n_layer=L, n_head=H, n_positions=64, vocab_size=V)),
    "gpt2_by_layer": lambda: (tf.GPT2LMHeadModel, lambda: tf.GPT2Config(n_embd=D, n_layer=3, n_head=H, n_inner=20, n_positions=64, vocab_size=V, scale_attn_by_inverse_layer_idx=True, activation_function="relu")),
    "llama": lambda: llama(),
    "llama_bias": lambda: llama(attention_bias=True, mlp_bias=True, head_dim=K, rms_norm_eps=1e-3, tie_word_embeddings=True),
    "llama_sharded": lambda: llama(num_hidden_layers=3),
    "llama_linear": lambda: llama(**rope("linear", factor=4.0)),
    "llama_llama3": lambda: llama(head_dim=K, **rope("llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32)),
    "llama_yarn": lambda: llama(head_dim=K, **rope("yarn", factor=4.0, original_max_position_embeddings=16)),
    "llama_yarn_untruncated": lambda: llama(head_dim=K, **rope("yarn", factor=4.0, original_max_position_embeddings=16, beta_fast=4.0, beta_slow=0.5, attention_factor=1.3, truncate=False)),
    "llama_yarn_mscale": lambda: llama(head_dim=K, **rope("yarn", factor=4.0, original_max_position_embeddings=16, mscale=1.2, mscale_all_dim=0.7)),
    "llama_dynamic": lambda: llama(max_position_embeddings=16, **rope("dynamic", factor=2.0)),
    "mistral": lambda: (tf.MistralForCausalLM, lambda: tf.MistralConfig(**LLAMA, sliding_window=7)),
    "mistral_full": lambda: (tf.MistralForCausalLM, lambda: tf.MistralConfig(**LLAMA, sliding_window=None, head_dim=K)),
    "smollm3": lambda: (tf.SmolLM3ForCausalLM, lambda: tf.SmolLM3Config(**{**LLAMA, "num_hidden_layers": 3}, no_rope_layers=[1, 0, 1])),
    "smollm3_interval": lambda: (tf.SmolLM3ForCausalLM, lambda: tf.SmolLM3Config(**{**LLAMA, "num_hidden_layers": 3}, no_rope_layer_interval=2)),
    "qwen2": lambda: (tf.Qwen2ForCausalLM, lambda: tf.Qwen2Config(**LLAMA, tie_word_embeddings=True)),
    "qwen2_window": lambda: (tf.Qwen2ForCausalLM, lambda: tf.Qwen2Config(**LLAMA, use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen3": lambda: (tf.Qwen3ForCausalLM, lambda: tf.Qwen3Config(**LLAMA, head_dim=K)),
    "gpt_neox": lambda: (tf.GPTNeoXForCausalLM, lambda: tf.GPTNeoXConfig(**NEOX, rotary_pct=0.5)),
    "gpt_neox_sequential": lambda: (tf.GPTNeoXForCausalLM, lambda: tf.GPTNeoXConfig(**NEOX, use_parallel_residual=False)),
    "opt": lambda: (tf.OPTForCausalLM, lambda: tf.OPTConfig(**CLASSIC, ffn_dim=F, word_embed_proj_dim=D)),
    "opt_post": lambda: (tf.OPTForCausalLM, lambda: tf.OPTConfig(**CLASSIC, ffn_dim=F, word_embed_proj_dim=16, do_layer_norm_before=False)),
    "gemma2": lambda: (tf.Gemma2ForCausalLM, lambda: tf.Gemma2Config(**{**LLAMA, "num_hidden_layers": 3}, **GEMMA, attn_logit_softcapping=2.0, final_logit_softcapping=5.0)),
    "gemma3": lambda: (tf.Gemma3ForCausalLM, lambda: tf.Gemma3TextConfig(**{**LLAMA, "num_hidden_layers": 6, "hidden_size": 16}, **GEMMA)),
    "gemma3_linear": lambda: (tf.Gemma3ForCausalLM, lambda: tf.Gemma3TextConfig(**{**LLAMA, "hidden_size": 16}, **GEMMA, layer_types=["sliding_attention", "full_attention"], rope_parameters=dict(
        full_attention=dict(rope_type="linear", factor=8.0, rope_theta=1e6), sliding_attention=dict(rope_type="default", rope_theta=1e4)))),
    "phi3": lambda: phi3(sliding_window=6),
    "phi3_partial": lambda: phi3(hidden_size=32, partial_rotary_factor=0.75, tie_word_embeddings=True),
    "phi3_longrope": lambda: phi3(original_max_position_embeddings=16, **rope("longrope", short_factor=[1.0, 1.1, 1.2], long_factor=[2.0, 3.0, 4.0])),
    "phi3_shortrope": lambda: phi3(original_max_position_embeddings=32, **rope("longrope", short_factor=[1.0, 1.1, 1.2], long_factor=[2.0, 3.0, 4.0])),
    "olmo2": lambda: (tf.Olmo2ForCausalLM, lambda: tf.Olmo2Config(**LLAMA)),
    "bert": lambda: (tf.BertForMaskedLM, lambda: tf.BertConfig(**CLASSIC, intermediate_size=F)),
    "bert_bare": lambda: (tf.BertModel, lambda: tf.BertConfig(**CLASSIC, intermediate_size=F, hidden_act="gelu_new")),
    "roberta": lambda: (tf.RobertaForMaskedLM, lambda: tf.RobertaConfig(**CLASSIC, intermediate_size=F, pad_token_id=1)),
}
STORED = {"gpt2": torch.float16, "llama": torch.float32}  # the others bf16


def randomise(model, stored):
    """Every parameter away from its initial value, gains and biases too, and exact in the stored type."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            parameter.add_(noise * (0.25 if parameter.ndim > 1 else 0.1))
            parameter.copy_(parameter.to(stored).float())


def outputs(model, ids):
    with torch.no_grad():
        out = model(torch.tensor([ids]))
    return (out.logits if "logits" in out else out.last_hidden_state)[0].double()


def layers_of(model):
    """The list of layers: the only ModuleList as long as the model is deep."""
    depth = model.config.num_hidden_layers
    found = [m for m in model.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == depth]
    assert len(found) == 1, f"{len(found)} lists of layers"
    return found[0]


def stream_in(args, kwargs):
    return args[0] if args else kwargs["hidden_states"]


def influences(model, ids):
    """1 - cos(h_l, h_{l+1}) averaged over all places but the first; h from hooks, so before any final norm."""
    seen, handles = {}, []

    def watch(layer):
        def hook(_, args, kwargs, output):
            before = stream_in(args, kwargs)[0].double()
            after = (output[0] if isinstance(output, tuple) else output)
            after = (after[0] if after.ndim == 3 else after).double()
            cosine = torch.nn.functional.cosine_similarity(before, after, dim=-1)
            seen[layer] = float((1 - cosine[1:]).mean())
        return hook

    for index, layer in enumerate(layers_of(model)):
        handles.append(layer.register_forward_hook(watch(index), with_kwargs=True))
    outputs(model, ids)
    for handle in handles:
        handle.remove()
    return [seen[layer] for layer in range(len(seen))]


def loss(model, ids):
    """Nats per token of the next token; of the token itself in a masked model."""
    logits = outputs(model, ids)
    masked = "MaskedLM" in type(model).__name__
    logp = torch.log_softmax(logits if masked else logits[:-1], dim=-1)
    targets = torch.tensor(ids if masked else ids[1:])
    return float(-logp.gather(1, targets[:, None]).mean())


def losses_without(model, ids):
    """The loss with each layer in turn handing on its input."""
    def skip(_, args, kwargs, output):
        stream = stream_in(args, kwargs)
        return (stream, *output[1:]) if isinstance(output, tuple) else stream

    result = []
    for layer in layers_of(model):
        handle = layer.register_forward_hook(skip, with_kwargs=True)
        result.append(loss(model, ids))
        handle.remove()
    return result


def reload(cls, folder):
    try:
        model = cls.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    except TypeError:
        model = cls.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager")
    return model.float().eval()


def old_dialect(config):
    """The config as transformers 4 wrote it; None where nothing differs."""
    old = dict(config)
    parameters = old.pop("rope_parameters", None)
    if parameters is None:
        return None
    neox = old["model_type"] == "gpt_neox"
    if "full_attention" in parameters:
        old["rope_local_base_freq"] = parameters["sliding_attention"]["rope_theta"]
        parameters = parameters["full_attention"]
    parameters = dict(parameters)
    kind = parameters.pop("rope_type", "default")
    old["rotary_emb_base" if neox else "rope_theta"] = parameters.pop("rope_theta")
    share = parameters.pop("partial_rotary_factor", None)
    if share is not None:
        old["rotary_pct" if neox else "partial_rotary_factor"] = share
    if kind != "default":
        old["rope_scaling"] = {"type": kind, **parameters}
    types = old.pop("layer_types", None)
    if old["model_type"] == "gemma3_text":
        old["sliding_window_pattern"] = types.index("full_attention") + 1
    old["torch_dtype"] = old.pop("dtype", "float32")
    return old


def write_old_config(cls, folder, ids, expected):
    old = old_dialect(json.loads((folder / "config.json").read_text()))
    if old is None:
        return "no second dialect"
    with tempfile.TemporaryDirectory() as scratch:
        for path in folder.glob("model*"):
            shutil.copy(path, scratch)
        text = json.dumps(old, indent=2) + "\n"
        (pathlib.Path(scratch) / "config.json").write_text(text)
        difference = float((outputs(reload(cls, scratch), ids) - expected).abs().max())
    if difference > 1e-5:
        return f"old dialect differs by {difference:.2e}, left out"
    (folder / "config_old.json").write_text(text)
    return "old dialect the same"


def make(name, target):
    torch.manual_seed(0)
    cls, configure = CASES[name]()
    config = configure()
    config._attn_implementation = "eager"
    stored = STORED.get(name, torch.bfloat16)
    model = cls(config).float().eval()
    randomise(model, stored)
    ids = [(7 * t * t + 3 * t + 2) % V for t in range(T)]
    ids = [i if i != 1 else 3 for i in ids]  # RoBERTa skips positions at its padding id
    expected = outputs(model, ids)
    golden = dict(transformers=tf.__version__, ids=ids, influence=influences(model, ids))
    if cls is not tf.BertModel:
        golden.update(loss=loss(model, ids), without=losses_without(model, ids))
    key = "states" if cls is tf.BertModel else "logits"
    golden[key] = [[round(x, 6) for x in row] for row in expected.tolist()]

    folder = pathlib.Path(target) / name
    shutil.rmtree(folder, ignore_errors=True)
    model.to(stored).save_pretrained(folder, **(dict(max_shard_size="12KB") if name == "llama_sharded" else {}))
    (folder / "generation_config.json").unlink(missing_ok=True)
    difference = float((outputs(reload(cls, folder), ids) - expected).abs().max())
    assert difference < 1e-5, f"the saved folder differs by {difference:.2e}"
    (folder / "golden.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
    dialect = write_old_config(cls, folder, ids, expected)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{name}: {tuple(expected.shape)}, largest {float(expected.abs().max()):.2f}, {size // 1000} kB, {dialect}", flush=True)


def main(target, names):
    failed = []
    for name in names or CASES:
        try:
            make(name, target)
        except Exception as error:
            traceback.print_exc()
            failed.append(f"{name}: {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}")
    print(f"transformers {tf.__version__}, torch {torch.__version__}: {len(names or CASES) - len(failed)} cases written, {len(failed)} failed")
    for line in failed:
        print("FAILED", line)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
