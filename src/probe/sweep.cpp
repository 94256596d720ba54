#include "probe/sweep.h"

#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <numeric>

#include "core/counts.h"
#include "core/error.h"
#include "pretrained/device_forward.h"
#include "pretrained/kernels.h"
#include "probe/device_sweep.h"

namespace fathom::probe {

using pretrained::Forward;
using pretrained::LayerWeights;
using pretrained::Scratch;

namespace {

/// Inputs are checked where they are embedded.
void check_targets(const Window& window, std::int64_t vocab) {
  for (const TokenId id : window.targets) {
    if (id < vocab) continue;
    throw DataError(fmt::format("token {} is outside the model's vocabulary of {}", id, vocab));
  }
}

}  // namespace

Path whole_path(std::int64_t depth) {
  Path path(as_size(depth));
  std::iota(path.begin(), path.end(), std::int64_t{0});
  return path;
}

Path path_without(const Path& path, const std::vector<std::int64_t>& removed) {
  Path left;
  for (const std::int64_t layer : path) {
    if (std::find(removed.begin(), removed.end(), layer) == removed.end()) left.push_back(layer);
  }
  return left;
}

Variant along(const Path& base, const Path& path) {
  Variant variant;
  while (variant.fork < path.size() && path[variant.fork] == base[variant.fork]) ++variant.fork;
  for (std::size_t i = variant.fork; i < path.size(); ++i) {
    variant.steps.push_back({path[i], {}, nullptr});
  }
  return variant;
}

void run_tasks(unsigned threads, std::size_t tasks,
               const std::function<void(std::size_t, std::size_t)>& body) {
  // Inside a parallel region oneDNN uses one thread; outside one it must be told to.
  omp_set_num_threads(static_cast<int>(threads));
  if (threads <= 1) {
    for (std::size_t task = 0; task < tasks; ++task) body(task, 0);
    return;
  }
  std::exception_ptr failure;
  std::atomic<bool> failed{false};
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
#pragma omp for schedule(dynamic, 1)
    for (std::size_t task = 0; task < tasks; ++task) {
      if (failed.load(std::memory_order_relaxed)) continue;
      try {
        body(task, as_size(omp_get_thread_num()));
      } catch (...) {
#pragma omp critical(fathom_probe_failure)
        if (!failed.exchange(true)) failure = std::current_exception();
      }
    }
  }
  if (failure) std::rethrow_exception(failure);
}

Sweep::Sweep(pretrained::Weights& weights, SweepControl control)
    : weights_(weights), control_(std::move(control)), scratch_(std::max(1u, control_.threads)) {}

const Forward& Sweep::forward(std::int64_t tokens) {
  for (const auto& each : forwards_) {
    if (each->tokens() == tokens) return *each;
  }
  if (control_.device != nullptr) {
    forwards_.push_back(
        std::make_unique<pretrained::HostedDeviceForward>(*control_.device, weights_, tokens));
  } else {
    forwards_.push_back(std::make_unique<Forward>(weights_, tokens));
  }
  return *forwards_.back();
}

double Sweep::cost(const Path& base, const std::vector<Variant>& variants) {
  double runs = as_double(base.size());
  for (const Variant& variant : variants) runs += as_double(variant.steps.size());
  return runs;
}

/// One chunk of windows on its way through the layers.
struct Sweep::Run {
  struct Traveller {  // one window of one variant
    std::size_t variant, window, next_step = 0;
    bool begun = false, finished = false;
    std::vector<float> state;
  };

  Sweep& sweep;
  std::span<const Window> windows;
  const Path& base;
  const std::vector<Variant>& variants;
  std::vector<const Forward*> forwards;
  std::vector<WindowStreams> streams;
  std::vector<WindowLosses> losses;
  std::vector<Traveller> travellers;
  std::shared_ptr<const LayerWeights> current, previous;
  std::size_t stage = 0;  // place on the base's path

  const LayerWeights& layer(std::int64_t index) const {
    if (index == base[stage]) return *current;
    if (stage > 0 && index == base[stage - 1]) return *previous;
    throw InternalError("a variant leaves the base's path or goes back too far");
  }

  void finish(std::size_t window, const std::vector<float>& state, std::vector<float>& out,
              Scratch& scratch) const {
    const Window& text = windows[window];
    out.assign(text.targets.size(), 0.0f);
    if (sweep.control_.with_losses) {
      forwards[window]->losses(state.data(), text.targets, scratch, out.data());
    }
  }

  void take_step(const Step& step, std::size_t window, std::vector<float>& state,
                 Scratch& scratch) const {
    if (!step.instead) {
      forwards[window]->run_layer(layer(step.layer), step.layer, state.data(), scratch, step.edit);
      return;
    }
    const LayerMap& map = *step.instead;
    const std::int64_t D = std::ssize(map.bias), T = std::ssize(state) / D;
    if (map.weight.exists()) {
      std::vector<float> moved(state.size());
      pretrained::multiply(state.data(), T, map.weight, map.bias, moved.data());
      state = std::move(moved);
      return;
    }
    for (std::int64_t t = 0; t < T; ++t) {
      pretrained::add_scaled(state.data() + t * D, map.bias.data(), D, 1);
    }
  }

  void move_base(std::size_t window, Scratch& scratch) {
    WindowStreams& own = streams[window];
    std::vector<float> state = own.states.back();
    pretrained::LayerWatch watch;
    if (sweep.control_.keep_middles) {
      own.middles.emplace_back(state.size());
      watch.middle = own.middles.back().data();
    }
    forwards[window]->run_layer(*current, base[stage], state.data(), scratch, {}, watch);
    own.states.push_back(std::move(state));
  }

  /// Moves as far as the layers at hand allow.
  void move(Traveller& t, Scratch& scratch) {
    const Variant& variant = variants[t.variant];
    if (!t.begun) {
      t.state = streams[t.window].states[variant.fork];
      t.begun = true;
    }
    while (t.next_step < variant.steps.size() && variant.steps[t.next_step].layer <= base[stage]) {
      take_step(variant.steps[t.next_step++], t.window, t.state, scratch);
    }
    if (t.next_step < variant.steps.size()) return;
    finish(t.window, t.state, losses[t.window].variants[t.variant], scratch);
    t.finished = true;
    t.state = {};
  }
};

void Sweep::run_chunk(std::span<const Window> windows, std::size_t first, const Path& base,
                      const std::vector<Variant>& variants, const WindowDone& done) {
  Run run{*this, windows, base, variants, {}, {}, {}, {}, nullptr, nullptr};
  run.streams.resize(windows.size());
  run.losses.resize(windows.size());
  for (std::size_t w = 0; w < windows.size(); ++w) {
    run.forwards.push_back(&forward(std::ssize(windows[w].inputs)));
    run.losses[w].variants.resize(variants.size());
    // Variants read states while the base adds its next one, so the lists must not move.
    run.streams[w].states.reserve(base.size() + 1);
    run.streams[w].middles.reserve(base.size());
    for (std::size_t v = 0; v < variants.size(); ++v)
      run.travellers.push_back({v, w, 0, false, false, {}});
  }
  run_tasks(control_.threads, windows.size(), [&](std::size_t w, std::size_t) {
    std::vector<float> state(windows[w].inputs.size() * as_size(weights_.layout().width));
    run.forwards[w]->embed(windows[w].inputs, state.data());
    run.streams[w].states.push_back(std::move(state));
  });
  for (run.stage = 0; run.stage < base.size(); ++run.stage) {
    if (control_.stop && control_.stop()) throw StoppedError("stopped; nothing was written");
    run.previous = std::move(run.current);
    run.current = weights_.layer(base[run.stage]);
    std::vector<Run::Traveller*> moving;
    double steps = as_double(windows.size());
    for (Run::Traveller& t : run.travellers) {
      if (t.finished || variants[t.variant].fork > run.stage) continue;
      moving.push_back(&t);
      const auto& all = variants[t.variant].steps;
      for (std::size_t i = t.next_step; i < all.size() && all[i].layer <= base[run.stage]; ++i) {
        ++steps;
      }
    }
    run_tasks(control_.threads, windows.size() + moving.size(),
              [&](std::size_t task, std::size_t thread) {
                if (task < windows.size()) return run.move_base(task, scratch_[thread]);
                run.move(*moving[task - windows.size()], scratch_[thread]);
              });
    if (control_.progress) control_.progress(steps);
  }
  run_tasks(control_.threads, windows.size(), [&](std::size_t w, std::size_t thread) {
    run.finish(w, run.streams[w].states.back(), run.losses[w].base, scratch_[thread]);
  });
  for (Run::Traveller& t : run.travellers) {
    if (t.finished) continue;  // the base itself: it forks after the last layer
    run.losses[t.window].variants[t.variant] = run.losses[t.window].base;
  }
  for (std::size_t w = 0; w < windows.size(); ++w) done(first + w, run.streams[w], run.losses[w]);
}

std::size_t Sweep::chunk_end(std::span<const Window> windows, std::size_t begin, const Path& base,
                             const std::vector<Variant>& variants) const {
  const std::uint64_t D = as_size(weights_.layout().width);
  const std::uint64_t states = (control_.keep_middles ? 2 : 1) * base.size() + 1 + variants.size();
  std::uint64_t bytes = 0;
  std::size_t end = begin;
  while (end < windows.size()) {
    bytes += states * windows[end].inputs.size() * D * sizeof(float);
    if (end > begin && bytes > control_.memory_bytes) break;
    ++end;
  }
  return end;
}

void Sweep::run(std::span<const Window> windows, const Path& base,
                const std::vector<Variant>& variants, const WindowDone& done) {
  for (const Window& window : windows) check_targets(window, weights_.layout().vocab);
  for (std::size_t begin = 0; begin < windows.size();) {
    if (control_.device != nullptr) {
      const std::size_t end =
          device_chunk_end(control_, windows, begin, base.size(), variants.size());
      run_device_chunk(control_, forward(std::ssize(windows[begin].inputs)),
                       windows.subspan(begin, end - begin), begin, base, variants, done);
      begin = end;
      continue;
    }
    const std::size_t end = chunk_end(windows, begin, base, variants);
    run_chunk(windows.subspan(begin, end - begin), begin, base, variants, done);
    begin = end;
  }
}

}  // namespace fathom::probe
