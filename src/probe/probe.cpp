#include "probe/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>

#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "probe/curves.h"
#include "probe/head_copying.h"
#include "probe/head_importance.h"
#include "probe/heads.h"
#include "probe/lens.h"
#include "probe/removals.h"
#include "probe/shape_facts.h"
#include "probe/verdict.h"

namespace fathom::probe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kStreamBytes = 1u << 30, kFitBytes = 512u << 20;
constexpr std::int64_t kLensTokens = 2048, kHeadTokens = 4096, kLargeModel = 300'000'000;
constexpr std::size_t kRepeatedWindows = 4, kMostHeads = 32, kAllHeads = 64,
                      kImportanceWindow = 128;

/// The first windows that together hold at least this many targets.
std::span<const Window> first_windows(std::span<const Window> windows, std::int64_t tokens) {
  std::int64_t sum = 0;
  std::size_t count = 0;
  while (count < windows.size() && sum < tokens) sum += windows[count++].target_count();
  return windows.subspan(0, count);
}

class Probing {
 public:
  Probing(pretrained::Weights& weights, const ProbeText& text, const ProbeOptions& options)
      : weights_(weights),
        layout_(weights.layout()),
        text_(text),
        options_(options),
        sweep_(weights, control(true)),
        plain_(weights, control(false)),
        removals_(layout_.depth()),
        fit_(layout_.depth(), layout_.width, kFitBytes),
        sample_(layout_.depth(), layout_.width, sample_tokens(),
                std::max<std::size_t>(1, text.windows.size() / 4)) {}

  ProbeResult run(const std::string& name) {
    result_.has_loss = layout_.head != pretrained::HeadKind::none;
    describe(name);
    if (result_.has_loss && !layout_.causal) {
      result_.notes.push_back(fmt::format(
          "Losses are of masked tokens: {:.0f} % of the places of every window hold the mask token "
          "and only they count, the same places for every variant.",
          100 * kMaskedShare));
    }
    measure_rounds();
    removals_.fill(result_);
    if (result_.has_loss && !std::isfinite(result_.loss.mean)) {
      throw DataError(fmt::format(
          "{}: the loss on this text is not a finite number: the weights overflow f32", name));
    }
    mark_equal_layers();
    count_bytes();
    sample_.measure(result_.streams, options_.threads);
    result_.rank_tokens = sample_.tokens();
    if (result_.has_loss) {
      measure_replacements();
      measure_lens_part();
      measure_curves_part();
    } else {
      result_.notes.emplace_back(
          "This model has no head for predicting tokens here, so removal costs, curves and the "
          "logit lens are left out.");
    }
    measure_heads_part();
    result_.shape = shape_facts(layout_, result_, options_.hardware);
    result_.seconds = elapsed();
    result_.verdict = make_verdict(result_);
    return std::move(result_);
  }

 private:
  SweepControl control(bool middles) {
    SweepControl c;
    c.threads = options_.threads;
    c.device = options_.device;
    // A model is streamed because memory is short.
    c.memory_bytes = weights_.resident() ? kStreamBytes : kStreamBytes / 2;
    c.keep_middles = middles;
    c.with_losses = layout_.head != pretrained::HeadKind::none;
    c.stop = options_.stop;
    c.progress = [this](double runs) {
      done_ += runs;
      if (options_.progress) options_.progress(part_, planned_ > 0 ? done_ / planned_ : 0);
    };
    return c;
  }
  void begin_part(const std::string& name, double layer_runs) {
    part_ = name;
    done_ = 0;
    planned_ = layer_runs;
    if (options_.progress) options_.progress(part_, 0);
  }
  double elapsed() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  std::int64_t sample_tokens() const {
    return layout_.width <= 1024 ? 8 * std::min<std::int64_t>(layout_.width, 512) : 1024;
  }

  void describe(const std::string& name) {
    ModelFacts& m = result_.model;
    m.name = name;
    m.family = layout_.family;
    m.layers = layout_.depth();
    m.width = layout_.width;
    m.heads = layout_.heads;
    m.key_heads = layout_.key_heads;
    m.head_size = layout_.head_size;
    m.ffn = layout_.ffn;
    m.vocab = layout_.vocab;
    m.context = layout_.context;
    m.parameters = weights_.parameter_count();
    m.causal = layout_.causal;
    result_.text = text_.name;
    result_.window = std::ssize(text_.windows.front().inputs);
  }

  std::size_t next_end(std::size_t done) const {
    if (options_.fixed_tokens) return text_.windows.size();
    const std::span<const Window> all(text_.windows);
    if (done == 0) {
      // Four windows at least: an interval from fewer says little.
      return std::min(all.size(),
                      std::max<std::size_t>(4, first_windows(all, options_.first_tokens).size()));
    }
    return std::min(all.size(), 2 * done);
  }

  void measure_rounds() {
    const std::vector<Variant> none;
    const std::vector<Variant>& variants = result_.has_loss ? removals_.variants() : none;
    const Path whole = whole_path(layout_.depth());
    const double per_window = Sweep::cost(whole, variants);
    std::size_t done = 0;
    while (done < text_.windows.size()) {
      const std::size_t end = next_end(done);
      const double so_far = elapsed();
      if (done > 0 && so_far * as_double(end) / as_double(done) > options_.seconds) {
        result_.stopped_because =
            fmt::format("the time of {} is spent", format_seconds(options_.seconds));
        break;
      }
      begin_part(fmt::format("removing layers, {} windows", end),
                 per_window * as_double(end - done));
      const std::size_t first = done;
      sweep_.run(std::span(text_.windows).subspan(first, end - first), whole, variants,
                 [&](std::size_t w, const WindowStreams& streams, const WindowLosses& losses) {
                   add_window(first + w, streams, losses);
                 });
      main_cost_ += per_window * as_double(end - done);
      done = end;
      if (removals_.settled() && result_.has_loss && !options_.fixed_tokens) {
        result_.stopped_because = "every layer's cost is known to a tenth or to 0.002 nats";
        break;
      }
    }
    if (result_.stopped_because.empty()) {
      result_.stopped_because = options_.fixed_tokens ? "all tokens asked for are measured"
                                                      : "the text or --tokens is spent";
    }
    measured_ = done;
  }

  void add_window(std::size_t index, const WindowStreams& streams, const WindowLosses& losses) {
    WindowLosses all = losses;
    all.variants.resize(removals_.variants().size(), losses.base);
    removals_.add(text_.windows[index], streams, all, layout_.width, options_.threads);
    sample_.add(streams);
    if (index % 2 == 1) fit_.add(streams, options_.threads);  // judged on the even ones
  }

  void mark_equal_layers() {
    std::vector<Hash128> hashes;
    for (std::int64_t l = 0; l < layout_.depth(); ++l) {
      const Hash128 hash = weights_.layer(l)->hash;
      const auto found = std::find(hashes.begin(), hashes.end(), hash);
      if (found != hashes.end()) result_.layers[as_size(l)].same_as = found - hashes.begin();
      hashes.push_back(hash);
    }
  }

  void count_bytes() {
    if (!text_.measures_bytes || !result_.has_loss || !layout_.causal) return;
    double bytes = 0, tokens = 0;
    for (std::size_t w = 0; w < measured_; ++w) {
      for (const TokenId id : text_.windows[w].targets) {
        if (id < 0) continue;
        ++tokens;
        if (as_size(id) < text_.token_bytes.size()) bytes += text_.token_bytes[as_size(id)];
      }
    }
    if (bytes > 0) result_.bits_per_byte = result_.loss.mean * tokens / bytes / std::numbers::ln2;
  }

  void measure_replacements() {
    std::vector<Window> held_out;
    for (std::size_t w = 0; w < measured_; w += 2) held_out.push_back(text_.windows[w]);
    if (fit_.tokens() == 0) {
      result_.notes.emplace_back("One window is too little to fit replacements of layers.");
      return;
    }
    const std::int64_t depth = layout_.depth();
    const bool maps = fit_.can_map();
    if (!maps) {
      result_.notes.push_back(fmt::format(
          "Linear maps in place of layers were not fitted: they need {} tokens for width {} (and "
          "room for their sums).",
          format_whole(8 * layout_.width), layout_.width));
    }
    std::vector<std::shared_ptr<const LayerMap>> shifts(as_size(depth)), linear(as_size(depth));
    run_tasks(options_.threads, as_size(depth), [&](std::size_t l, std::size_t) {
      shifts[l] = fit_.shift(static_cast<std::int64_t>(l));
      if (maps) linear[l] = fit_.map(static_cast<std::int64_t>(l));
    });
    std::vector<Variant> variants;
    for (std::int64_t l = 0; l < depth; ++l) {
      for (const auto* list : {&shifts, &linear}) {
        if (!(*list)[as_size(l)]) continue;
        Variant variant{as_size(l), {{l, {}, (*list)[as_size(l)]}}};
        for (std::int64_t after = l + 1; after < depth; ++after) {
          variant.steps.push_back({after, {}, nullptr});
        }
        variants.push_back(std::move(variant));
      }
    }
    begin_part("replacing layers",
               Sweep::cost(whole_path(depth), variants) * as_double(held_out.size()));
    std::vector<WindowSums> sums(variants.size());
    std::vector<MapFit> fits(as_size(depth));
    plain_.run(held_out, whole_path(depth), variants,
               [&](std::size_t w, const WindowStreams& streams, const WindowLosses& losses) {
                 for (std::size_t v = 0; v < variants.size(); ++v) {
                   sums[v].add(difference(losses.variants[v], losses.base),
                               as_double(held_out[w].target_count()));
                 }
                 if (!maps) return;
                 run_tasks(options_.threads, as_size(depth), [&](std::size_t l, std::size_t) {
                   const MapFit own = judge_map(*linear[l], *shifts[l], streams,
                                                static_cast<std::int64_t>(l), layout_.width);
                   fits[l].residual += own.residual;
                   fits[l].total += own.total;
                 });
               });
    std::size_t v = 0;
    for (LayerResult& layer : result_.layers) {
      layer.shift = estimate(sums[v++]);
      if (!maps) continue;
      layer.linear = estimate(sums[v++]);
      const MapFit& fit = fits[as_size(layer.layer)];
      if (fit.total > 0) layer.linear_fit = 1 - fit.residual / fit.total;
    }
  }

  void measure_lens_part() {
    if (!options_.lens) return;
    const auto windows = first_windows(std::span(text_.windows).subspan(0, measured_), kLensTokens);
    begin_part("logit lens", as_double(windows.size()) * as_double(layout_.depth()));
    result_.lens = measure_lens(plain_, windows);
    for (const Window& window : windows) result_.lens_tokens += window.target_count();
  }

  void measure_curves_part() {
    const std::int64_t depth = layout_.depth();
    if (!options_.curves || depth < 2) return;
    const std::int64_t most = depth <= 8 ? depth - 1 : (depth + 1) / 2;
    const double per_window = curves_cost(depth, most);
    const auto affordable = static_cast<std::size_t>(main_cost_ / per_window);
    const std::size_t count = std::clamp<std::size_t>(affordable, 1, measured_);
    begin_part("cutting several layers", per_window * as_double(count));
    std::vector<double> influence;
    for (const LayerResult& layer : result_.layers) influence.push_back(layer.geometry.influence);
    result_.curves =
        measure_curves(plain_, std::span(text_.windows).subspan(0, count), influence, most);
  }

  void measure_heads_part() {
    if (!options_.heads) return;
    if (!weights_.resident()) {
      result_.notes.emplace_back("Heads are left out: the model is streamed layer by layer.");
      return;
    }
    const auto windows = first_windows(std::span(text_.windows).subspan(0, measured_), kHeadTokens);
    const std::int64_t front = front_length();
    std::int64_t repeat = 0;
    std::vector<Window> repeated;
    if (layout_.causal) {
      repeated = repeated_windows(std::span(text_.windows).subspan(0, measured_), front,
                                  layout_.context, kRepeatedWindows, repeat);
    }
    begin_part("heads", 0);
    std::vector<char> delimiters;
    if (weights_.tokenizer() != nullptr && text_.measures_bytes) {
      delimiters = delimiter_ids(*weights_.tokenizer());
      delimiters.resize(std::max(delimiters.size(), as_size(layout_.vocab)));
    }
    result_.heads = measure_heads(plain_, windows, repeated, front, repeat, delimiters);
    if (!repeated.empty()) measure_head_copying(plain_, repeated.front(), front, result_.heads);
    for (const Window& window : windows) result_.head_tokens += std::ssize(window.inputs);
    if (!result_.has_loss) return;
    measure_importance();
    const std::size_t most = result_.heads.size() <= kAllHeads ? kAllHeads : kMostHeads;
    const double cost =
        as_double(std::min(most, result_.heads.size())) * as_double(layout_.depth()) / 2;
    const auto affordable = static_cast<std::size_t>(main_cost_ / 2 / cost);
    const std::size_t count =
        std::clamp<std::size_t>(affordable, std::min<std::size_t>(2, measured_), measured_);
    begin_part("removing heads", cost * as_double(count));
    measure_head_removals(plain_, std::span(text_.windows).subspan(0, count), most, result_.heads);
    result_.importance_agreement = importance_agreement(result_.heads);
    begin_part("removing heads of a role", as_double(layout_.depth()) * as_double(count));
    result_.role_removals =
        measure_role_removals(plain_, std::span(text_.windows).subspan(0, count), result_.heads);
  }

  /// The backward pass keeps one thread busy per window, so it uses many short windows.
  void measure_importance() {
    const std::size_t most = weights_.parameter_count() > kLargeModel ? 8 : 16;
    std::vector<Window> beginnings;
    for (std::size_t w = 0; w < std::min(most, measured_); ++w) {
      Window& cut = beginnings.emplace_back(text_.windows[w]);
      const std::size_t size = std::min(cut.inputs.size(), kImportanceWindow);
      cut.inputs.resize(size);
      cut.targets.resize(size);
      result_.importance_tokens += cut.target_count();
    }
    begin_part("importance of heads", 0);
    measure_head_importance(plain_, beginnings, result_.heads);
  }

  /// How many ids the windows share at their beginning: what the tokenizer puts there.
  std::int64_t front_length() const {
    if (!text_.measures_bytes || weights_.tokenizer() == nullptr) return 0;
    return std::ssize(weights_.tokenizer()->text_start());
  }

  pretrained::Weights& weights_;
  const pretrained::Layout& layout_;
  const ProbeText& text_;
  const ProbeOptions& options_;
  Clock::time_point start_ = Clock::now();
  Sweep sweep_, plain_;  // with and without the streams after attention
  Removals removals_;
  ReplacementFit fit_;
  StreamSample sample_;
  std::size_t measured_ = 0;
  double main_cost_ = 0;
  std::string part_;
  double done_ = 0, planned_ = 0;
  ProbeResult result_;
};

}  // namespace

ProbeResult probe_model(pretrained::Weights& weights, const ProbeText& text,
                        const std::string& name, const ProbeOptions& options) {
  if (text.windows.empty()) throw DataError("the text holds no window to measure");
  return Probing(weights, text, options).run(name);
}

}  // namespace fathom::probe
