#include "probe/windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/random.h"
#include "core/text.h"
#include "data/corpus.h"
#include "data/named_corpora.h"
#include "data/token_set.h"

namespace fathom::probe {
namespace {

namespace fs = std::filesystem;

/// At most this many times the measured text is read; windows are spread over all that is read.
constexpr std::uint64_t kSpread = 4;

std::vector<std::vector<TokenId>> read_rows(const fs::path& path) {
  std::vector<std::vector<TokenId>> rows;
  const std::vector<std::string> lines = split(read_text_file(path), '\n');
  for (std::size_t i = 0; i < lines.size(); ++i) {
    std::vector<TokenId> row;
    const char* at = lines[i].data();
    const char* const end = at + lines[i].size();
    while (at < end) {
      if (*at == ' ' || *at == '\t' || *at == '\r') {
        ++at;
        continue;
      }
      TokenId id = 0;
      const auto [next, error] = std::from_chars(at, end, id);
      if (error != std::errc() || id < -1) {
        throw DataError(
            fmt::format("{}: line {}: not a list of whole numbers", path.string(), i + 1));
      }
      row.push_back(id);
      at = next;
    }
    if (!row.empty()) rows.push_back(std::move(row));
  }
  if (rows.empty()) throw DataError(fmt::format("{}: holds no ids", path.string()));
  return rows;
}

ProbeText from_ids(const TextRequest& request) {
  if (request.task == Task::masked_token && request.targets.empty()) {
    throw ConfigError(
        "an encoder predicts masked tokens: --ids needs --targets, the token at each masked place "
        "and -1 elsewhere");
  }
  ProbeText text;
  text.name = fs::path(request.ids).filename().string();
  const auto rows = read_rows(request.ids);
  std::vector<std::vector<TokenId>> targets;
  if (!request.targets.empty()) {
    targets = read_rows(request.targets);
    if (targets.size() != rows.size()) {
      throw DataError(fmt::format("{}: {} lines where {} has {}", request.targets, targets.size(),
                                  request.ids, rows.size()));
    }
  }
  std::int64_t tokens = 0;
  for (std::size_t i = 0; i < rows.size() && tokens < request.most_tokens; ++i) {
    Window window;
    window.inputs = rows[i];
    if (targets.empty() && request.task == Task::states) {
      window.targets.assign(rows[i].size(), -1);
    } else if (targets.empty()) {
      if (rows[i].size() < 2) {
        throw DataError(fmt::format("{}: window {} has a single id, so nothing to predict",
                                    request.ids, i + 1));
      }
      window.targets.assign(rows[i].begin() + 1, rows[i].end());
      window.targets.push_back(-1);
    } else {
      window.targets = targets[i];
      if (window.targets.size() != window.inputs.size()) {
        throw DataError(fmt::format("{}: line {} has {} targets for {} ids", request.targets, i + 1,
                                    window.targets.size(), window.inputs.size()));
      }
    }
    tokens += request.task == Task::states ? std::ssize(window.inputs) : window.target_count();
    text.windows.push_back(std::move(window));
  }
  return text;
}

/// Tokens of all documents in a row, until there are enough.
std::vector<TokenId> read_tokens(const TextRequest& request, const data::Tokenizer& tokenizer) {
  std::vector<TokenId> ids;
  const fs::path path = data::resolve_corpus(request.text);
  const std::uint64_t enough = kSpread * as_size(request.most_tokens + request.window);
  if (data::is_token_set(path)) {
    const data::TokenSet set(path);
    const data::TokenFile& file = set.file(data::Split::valid);
    std::vector<TokenId> held_out(std::min(file.size(), enough));
    file.copy(0, held_out);
    if (set.tokenizer().hash() == tokenizer.hash()) return held_out;
    tokenizer.encoder()->encode(set.tokenizer().decode(held_out), ids);
    return ids;
  }
  data::CorpusReader reader({{path, {}, {}}}, {});
  const auto encoder = tokenizer.encoder();
  data::Piece piece;
  while (ids.size() < enough && reader.next(piece)) {
    try {
      encoder->encode(piece.text, ids);
    } catch (const DataError& error) {
      throw DataError(fmt::format("{}: {}", piece.origin, error.what()));
    }
  }
  return ids;
}

/// The id that stands for a hidden token.
TokenId mask_token(const data::Tokenizer& tokenizer) {
  for (const char* name : {"[MASK]", "<mask>"}) {
    std::vector<TokenId> ids;
    tokenizer.encoder()->encode(name, ids);
    if (ids.size() == 1) return ids.front();
  }
  throw DataError("the tokenizer has no mask token ([MASK] or <mask>); give --ids and --targets");
}

/// Hides kMaskedShare of `count` positions from `first` on.
void mask_places(Window& window, std::size_t first, std::size_t count, std::size_t number,
                 TokenId mask) {
  const auto hidden =
      std::max<std::size_t>(1, as_size(std::lround(kMaskedShare * as_double(count))));
  std::vector<std::size_t> places(count);
  std::iota(places.begin(), places.end(), first);
  const RandomStream stream(15, number);
  for (std::size_t i = 0; i < hidden; ++i) {
    std::swap(places[i], places[i + stream.below(i, count - i)]);
    window.targets[places[i]] = window.inputs[places[i]];
    window.inputs[places[i]] = mask;
  }
}

/// The stretch of `step` tokens from `begin` on, enclosed by what the tokenizer puts around a text.
Window make_window(const std::vector<TokenId>& ids, std::size_t begin, std::size_t step,
                   const data::Tokenizer& tokenizer, Task task, std::optional<TokenId> mask) {
  Window window;
  const std::vector<TokenId> front = tokenizer.text_start(), back = tokenizer.text_end();
  const auto first = ids.begin() + static_cast<std::ptrdiff_t>(begin);
  const auto last = first + static_cast<std::ptrdiff_t>(step);
  window.inputs = front;
  window.inputs.insert(window.inputs.end(), first, last);
  if (task == Task::next_token) {
    window.targets.assign(window.inputs.begin() + 1, window.inputs.end());
    window.targets.push_back(*last);
    return window;
  }
  window.inputs.insert(window.inputs.end(), back.begin(), back.end());
  window.targets.assign(window.inputs.size(), -1);
  if (mask) mask_places(window, front.size(), step, begin / step, *mask);
  return window;
}

ProbeText from_text(const TextRequest& request, const data::Tokenizer& tokenizer) {
  ProbeText text;
  text.name = fs::path(request.text).filename().string();
  if (text.name.empty()) text.name = request.text;
  text.measures_bytes = true;
  text.token_bytes = tokenizer.token_bytes();
  const std::vector<TokenId> ids = read_tokens(request, tokenizer);
  const bool next = request.task == Task::next_token;
  const std::size_t around =
      tokenizer.text_start().size() + (next ? 0 : tokenizer.text_end().size());
  const std::size_t T = as_size(request.window), ahead = next ? 1 : 0;
  if (around >= T) throw ConfigError("--window is shorter than what stands around a text");
  const std::size_t step = T - around;
  if (ids.empty()) throw DataError(fmt::format("{}: holds no text", request.text));
  if (ids.size() < step + ahead) {
    throw DataError(
        fmt::format("{}: {} tokens are fewer than one window of {}; give a longer text "
                    "or a shorter --window",
                    request.text, ids.size(), T));
  }
  std::optional<TokenId> mask;
  if (request.task == Task::masked_token) mask = mask_token(tokenizer);
  const std::size_t available = (ids.size() - ahead) / step;
  const std::size_t count =
      std::min(available, std::max<std::size_t>(1, as_size(request.most_tokens) / step));
  for (std::size_t i = 0; i < count; ++i) {
    text.windows.push_back(
        make_window(ids, i * available / count * step, step, tokenizer, request.task, mask));
  }
  return text;
}

/// A fixed shuffle, so that the first n windows are spread over the text too.
void spread(std::vector<Window>& windows) {
  std::vector<Window> result;
  const std::size_t count = windows.size();
  std::size_t stride = std::max<std::size_t>(1, count * 5 / 8);
  while (std::gcd(stride, count) != 1) ++stride;
  for (std::size_t i = 0; i < count; ++i) result.push_back(std::move(windows[i * stride % count]));
  windows = std::move(result);
}

}  // namespace

std::int64_t Window::target_count() const {
  return std::count_if(targets.begin(), targets.end(), [](TokenId id) { return id >= 0; });
}

std::int64_t ProbeText::target_count() const {
  std::int64_t count = 0;
  for (const Window& window : windows) count += window.target_count();
  return count;
}

Task task_of(const pretrained::Layout& layout) {
  if (layout.head == pretrained::HeadKind::none) return Task::states;
  return layout.causal ? Task::next_token : Task::masked_token;
}

ProbeText read_probe_text(const TextRequest& request, const data::Tokenizer* tokenizer,
                          const std::string& tokenizer_note) {
  ProbeText text;
  if (!request.ids.empty()) {
    text = from_ids(request);
  } else {
    if (tokenizer == nullptr) {
      throw DataError(fmt::format("no tokenizer for this model ({}); give token ids with --ids",
                                  tokenizer_note));
    }
    text = from_text(request, *tokenizer);
  }
  spread(text.windows);
  return text;
}

}  // namespace fathom::probe
