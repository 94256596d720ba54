// Block Influence and all single-layer removals of a model on lines of token ids, timed: Fathom's
// half of compare_probe.sh. Also the time of one plain pass, to say how many passes they cost.
//
//   probe_removals MODEL IDS cpu|cuda THREADS
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>

#include "core/counts.h"
#include "core/error.h"
#include "engine/cuda/module.h"
#include "engine/device.h"
#include "probe/geometry.h"
#include "probe/own_run.h"
#include "probe/paired.h"
#include "probe/removals.h"

namespace fathom::probe {
namespace {

/// Wall and CPU seconds: the latter hardly depend on what else the machine does.
class Stopwatch {
 public:
  double wall() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  double processor() const { return static_cast<double>(std::clock() - ticks_) / CLOCKS_PER_SEC; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::clock_t ticks_ = std::clock();
};

void run_bench(const std::string& model, const std::string& ids, bool cuda, unsigned threads) {
  pretrained::Weights weights(open_model(model), std::uint64_t{64} << 30);
  const std::int64_t depth = weights.layout().depth(), D = weights.layout().width;
  std::unique_ptr<pretrained::DeviceModel> device;
  if (cuda) {
    device = std::make_unique<pretrained::DeviceModel>(
        weights, engine::cuda_module().make_inference(engine::cuda_options()));
  }
  TextRequest request;
  request.ids = ids;
  const ProbeText text = read_probe_text(request, nullptr, "");
  SweepControl control;
  control.threads = threads;
  control.device = device.get();
  Sweep sweep(weights, control);
  const std::span<const Window> windows(text.windows);
  const Path whole = whole_path(depth);
  std::vector<Variant> removals;
  for (std::int64_t l = 0; l < depth; ++l) {
    removals.push_back(along(whole, path_without(whole, {l})));
  }
  const auto nothing = [](std::size_t, const WindowStreams&, const WindowLosses&) {};
  sweep.run(windows.subspan(0, std::min<std::size_t>(4, windows.size())), whole, removals, nothing);
  const Stopwatch one;
  sweep.run(windows, whole, {}, nothing);
  const double pass = one.wall(), pass_processor = one.processor();

  const Stopwatch watch;
  double loss = 0, tokens = 0, places = 0;
  std::vector<double> influence(as_size(depth)), cost(as_size(depth));
  sweep.run(windows, whole, removals,
            [&](std::size_t w, const WindowStreams& streams, const WindowLosses& losses) {
              tokens += as_double(windows[w].target_count());
              places += as_double(windows[w].inputs.size() - 1);
              for (const float x : losses.base) loss += x;
              run_tasks(threads, as_size(depth), [&](std::size_t l, std::size_t) {
                cost[l] += difference(losses.variants[l], losses.base);
                influence[l] += influence_sum(streams.states[l], streams.states[l + 1], D);
              });
            });
  const double all = watch.wall(), all_processor = watch.processor();
  for (std::size_t l = 0; l < as_size(depth); ++l) {
    cost[l] /= tokens;
    influence[l] /= places;
  }
  const nlohmann::json result{{"seconds", all},
                              {"pass_seconds", pass},
                              {"passes", all / pass},
                              {"processor_seconds", all_processor},
                              {"processor_passes", all_processor / pass_processor},
                              {"allowed_passes", as_double(depth) / 2 + 2},
                              {"layer_runs", Sweep::cost(whole, removals)},
                              {"layers", depth},
                              {"tokens", tokens},
                              {"loss", loss / tokens},
                              {"bi", influence},
                              {"removal", cost}};
  std::cout << result.dump() << "\n";
}

}  // namespace
}  // namespace fathom::probe

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "probe_removals MODEL IDS cpu|cuda THREADS\n";
    return 2;
  }
  try {
    fathom::probe::run_bench(argv[1], argv[2], std::string(argv[3]) == "cuda",
                             static_cast<unsigned>(std::atoi(argv[4])));
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
