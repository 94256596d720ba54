#include "probe/inference.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>
#include <numeric>

#include "core/counts.h"
#include "core/error.h"
#include "core/random.h"
#include "pretrained/forward.h"
#include "probe/sweep.h"

namespace fathom::probe {
namespace {

void require_head(const pretrained::Weights& weights) {
  if (weights.layout().head == pretrained::HeadKind::none) {
    throw ConfigError(fmt::format(
        "{}: an encoder without a head predicts no tokens, so it has no loss", weights.origin()));
  }
}

/// Logits after the last token of a text no longer than the context.
std::vector<float> next_logits(pretrained::Weights& weights, std::span<const TokenId> ids) {
  const pretrained::Layout& layout = weights.layout();
  const pretrained::Forward forward(weights, std::ssize(ids));
  pretrained::Scratch scratch;
  std::vector<float> h(ids.size() * as_size(layout.width));
  forward.embed(ids, h.data());
  for (std::int64_t l = 0; l < layout.depth(); ++l) {
    forward.run_layer(*weights.layer(l), l, h.data(), scratch);
  }
  std::vector<float> logits(as_size(layout.vocab));
  forward.logits(h.data() + h.size() - as_size(layout.width), 1, scratch, logits.data());
  return logits;
}

}  // namespace

TextLoss evaluate_text(pretrained::Weights& weights, const ProbeText& text, unsigned threads) {
  require_head(weights);
  SweepControl control;
  control.threads = threads;
  Sweep sweep(weights, control);
  WindowSums sums;
  sweep.run(text.windows, whole_path(weights.layout().depth()), {},
            [&](std::size_t w, const WindowStreams&, const WindowLosses& losses) {
              sums.add(std::accumulate(losses.base.begin(), losses.base.end(), 0.0),
                       as_double(text.windows[w].target_count()));
            });
  TextLoss result;
  result.loss = estimate(sums);
  result.tokens = text.target_count();
  double bytes = 0;
  for (const Window& window : text.windows) {
    for (const TokenId id : window.targets) {
      if (id >= 0 && as_size(id) < text.token_bytes.size()) bytes += text.token_bytes[as_size(id)];
    }
  }
  if (bytes > 0 && weights.layout().causal) {
    result.bits_per_byte = result.loss.mean * as_double(result.tokens) / bytes / std::numbers::ln2;
  }
  return result;
}

void generate_text(pretrained::Weights& weights, const std::string& prompt,
                   const train::GenerationOptions& options,
                   const std::function<void(std::string_view)>& emit) {
  if (!weights.layout().causal || weights.layout().head == pretrained::HeadKind::none) {
    throw ConfigError(
        fmt::format("{}: generation needs a model that predicts the next token", weights.origin()));
  }
  train::validate(options);
  const data::Tokenizer* tokenizer = weights.tokenizer();
  if (tokenizer == nullptr) {
    throw DataError(fmt::format("no tokenizer for this model: {}", weights.tokenizer_note()));
  }
  std::vector<TokenId> ids = tokenizer->text_start();
  tokenizer->encoder()->encode(prompt, ids);
  if (ids.empty()) ids.push_back(tokenizer->end_of_document());
  const std::size_t context = as_size(weights.layout().context);
  const RandomStream stream(options.seed, 0);
  for (std::int64_t n = 0; n < options.tokens; ++n) {
    const std::size_t seen = std::min(ids.size(), context);
    const std::vector<float> logits =
        next_logits(weights, std::span(ids).subspan(ids.size() - seen));
    ids.push_back(train::sample_token(logits, options, stream.uniform(as_size(n))));
    if (as_size(ids.back()) < tokenizer->vocabulary()) emit(tokenizer->bytes_of(ids.back()));
    if (ids.back() == tokenizer->end_of_document()) return;
  }
}

}  // namespace fathom::probe
