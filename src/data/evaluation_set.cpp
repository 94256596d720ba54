#include "data/evaluation_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <numbers>

#include "core/counts.h"
#include "core/error.h"
#include "data/batch_sampler.h"

namespace fathom::data {

EvaluationSet::EvaluationSet(const TokenFile& file, std::uint64_t context,
                             std::uint64_t limit_tokens)
    : file_(&file), context_(context) {
  if (context == 0) throw ConfigError("context must be at least 1");
  if (file.size() <= context) {
    throw DataError(
        fmt::format("{}: {} tokens are too few to evaluate a context of {}; take "
                    "a shorter context, or hold out {} tokens or more",
                    file.name(), file.size(), context, context + 1));
  }
  available_ = (file.size() - 1) / context;
  windows_ = std::clamp<std::uint64_t>(limit_tokens / context, 1, available_);
}

std::uint64_t EvaluationSet::position(std::uint64_t window) const {
  __extension__ using Wide = unsigned __int128;
  return context_ * static_cast<std::uint64_t>(static_cast<Wide>(window) * available_ / windows_);
}

std::uint64_t EvaluationSet::read(std::uint64_t first, std::span<TokenId> inputs,
                                  std::span<TokenId> targets) const {
  if (inputs.size() % context_ != 0 || inputs.size() != targets.size()) {
    throw InternalError("EvaluationSet::read: buffers are not whole rows");
  }
  const std::uint64_t rows = inputs.size() / context_;
  std::uint64_t counted = 0;
  for (std::uint64_t row = 0; row < rows; ++row) {
    const bool real = first + row < windows_;
    counted += real;
    read_window(*file_, real ? position(first + row) : 0, inputs.subspan(row * context_, context_),
                targets.subspan(row * context_, context_));
  }
  return counted;
}

std::uint64_t EvaluationSet::target_bytes(std::span<const std::uint32_t> token_bytes) const {
  if (token_bytes.size() < file_->info().vocabulary) {
    throw InternalError("EvaluationSet::target_bytes: the table is shorter than the vocabulary");
  }
  std::vector<TokenId> ids(context_);
  std::uint64_t bytes = 0;
  for (std::uint64_t window = 0; window < windows_; ++window) {
    file_->copy(position(window) + 1, ids);
    for (const TokenId id : ids) bytes += token_bytes[id];
  }
  return bytes;
}

double bits_per_byte(double total_nats, std::uint64_t target_bytes) {
  return total_nats / (std::numbers::ln2 * as_double(target_bytes));
}

}  // namespace fathom::data
