#!/usr/bin/python3
"""Writes tests/golden/*.json: losses, gradients and ten training losses of members of the family.

Runs once where PyTorch exists (Debian: python3-torch); the tests only read the files. Everything
is computed in double precision with plain tensor expressions, so the files are a second opinion
on the mathematics, not on anyone's rounding. Parameters and tokens follow an integer hash that
the tests repeat, so none is stored; a gradient is stored as its norm, its projections on three
hashed directions and four of its elements.

    /usr/bin/python3 tools/make_golden.py tests/golden
"""
import json
import math
import sys

import torch

torch.set_default_dtype(torch.float64)
MASK = (1 << 64) - 1


def name_hash(name):
    h = 14695981039346656037
    for c in name.encode():
        h = ((h ^ c) * 1099511628211) & MASK
    return h


def hashed(stream, count):
    """count numbers in [-1, 1): a splitmix64 finaliser over (stream, index)."""
    out = []
    for i in range(count):
        z = (stream + (i + 1) * 0x9E3779B97F4A7C15) & MASK
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        z ^= z >> 31
        out.append((z >> 40) / float(1 << 23) - 1.0)
    return out


def parameter(name, rows, cols):
    base = 1.0 if name.endswith(".gain") else 0.0
    values = torch.tensor(hashed(name_hash(name), rows * cols)).to(torch.float32).double()
    return (base + 0.2 * values).to(torch.float32).double().reshape(rows, cols).requires_grad_(True)


DEFAULTS = dict(layers=2, width=16, heads=2, key_heads=0, head_size=0, ffn=0, vocab=23, context=12,
                embedding_rank=0, tied=True, biases=True, norm="pre", norm_kind="layer",
                norm_epsilon=1e-5, residual=True, feed_forward=True, activation="gelu", order="",
                attention="softmax", mask="causal", window=0, stride=0, global_tokens=0,
                own_block=False, block_size=0, keys="tokens", projected_length=0,
                attention_norm=False, slice=0, positions="learned",
                rotary_base=10000.0, parametrisation="standard", depth_scheme="none",
                base_width=8, base_layers=1, depth_alpha=1.0)

MEMBERS = {
    "gpt2": dict(activation="gelu_tanh"),
    "llama_grouped": dict(norm_kind="rms", activation="swiglu", positions="rotary", heads=4,
                          key_heads=2, ffn=24, tied=False, biases=False),
    "post_norm_deepnorm": dict(norm="post", depth_scheme="deepnorm", activation="relu"),
    "post_norm_admin": dict(norm="post", depth_scheme="admin", layers=3, mask="bidirectional"),
    "completep": dict(parametrisation="completep", layers=3),
    "eq3": dict(norm="none", residual=False, feed_forward=False, attention="none",
                mask="bidirectional", positions="none", biases=False, tied=False),
    "linear_local_sandwich": dict(attention="linear", window=5, order="ssff", head_size=6),
    "low_rank_strict": dict(embedding_rank=7, mask="strict", norm="none", activation="identity"),
    "window_global_strided": dict(mask="bidirectional", window=2, global_tokens=1, stride=5),
    "own_block": dict(own_block=True, block_size=4),
    "smeared_keys": dict(keys="smeared", heads=4, key_heads=2, positions="rotary"),
    "projected_keys": dict(keys="projected", projected_length=5, mask="bidirectional"),
    "synthesised_keys": dict(keys="synthesised"),
    "normalised": dict(attention="normalised"),
    "unnormalised": dict(attention="none", attention_norm=True, positions="rotary"),
    "sorted_keys": dict(keys="sorted", block_size=4, mask="bidirectional", heads=4, key_heads=2),
    "slices": dict(slice=12, width=18, heads=3, layers=4),
    "linear_bidirectional": dict(attention="linear", mask="bidirectional", head_size=6),
}


class Member:
    def __init__(self, spec):
        self.s = dict(DEFAULTS, **spec)
        self.p = {}

    def get(self, name, rows, cols):
        if name not in self.p:
            self.p[name] = parameter(name, rows, cols)
        return self.p[name]

    def linear(self, name, x, outs, bias):
        y = x @ self.get(name + ".weight", outs, x.shape[-1]).T
        return y + self.get(name + ".bias", 1, outs) if bias else y

    def normalise(self, name, x):
        s = self.s
        gain = self.get(name + ".gain", 1, x.shape[-1])
        if s["norm_kind"] == "rms":
            return x / torch.sqrt((x * x).mean(-1, keepdim=True) + s["norm_epsilon"]) * gain
        c = x - x.mean(-1, keepdim=True)
        bias = self.get(name + ".bias", 1, x.shape[-1])
        return c / torch.sqrt((c * c).mean(-1, keepdim=True) + s["norm_epsilon"]) * gain + bias

    def map_keys(self, name, q, k, v):
        s = self.s
        B, T, wide = k.shape
        if s["keys"] == "smeared":
            G = s["key_heads"] or s["heads"]
            share = torch.sigmoid(self.get(name + ".smear", 1, G)).repeat_interleave(wide // G, 1)
            k = torch.cat([k[:, :1], share * k[:, 1:] + (1 - share) * k[:, :-1]], 1)
        elif s["keys"] == "projected":
            e = self.get(name + ".length_projection", s["projected_length"], T)
            rest = torch.zeros(B, T - s["projected_length"], wide)
            k, v = (torch.cat([e @ t, rest], 1) for t in (k, v))
        elif s["keys"] == "sorted":
            G, L = s["key_heads"] or s["heads"], s["block_size"]
            n, K = T // L, wide // G
            w = self.get(name + ".block_keys", n, wide).reshape(n, G, K)
            k, v = (t.reshape(B, n, L, G, K) for t in (k, v))
            z = torch.einsum("bigc,jgc->bgij", k.mean(2), w)
            for _ in range(8):
                z = z - torch.logsumexp(z, -1, keepdim=True)
                z = z - torch.logsumexp(z, -2, keepdim=True)
            k, v = (torch.einsum("bgij,bjtgc->bitgc", z.exp(), t).reshape(B, T, wide)
                    for t in (k, v))
        elif s["keys"] == "synthesised":
            q = torch.relu(q)
            k = self.get(name + ".position_keys", T, wide).expand(B, T, wide)
        return q, k, v

    def pattern(self, i, j):
        s = self.s
        some = [(i - j).abs() < s["window"]] if s["window"] else []
        if s["stride"]:
            some.append((i - j) % s["stride"] == 0)
        if s["global_tokens"]:
            some += [i < s["global_tokens"], j < s["global_tokens"]]
        if s["own_block"] or s["keys"] == "sorted":
            block = s["block_size"] or 64
            some.append(torch.div(i, block, rounding_mode="floor")
                        == torch.div(j, block, rounding_mode="floor"))
        seen = (i == i) & (j == j)
        if some:
            seen = ~seen
            for part in some:
                seen = seen | part
        return seen & (j < s["projected_length"]) if s["projected_length"] else seen

    def attention(self, name, x):
        s = self.s
        B, T, _ = x.shape
        H, G = s["heads"], s["key_heads"] or s["heads"]
        K = s["head_size"] or x.shape[-1] // H
        qkv = self.linear(name + ".qkv", x, (H + 2 * G) * K, s["biases"])
        q, k, v = qkv.split([H * K, G * K, G * K], -1)
        q, k, v = self.map_keys(name, q, k, v)
        q, k, v = (t.reshape(B, T, -1, K).transpose(1, 2) for t in (q, k, v))
        if s["positions"] == "rotary":
            angle = torch.arange(T)[:, None] * s["rotary_base"] ** (-2.0 * torch.arange(K // 2) / K)
            c, sn = torch.cos(angle), torch.sin(angle)
            def turn(t):
                a, b = t[..., :K // 2], t[..., K // 2:]
                return torch.cat([a * c - b * sn, a * sn + b * c], -1)
            q, k = turn(q), turn(k)
        k, v = (t.repeat_interleave(H // G, 1) for t in (k, v))
        i, j = torch.arange(T)[:, None], torch.arange(T)[None, :]
        allowed = {"causal": j <= i, "strict": j < i, "bidirectional": j == j}[s["mask"]]
        allowed = allowed.expand(T, T)
        allowed = allowed & self.pattern(i, j)
        if s["attention"] == "linear":
            f = lambda t: torch.nn.functional.elu(t) + 1
            w = (f(q) @ f(k).transpose(-1, -2)) * allowed
            w = w / w.sum(-1, keepdim=True)
        else:
            standard = s["parametrisation"] == "standard"
            w = (q @ k.transpose(-1, -2)) * (K ** -0.5 if standard else 8.0 / K)
            if s["attention"] == "softmax":
                w = torch.softmax(w.masked_fill(~allowed, -1e300), -1)
            if s["attention"] == "normalised":
                count = allowed.sum(-1, keepdim=True)
                w = w - (w * allowed).sum(-1, keepdim=True) / count
                w = w / torch.sqrt((w * w * allowed).sum(-1, keepdim=True) / count + 1e-5)
            w = w * allowed  # a row without keys gives zero
        y = (w @ v).transpose(1, 2).reshape(B, T, H * K)
        if s["attention_norm"]:
            y = y / torch.sqrt((y * y).mean(-1, keepdim=True) + s["norm_epsilon"])
            y = y * self.get(name + ".heads_norm.gain", 1, H * K)
        return self.linear(name + ".out", y, x.shape[-1], s["biases"])

    def ffn(self, name, x):
        s = self.s
        F = s["ffn"] or 4 * x.shape[-1]
        u = self.linear(name + ".up", x, 2 * F if s["activation"] == "swiglu" else F, s["biases"])
        fn = torch.nn.functional
        u = {"relu": fn.relu, "gelu": fn.gelu,
             "gelu_tanh": lambda t: fn.gelu(t, approximate="tanh"),
             "swiglu": lambda t: fn.silu(t[..., :F]) * t[..., F:],
             "identity": lambda t: t}[s["activation"]](u)
        return self.linear(name + ".down", u, x.shape[-1], s["biases"])

    def loss(self, tokens, targets):
        s = self.s
        B, T = tokens.shape
        D, rank = s["width"], s["embedding_rank"]
        x = self.get("tokens.weight", s["vocab"], rank or D)[tokens]
        if rank:
            x = x @ self.get("tokens.up", D, rank).T
        if s["positions"] == "learned":
            x = x + self.get("positions.weight", s["context"], D)
        order = s["order"] or ("sf" if s["feed_forward"] else "s") * s["layers"]
        n = len(order)
        stream = {"none": 1.0, "admin": math.sqrt((n + 1) / math.log(n + 1) - 1),
                  "deepnorm": n ** 0.25}[s["depth_scheme"]]
        completep = s["parametrisation"] == "completep"
        branch = (s["layers"] / s["base_layers"]) ** -s["depth_alpha"] if completep else 1.0
        first = 0
        for k, kind in enumerate(order):
            name = f"sub.{k}." + ("attention" if kind == "s" else "ffn")
            if s["slice"]:
                first += s["slice"] // 2 if kind == "s" and k > 0 else 0
                at = (first + torch.arange(s["slice"])) % D
                h = self.normalise(name + ".norm", x[..., at])
                y = self.attention(name, h) if kind == "s" else self.ffn(name, h)
                x = x.index_add(2, at, y)
                continue
            h = self.normalise(name + ".norm", x) if s["norm"] == "pre" else x
            y = self.attention(name, h) if kind == "s" else self.ffn(name, h)
            x = stream * x + branch * y if s["residual"] else y
            if s["norm"] == "post":
                x = self.normalise(name + ".norm", x)
        if s["norm"] == "pre":
            x = self.normalise("final_norm", x)
        if rank:
            x = x @ self.get("head.down.weight", rank, D).T
        w = self.p["tokens.weight"] if s["tied"] else self.get("head.weight", s["vocab"], rank or D)
        scale = 1.0 if s["parametrisation"] == "standard" else s["base_width"] / D
        z = scale * (x @ w.T)
        return torch.nn.functional.cross_entropy(z.reshape(B * T, -1), targets.reshape(-1))

    def multipliers(self, name):
        """(lr, decay, epsilon) of model/parametrisation.h."""
        s = self.s
        vector = name.endswith((".bias", ".gain", ".smear"))
        decay = 0.0 if vector else 1.0
        if s["parametrisation"] == "standard":
            return 1.0, decay, 1.0
        mN, mL, a = s["width"] / s["base_width"], s["layers"] / s["base_layers"], s["depth_alpha"]
        if name in ("tokens.weight", "positions.weight"):
            return 1.0, decay, 1 / mN
        if name.startswith(("final_norm", "head.weight")):
            return 1.0, decay, 1.0
        lr, eps = mL ** (a - 1), mL ** -a / mN
        return (lr, 0.0, eps) if vector else (lr / mN, mN, eps)


def tokens_of(stream, count, vocab):
    return torch.tensor([int((v + 1) / 2 * vocab) for v in hashed(stream, count)])


def golden(spec):
    member = Member(spec)
    s, B = member.s, 2
    ids = tokens_of(1, B * s["context"], s["vocab"]).reshape(B, -1)
    targets = tokens_of(2, B * s["context"], s["vocab"]).reshape(B, -1)
    loss = member.loss(ids, targets)
    loss.backward()
    gradients = {}
    for name, p in member.p.items():
        g = p.grad.reshape(-1)
        stream = name_hash(name)
        picks = [g[(k * 2654435761) % g.numel()].item() for k in range(1, 5)]
        projections = [(g @ torch.tensor(hashed(stream + k, g.numel()))).item() for k in (1, 2, 3)]
        gradients[name] = dict(size=g.numel(), norm=g.norm().item(), projections=projections,
                               picks=picks)
    lr, decay, epsilon = 0.01, 0.1, 1e-8
    groups = []
    for name, p in member.p.items():
        m_lr, m_decay, m_eps = member.multipliers(name)
        groups.append(dict(params=[p], lr=lr * m_lr, weight_decay=decay * m_decay,
                           eps=epsilon * m_eps))
    optimiser = torch.optim.AdamW(groups, betas=(0.9, 0.95))
    losses = []
    for step in range(10):
        optimiser.zero_grad()
        loss = member.loss(ids, targets)
        losses.append(loss.item())
        loss.backward()
        torch.nn.utils.clip_grad_norm_(member.p.values(), 1.0)
        optimiser.step()
    spec_out = {k: v for k, v in s.items() if v != DEFAULTS[k] or k in ("base_width", "base_layers")}
    return dict(spec=spec_out, losses=losses, gradients=gradients)


for title, changes in MEMBERS.items():
    with open(f"{sys.argv[1]}/{title}.json", "w") as file:
        json.dump(golden(changes), file)
    print(title)
