#include "probe/device_sweep.h"

#include <algorithm>

#include "core/counts.h"
#include "core/error.h"
#include "pretrained/device_forward.h"

namespace fathom::probe {
namespace {

using pretrained::DeviceFloats;
using pretrained::DeviceForward;

/// One chunk of windows on its way through the layers.
class DeviceRun {
 public:
  DeviceRun(const SweepControl& control, const pretrained::Forward& host,
            std::span<const Window> windows, const Path& base, const std::vector<Variant>& variants)
      : control_(control),
        host_(host),
        math_(control.device->math()),
        windows_(windows),
        base_(base),
        variants_(variants),
        forward_(*control.device, host, std::ssize(windows)),
        per_window_(host.tokens() * control.device->layout().width),
        travellers_(variants.size()),
        streams_(windows.size()),
        losses_(windows.size()) {
    for (const Window& window : windows) {
      targets_.insert(targets_.end(), window.targets.begin(), window.targets.end());
    }
    for (WindowLosses& losses : losses_) losses.variants.resize(variants.size());
  }

  void run() {
    embed();
    for (std::size_t stage = 0; stage < base_.size(); ++stage) {
      if (control_.stop && control_.stop()) throw StoppedError("stopped; nothing was written");
      double steps = 1;
      for (std::size_t v = 0; v < variants_.size(); ++v) steps += move(v, stage);
      move_base(base_[stage]);
      if (control_.progress) control_.progress(steps * as_double(windows_.size()));
    }
    finish(state_, [&](WindowLosses& losses) -> std::vector<float>& { return losses.base; });
    for (std::size_t v = 0; v < variants_.size(); ++v) {
      if (travellers_[v].finished) continue;  // the base itself: it forks after the last layer
      for (WindowLosses& losses : losses_) losses.variants[v] = losses.base;
    }
  }

  const WindowStreams& streams(std::size_t window) const { return streams_[window]; }
  const WindowLosses& losses(std::size_t window) const { return losses_[window]; }

 private:
  struct Traveller {  // one variant over all windows
    std::size_t next_step = 0;
    bool finished = false;
    DeviceFloats state;
  };

  std::int64_t count() const { return std::ssize(windows_) * per_window_; }
  std::int64_t bytes(std::int64_t numbers) const { return numbers * std::int64_t{sizeof(float)}; }

  void embed() {
    std::vector<float> all(as_size(count()));
    run_tasks(control_.threads, windows_.size(), [&](std::size_t w, std::size_t) {
      host_.embed(windows_[w].inputs, all.data() + static_cast<std::int64_t>(w) * per_window_);
    });
    state_ = DeviceFloats(math_, all);
    fetch(
        state_, [](WindowStreams & streams) -> auto& { return streams.states; });
  }

  /// Appends a stream from the device to a list of each window.
  template <class List>
  void fetch(const DeviceFloats& from, const List& list) {
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      std::vector<float>& to = list(streams_[w]).emplace_back(as_size(per_window_));
      math_.download(from.data() + static_cast<std::int64_t>(w) * per_window_, bytes(per_window_),
                     to.data());
    }
  }

  void move_base(std::int64_t layer) {
    pretrained::DeviceWatch watch;
    if (control_.keep_middles) {
      if (!middle_.exists()) middle_ = DeviceFloats(math_, count());
      watch.middle = middle_.data();
    }
    forward_.run_layer(layer, state_.data(), {}, watch);
    if (control_.keep_middles) {
      fetch(
          middle_, [](WindowStreams & streams) -> auto& { return streams.middles; });
    }
    fetch(
        state_, [](WindowStreams & streams) -> auto& { return streams.states; });
  }

  /// Moves as far as the base's layers up to this one allow; returns the number of steps taken. The
  /// base has not yet moved through this layer, so a variant that forks here starts from its state.
  double move(std::size_t v, std::size_t stage) {
    const Variant& variant = variants_[v];
    Traveller& own = travellers_[v];
    if (own.finished || variant.fork > stage) return 0;
    if (!own.state.exists()) {
      own.state = DeviceFloats(math_, count());
      math_.copy(state_.data(), bytes(count()), own.state.data());
    }
    double steps = 0;
    for (; own.next_step < variant.steps.size(); ++own.next_step, ++steps) {
      const Step& step = variant.steps[own.next_step];
      if (step.layer > base_[stage]) return steps;
      take(step, own.state);
    }
    finish(own.state, [&](WindowLosses& l) -> std::vector<float>& { return l.variants[v]; });
    own.finished = true;
    own.state = DeviceFloats();
    return steps;
  }

  void take(const Step& step, DeviceFloats& state) {
    if (!step.instead) return forward_.run_layer(step.layer, state.data(), step.edit, {});
    const LayerMap& map = *step.instead;
    const DeviceFloats bias(math_, map.bias);
    if (!map.weight.exists()) {
      return math_.add_bias(state.data(), forward_.rows(), std::ssize(map.bias), bias.data());
    }
    const auto weight = math_.matrix(map.weight.values.data(), map.weight.rows, map.weight.cols);
    DeviceFloats moved(math_, count());
    math_.multiply(state.data(), forward_.rows(), *weight, bias.data(), moved.data());
    std::swap(state, moved);
  }

  template <class Place>
  void finish(const DeviceFloats& state, const Place& place) {
    const std::int64_t T = host_.tokens();
    std::vector<float> all(targets_.size(), 0.0f);
    if (control_.with_losses) forward_.losses(state.data(), targets_, all.data());
    for (std::size_t w = 0; w < windows_.size(); ++w) {
      const auto begin = all.begin() + static_cast<std::int64_t>(w) * T;
      place(losses_[w]).assign(begin, begin + T);
    }
  }

  const SweepControl& control_;
  const pretrained::Forward& host_;
  engine::Inference& math_;
  std::span<const Window> windows_;
  const Path& base_;
  const std::vector<Variant>& variants_;
  DeviceForward forward_;
  std::int64_t per_window_;
  std::vector<Traveller> travellers_;
  std::vector<WindowStreams> streams_;
  std::vector<WindowLosses> losses_;
  std::vector<TokenId> targets_;
  DeviceFloats state_, middle_;
};

}  // namespace

std::size_t device_chunk_end(const SweepControl& control, std::span<const Window> windows,
                             std::size_t begin, std::size_t depth, std::size_t variants) {
  const pretrained::Layout& layout = control.device->layout();
  const auto T = std::ssize(windows[begin].inputs);
  std::size_t equal = begin + 1;
  while (equal < windows.size() && std::ssize(windows[equal].inputs) == T) ++equal;
  const std::int64_t state = T * layout.width * std::int64_t{sizeof(float)};
  const auto kept = static_cast<std::int64_t>((control.keep_middles ? 2 : 1) * depth + 1);
  const std::int64_t on_host = static_cast<std::int64_t>(control.memory_bytes) / (kept * state);
  const std::int64_t on_device = control.device->stream_bytes() / 2 /
                                 ((static_cast<std::int64_t>(variants) + 3) * state +
                                  DeviceForward::bytes_per_window(layout, T));
  const std::size_t most = as_size(std::max<std::int64_t>(1, std::min(on_host, on_device)));
  const std::size_t left = equal - begin, chunks = (left + most - 1) / most;
  return begin + (left + chunks - 1) / chunks;
}

void run_device_chunk(const SweepControl& control, const pretrained::Forward& forward,
                      std::span<const Window> windows, std::size_t first, const Path& base,
                      const std::vector<Variant>& variants, const WindowDone& done) {
  DeviceRun run(control, forward, windows, base, variants);
  run.run();
  for (std::size_t w = 0; w < windows.size(); ++w) {
    done(first + w, run.streams(w), run.losses(w));
  }
}

}  // namespace fathom::probe
