"""Writes a random LLaMA folder (config.json, model.safetensors) and lines of token ids.

  bench/probe_folder.py FOLDER [--layers 16] [--width 2048] [--dtype bf16] [--windows 16] ...

Matrices have deviation 1 / sqrt(inputs), so that layers change the stream and removing one changes
the loss. Needs PyTorch only.
"""
import argparse
import json
import math
import pathlib
import struct

import torch

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("--layers", type=int, default=16)
parser.add_argument("--width", type=int, default=2048)
parser.add_argument("--heads", type=int, default=32)
parser.add_argument("--key-heads", type=int, default=8)
parser.add_argument("--ffn", type=int, default=8192)
parser.add_argument("--vocab", type=int, default=32000)
parser.add_argument("--dtype", choices=["f32", "bf16"], default="bf16")
parser.add_argument("--windows", type=int, default=16)
parser.add_argument("--tokens", type=int, default=512, help="of each window")
args = parser.parse_args()

D, K = args.width, args.width // args.heads
shapes = {"model.embed_tokens.weight": (args.vocab, D), "model.norm.weight": (D,),
          "lm_head.weight": (args.vocab, D)}
for layer in range(args.layers):
    prefix = f"model.layers.{layer}."
    shapes.update({
        prefix + "input_layernorm.weight": (D,),
        prefix + "post_attention_layernorm.weight": (D,),
        prefix + "self_attn.q_proj.weight": (D, D),
        prefix + "self_attn.k_proj.weight": (args.key_heads * K, D),
        prefix + "self_attn.v_proj.weight": (args.key_heads * K, D),
        prefix + "self_attn.o_proj.weight": (D, D),
        prefix + "mlp.gate_proj.weight": (args.ffn, D),
        prefix + "mlp.up_proj.weight": (args.ffn, D),
        prefix + "mlp.down_proj.weight": (D, args.ffn),
    })

args.folder.mkdir(parents=True, exist_ok=True)
(args.folder / "config.json").write_text(json.dumps({
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": D,
    "num_hidden_layers": args.layers, "num_attention_heads": args.heads,
    "num_key_value_heads": args.key_heads, "intermediate_size": args.ffn,
    "vocab_size": args.vocab, "max_position_embeddings": max(2048, args.tokens),
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": False,
    "hidden_act": "silu", "torch_dtype": "bfloat16" if args.dtype == "bf16" else "float32"},
    indent=1))

size = 2 if args.dtype == "bf16" else 4
header, offset = {}, 0
for name, shape in shapes.items():
    count = math.prod(shape)
    header[name] = {"dtype": args.dtype.upper(), "shape": shape,
                    "data_offsets": [offset, offset + count * size]}
    offset += count * size
text = json.dumps(header).encode()
text += b" " * (-len(text) % 8)
device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(1)
with open(args.folder / "model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    for name, shape in shapes.items():
        if len(shape) == 1:
            values = 1 + 0.1 * torch.randn(shape, device=device)
        else:
            scale = 1.0 if "embed" in name else 1 / math.sqrt(shape[1])
            values = scale * torch.randn(shape, device=device)
        if args.dtype == "bf16":
            values = values.bfloat16().view(torch.int16)
        file.write(values.cpu().numpy().tobytes())

ids = torch.randint(args.vocab, (args.windows, args.tokens), generator=torch.manual_seed(2))
(args.folder / "ids.txt").write_text(
    "".join(" ".join(map(str, row)) + "\n" for row in ids.tolist()))
parameters = sum(math.prod(shape) for shape in shapes.values())
print(f"{args.folder}: {args.layers} x {D}, {parameters / 1e9:.3f} B parameters, "
      f"{args.windows} x {args.tokens} ids")
