#include "lab/trained/wide_deep_grid.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "core/hash.h"
#include "train/step_benchmark.h"

namespace fathom::lab {
namespace {

using data::TaskKind;

constexpr double kTimedSeconds = 0.5;  // at most, for each model
constexpr std::int64_t kTimedBatch = 32;
constexpr const char* kClassFirst = "class_first = true\n";
constexpr const char* kInPlace = "in_place = true\n";
constexpr const char* kLongLists =
    "class_first = true\ndepth = 10\narguments = 10\nlengths = [501, 1999]\n";

std::string no_keys(int /*context*/) {
  return "";
}

/// docs/attention.md has the papers. Windows and blocks are shares of the context, so that a
/// mechanism is as sparse in a short task as in a long one.
std::vector<Mechanism> ten_mechanisms() {
  return {
      {"softmax", no_keys},
      {"local blocks",
       [](int T) { return fmt::format("own_block = true\nblock_size = {}\n", T / 4); }},
      {"strided sparse",
       [](int T) { return fmt::format("window = {}\nstride = {}\n", T / 8, T / 8); }},
      {"Longformer", [](int T) { return fmt::format("window = {}\nglobal_tokens = 1\n", T / 8); }},
      {"BigBird",
       [](int T) {
         return fmt::format("window = {}\nglobal_tokens = 1\nrandom_blocks = 2\nblock_size = {}\n",
                            T / 16, T / 16);
       }},
      {"linear", [](int) -> std::string { return "attention = \"linear\"\n"; }},
      {"Performer",
       [](int) -> std::string { return "attention = \"performer\"\nfeatures = 32\n"; }},
      {"Linformer",
       [](int T) { return fmt::format("keys = \"projected\"\nprojected_length = {}\n", T / 4); }},
      {"Sinkhorn",
       [](int T) { return fmt::format("keys = \"sorted\"\nblock_size = {}\n", T / 8); }},
      {"Synthesizer", [](int) -> std::string { return "keys = \"synthesised\"\n"; }},
  };
}

WideGrid softmax_grid(bool quick) {
  const std::vector<Mechanism> softmax{{"softmax", no_keys}};
  if (quick) {
    return {"softmax",
            64,
            {{TaskKind::era, kClassFirst, 128, 400, 16, 300},
             {TaskKind::sort, kInPlace, 32, 200, 32, 300}},
            {{"4 layers", 4, 2, 128}, {"1 layer", 1, 8, 128}, {"1 layer, equal size", 1, 8, 512}},
            softmax};
  }
  return {"softmax",
          128,
          {{TaskKind::listops, kClassFirst, 128, 4000, 128, 5000},
           {TaskKind::era, kClassFirst, 1024, 2000, 16, 2500},
           {TaskKind::same_speaker, kClassFirst, 1024, 2000, 16, 2000},
           {TaskKind::sort, kInPlace, 64, 2000, 128, 2500}},
          {{"8 layers of 4 heads", 8, 4, 256},
           {"1 layer of 32", 1, 32, 256},
           {"1 layer of 32, equal size", 1, 32, 2048},
           {"2 layers of 16", 2, 16, 256}},
          softmax};
}

WideGrid mechanism_grid(bool quick) {
  if (quick) {
    return {"mechanisms",
            32,
            {{TaskKind::sort, kInPlace, 32, 200, 32, 150}},
            {{"2 layers of 2 heads", 2, 2, 64}, {"1 layer of 4", 1, 4, 64}},
            ten_mechanisms()};
  }
  return {"mechanisms",
          128,
          {{TaskKind::listops, kClassFirst, 128, 2000, 32, 1000},
           {TaskKind::era, kClassFirst, 256, 2000, 16, 800},
           {TaskKind::same_speaker, kClassFirst, 256, 2000, 16, 800},
           {TaskKind::sort, kInPlace, 64, 1000, 64, 600}},
          {{"8 layers of 2 heads", 8, 2, 256}, {"1 layer of 16", 1, 16, 256}},
          ten_mechanisms()};
}

/// Long Range Arena's lengths, and enough held-out lists that one point is nine standard
/// deviations. After 1,000 steps, the first plan, eight layers still gave the commonest answer.
WideGrid long_grid() {
  return {"long ListOps",
          128,
          {{TaskKind::listops, kLongLists, 2048, 20000, 16, 4000}},
          {{"8 layers of 4 heads", 8, 4, 256}, {"1 layer of 32", 1, 32, 256}},
          {{"softmax", no_keys}}};
}

std::string wide_toml(const WideGrid& grid, const WideTask& task, const WideShape& shape,
                      const Mechanism& mechanism, std::size_t seed) {
  return fmt::format(
      "[data]\ntask = \"{}\"\neval_tokens = {}\n{}"
      "[model]\nlayers = {}\nwidth = {}\nheads = {}\nhead_size = 16\nffn = {}\ncontext = {}\n"
      "mask = \"bidirectional\"\ntied = false\ninit_std = 0.04\n{}"
      "[train]\nsteps = {}\nbatch = {}\nlearning_rate = 1e-3\nschedule = \"linear\"\nfloor = 0.0\n"
      "warmup = {}\nweight_decay = 0.01\nseed = {}\ncheckpoint_every = {}\n",
      name_of(task.kind), task.eval_examples * task.context, task.keys, shape.layers, grid.width,
      shape.heads, shape.ffn, task.context, mechanism.keys(task.context), task.steps, task.batch,
      task.steps / 10, seed, task.steps / 2);
}

Json time_on_processor(const TimedModel& model) {
  model::BuildOptions options;
  options.precision = model::Precision::f32;
  const auto pass = train::time_forward(model.spec.model, options, {}, kTimedSeconds);
  return {{"parameters", pass.parameters},
          {"memory_bytes", pass.memory_bytes},
          {"seconds", pass.best_seconds}};
}

void time_on_gpu(const TimedModel& model, const engine::Device& gpu, Json& result) {
  const auto pass = [&](std::int64_t batch) {
    model::BuildOptions options;
    options.batch = batch;
    options.precision = model::Precision::bf16;
    return train::time_forward(model.spec.model, options, gpu, kTimedSeconds);
  };
  const auto many = pass(kTimedBatch);
  result["gpu_seconds"] = pass(1).best_seconds;
  result["gpu_batch_seconds"] = many.best_seconds;
  result["gpu_batch_bytes"] = many.memory_bytes;
}

/// The GPU comes second: by then the last training runs on it have finished.
Json time_models(const Setup& setup, const Ticker& tick) {
  const std::vector<TimedModel> models = timed_models(setup);
  const bool gpu = setup.device.kind == engine::DeviceKind::cuda;
  Json results = Json::array();
  for (const TimedModel& model : models) {
    results.push_back(time_on_processor(model));
    tick(as_double(results.size()) / as_double(models.size()) / (gpu ? 2 : 1));
  }
  for (std::size_t i = 0; gpu && i < models.size(); ++i) {
    time_on_gpu(models[i], setup.device, results[i]);
    tick(0.5 + as_double(i + 1) / as_double(models.size()) / 2);
  }
  return results;
}

}  // namespace

std::vector<WideGrid> wide_grids(const Setup& setup) {
  std::vector<WideGrid> grids{softmax_grid(setup.quick), mechanism_grid(setup.quick)};
  if (!setup.quick) grids.push_back(long_grid());
  return grids;
}

std::vector<train::RunSpec> wide_specs(const Setup& setup, const WideGrid& grid) {
  std::vector<train::RunSpec> specs;
  for (const Mechanism& mechanism : grid.mechanisms) {
    for (const WideTask& task : grid.tasks) {
      for (const WideShape& shape : grid.shapes) {
        for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
          specs.push_back(lab_run_spec(setup, wide_toml(grid, task, shape, mechanism, seed)));
        }
      }
    }
  }
  return specs;
}

LossGrid wide_accuracies(const WideGrid& grid, std::span<const TrainedRun> runs) {
  const auto place = [](const auto& list, const auto& is_it) {
    return std::find_if(list.begin(), list.end(), is_it) - list.begin();
  };
  return {{runs.begin(), runs.end()},
          [&](const TrainedRun& run) {
            return place(grid.tasks,
                         [&](const WideTask& task) { return task.kind == run.spec.task.kind; });
          },
          [&](const TrainedRun& run) {
            return place(grid.shapes, [&](const WideShape& shape) {
              return shape.layers == run.layers() && shape.ffn == run.spec.model.ffn;
            });
          },
          "accuracy"};
}

std::vector<TimedModel> timed_models(const Setup& setup) {
  const int context = setup.quick ? 128 : 1024;  // of the published text tasks
  const WideTask task{TaskKind::era, kClassFirst, context, 1, 1, 10};
  std::vector<TimedModel> models;
  for (const WideGrid& grid : {softmax_grid(setup.quick), mechanism_grid(setup.quick)}) {
    for (const Mechanism& mechanism : grid.mechanisms) {
      for (const WideShape& shape : grid.shapes) {
        models.push_back({mechanism.name, shape.name,
                          lab_run_spec(setup, wide_toml(grid, task, shape, mechanism, 1))});
      }
    }
  }
  return models;
}

Part latency_part(const Setup& setup) {
  std::string specs;
  for (const TimedModel& model : timed_models(setup)) specs += to_toml(model.spec);
  // Its cost is 0, so that it begins last: other parts would slow it down.
  return {"latency v2 " + hash_bytes(specs).hex(), 0,
          [setup](const Ticker& tick) { return time_models(setup, tick); }};
}

}  // namespace fathom::lab
