// A small random LLaMA folder with lines of token ids, as `fathom probe` reads it.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/// Numbers near a normal distribution, the same at every call.
function* draw() {
  let state = 12345;
  const uniform = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  for (;;) yield Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}

export function write_model(folder, { layers = 3, width = 32, ffn = 48, vocab = 61 } = {}) {
  const shapes = {
    'model.embed_tokens.weight': [vocab, width],
    'model.norm.weight': [width],
    'lm_head.weight': [vocab, width],
  };
  for (let l = 0; l < layers; ++l) {
    const name = (part) => `model.layers.${l}.${part}.weight`;
    shapes[name('input_layernorm')] = shapes[name('post_attention_layernorm')] = [width];
    for (const part of ['q', 'k', 'v', 'o'])
      shapes[name(`self_attn.${part}_proj`)] = [width, width];
    shapes[name('mlp.gate_proj')] = shapes[name('mlp.up_proj')] = [ffn, width];
    shapes[name('mlp.down_proj')] = [width, ffn];
  }
  const header = {};
  const values = [];
  const numbers = draw();
  for (const [name, shape] of Object.entries(shapes)) {
    const count = shape.reduce((a, b) => a * b);
    const deviation = name.includes('embed') ? 1 : 1.5 / Math.sqrt(shape.at(-1));
    header[name] = {
      dtype: 'F32',
      shape,
      data_offsets: [4 * values.length, 4 * (values.length + count)],
    };
    for (let i = 0; i < count; ++i)
      values.push(shape.length === 1 ? 1 : deviation * numbers.next().value);
  }
  const text = Buffer.from(JSON.stringify(header).padEnd(8 * 1024, ' '));
  const size = Buffer.alloc(8);
  size.writeBigUInt64LE(BigInt(text.length));
  mkdirSync(folder, { recursive: true });
  writeFileSync(
    join(folder, 'model.safetensors'),
    Buffer.concat([size, text, Buffer.from(Float32Array.from(values).buffer)]),
  );
  writeFileSync(
    join(folder, 'config.json'),
    JSON.stringify({
      model_type: 'llama',
      hidden_size: width,
      num_hidden_layers: layers,
      num_attention_heads: 4,
      num_key_value_heads: 4,
      intermediate_size: ffn,
      vocab_size: vocab,
      max_position_embeddings: 64,
      rms_norm_eps: 1e-5,
    }),
  );
  const ids = Array.from({ length: 8 }, (_, w) =>
    Array.from({ length: 32 }, (_, t) => (7 * t * t + 11 * w + 3 * t) % vocab).join(' '),
  );
  writeFileSync(join(folder, 'ids.txt'), `${ids.join('\n')}\n`);
}
