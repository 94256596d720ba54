// Wide against deep (arXiv 2210.00640): the grids of runs, tasks by shapes by mechanisms by seeds.
#pragma once

#include <string>
#include <vector>

#include "lab/frame/experiment.h"
#include "lab/trained/loss_grid.h"
#include "train/run_spec.h"

namespace fathom::lab {

struct WideTask {
  data::TaskKind kind;
  const char* keys;  // of [data], besides the task
  int context, eval_examples, batch, steps;
};

/// All shapes of a grid have the same total number of heads of size 16.
struct WideShape {
  const char* name;
  int layers, heads, ffn;
};
// Their places in a grid's list of shapes.
inline constexpr std::int64_t kDeepShape = 0;
inline constexpr std::int64_t kWideShape = 1;
inline constexpr std::int64_t kMatchedShape = 2;

/// How scores become weights.
struct Mechanism {
  const char* name;
  std::string (*keys)(int context);  // of [model]
};

struct WideGrid {
  const char* name;
  int width;
  std::vector<WideTask> tasks;
  std::vector<WideShape> shapes;
  std::vector<Mechanism> mechanisms;

  std::size_t runs(std::size_t seeds) const {
    return tasks.size() * shapes.size() * mechanisms.size() * seeds;
  }
};

/// Softmax in all shapes; ten mechanisms, deep and wide; softmax on long ListOps (not in --quick).
std::vector<WideGrid> wide_grids(const Setup& setup);

/// The runs of one grid: by mechanism, then task, then shape, then seed.
std::vector<train::RunSpec> wide_specs(const Setup& setup, const WideGrid& grid);

/// Accuracies of one mechanism, tasks by shapes, each by its place in the grid.
LossGrid wide_accuracies(const WideGrid& grid, std::span<const TrainedRun> runs);

/// A model whose forward pass is timed, and the part that times all of them one after the other:
/// the claim's text length, on one thread of the processor and, where runs train there, on a GPU.
struct TimedModel {
  std::string mechanism, shape;
  train::RunSpec spec;
};
std::vector<TimedModel> timed_models(const Setup& setup);
Part latency_part(const Setup& setup);

}  // namespace fathom::lab
