"""Block Influence and the cost of removing each layer of a LLaMA folder, the straightforward way:
one pass for the intact model, one for each layer left out. f32, TF32 off.

  bench/probe_torch.py FOLDER IDS [--device cuda] [--threads N] [--batch 8]

Prints JSON: seconds (weights at hand, after one pass to warm up), loss, bi, removal.
"""
import argparse
import json
import pathlib
import struct
import time

import torch
import torch.nn.functional as F

parser = argparse.ArgumentParser()
parser.add_argument("folder", type=pathlib.Path)
parser.add_argument("ids", type=pathlib.Path)
parser.add_argument("--device", default="cpu")
parser.add_argument("--threads", type=int, default=0)
parser.add_argument("--batch", type=int, default=8, help="windows in one pass")
args = parser.parse_args()
if args.threads:
    torch.set_num_threads(args.threads)
torch.backends.cuda.matmul.allow_tf32 = False


def read_safetensors(path):
    types = {"F32": torch.float32, "BF16": torch.bfloat16, "F16": torch.float16}
    with open(path, "rb") as file:
        length = struct.unpack("<Q", file.read(8))[0]
        header = json.loads(file.read(length))
        data = file.read()
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        values = torch.frombuffer(bytearray(data[begin:end]), dtype=types[entry["dtype"]])
        tensors[name] = values.reshape(entry["shape"]).to(args.device).float()
    return tensors


config = json.loads((args.folder / "config.json").read_text())
weights = {}
for part in sorted(args.folder.glob("*.safetensors")):
    weights.update(read_safetensors(part))
L, H = config["num_hidden_layers"], config["num_attention_heads"]
G, D = config["num_key_value_heads"], config["hidden_size"]
K, epsilon = D // H, config["rms_norm_eps"]
ids = torch.tensor([[int(x) for x in line.split()] for line in args.ids.read_text().splitlines()],
                   device=args.device)
T = ids.shape[1]
angles = torch.outer(torch.arange(T, device=args.device).float(),
                     config["rope_theta"] ** (-torch.arange(0, K, 2, device=args.device) / K))
cosines, sines = angles.cos().repeat(1, 2), angles.sin().repeat(1, 2)
mask = torch.full((T, T), float("-inf"), device=args.device).triu(1)


def norm(x, gain):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * gain


def rotate(x):
    a, b = x.chunk(2, -1)
    return x * cosines + torch.cat((-b, a), -1) * sines


def attend(q, k, v):
    if hasattr(F, "scaled_dot_product_attention"):
        return F.scaled_dot_product_attention(q, k, v, is_causal=True)
    return torch.softmax(q @ k.transpose(-1, -2) * K ** -0.5 + mask, -1) @ v


def layer(x, index):
    w = lambda name: weights[f"model.layers.{index}.{name}.weight"]
    heads = lambda y, n: y.view(*x.shape[:2], n, K).transpose(1, 2)
    h = norm(x, w("input_layernorm"))
    q = rotate(heads(F.linear(h, w("self_attn.q_proj")), H))
    k = rotate(heads(F.linear(h, w("self_attn.k_proj")), G)).repeat_interleave(H // G, 1)
    v = heads(F.linear(h, w("self_attn.v_proj")), G).repeat_interleave(H // G, 1)
    x = x + F.linear(attend(q, k, v).transpose(1, 2).reshape(x.shape), w("self_attn.o_proj"))
    h = norm(x, w("post_attention_layernorm"))
    gate = F.silu(F.linear(h, w("mlp.gate_proj")))
    return x + F.linear(gate * F.linear(h, w("mlp.up_proj")), w("mlp.down_proj"))


def run(batch, without=None, influence=None):
    """Sum of losses of a batch; adds to influence[l] if asked."""
    x = weights["model.embed_tokens.weight"][batch]
    for index in range(L):
        if index == without:
            continue
        before, x = x, layer(x, index)
        if influence is not None:
            influence[index] += (1 - F.cosine_similarity(before, x, dim=-1)[:, 1:]).sum().double()
    head = weights.get("lm_head.weight", weights["model.embed_tokens.weight"])
    logits = F.linear(norm(x, weights["model.norm.weight"]), head)
    return F.cross_entropy(logits[:, :-1].reshape(-1, logits.shape[-1]), batch[:, 1:].reshape(-1),
                           reduction="sum").double()


def synchronize():
    if args.device == "cuda":
        torch.cuda.synchronize()


with torch.no_grad():
    batches = ids.split(args.batch)
    run(batches[0])
    synchronize()
    begin = time.perf_counter()
    influence = torch.zeros(L, dtype=torch.float64, device=args.device)
    tokens = ids.shape[0] * (T - 1)
    loss = sum(run(batch, influence=influence) for batch in batches) / tokens
    removal = [(sum(run(batch, without=l) for batch in batches) / tokens - loss).item()
               for l in range(L)]
    synchronize()
    seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "loss": loss.item(), "bi": (influence / tokens).tolist(),
                  "removal": removal, "torch": torch.__version__}))
