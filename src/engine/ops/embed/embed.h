// Rows of a table chosen by token, plus a learned row for the position.
//
//   y[n, :] = scale * table[token[n], :] + positions[n mod T, :]
//
// Backward: d_table[v, :] += scale * sum over n with token[n] = v of dy[n, :], in order of n, so
// that the sum is the same on every run; d_positions[t, :] += sum over n = t mod T of dy[n, :].
//
// tokens i32 [N, 1], table f32 [V, D], positions f32 [T, D] or none, y [N, D] f32 or bf16.
// Tokens must lie in [0, V): the host checks them before it writes them.
#pragma once

#include "engine/plan/uses.h"

namespace fathom::engine {

class StepPlan;
class Differentiator;

struct Embed {
  TensorId tokens, table, positions, y;
  float scale = 1;

  Uses uses() const { return {{tokens, table, positions}, {y}}; }
};

struct EmbedBackward {
  TensorId dy, tokens;
  TensorId d_table, d_positions;
  GradMode d_table_mode = GradMode::overwrite;
  GradMode d_positions_mode = GradMode::overwrite;
  float scale = 1;

  Uses uses() const { return {{dy, tokens}, {d_table, d_positions}}; }
};

void check(const Embed& op, const StepPlan& plan);
void differentiate(const Embed& op, Differentiator& out);

}  // namespace fathom::engine
