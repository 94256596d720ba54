#include "lab/ranks/rank_parts.h"

#include <fmt/format.h>

#include "core/units.h"
#include "exact/rank_json.h"

namespace fathom::lab {
namespace {

constexpr int kRankVersion = 1;

exact::RankOptions options_of(const RankQuestion& question) {
  exact::RankOptions options;
  options.threads = 1;
  options.max_side = question.max_side;
  if (question.direct) options.method = exact::Method::direct;
  return options;
}

/// Rough seconds: an elimination of the largest grid and its evaluation for two primes.
double estimate(const RankQuestion& question, double bytes) {
  const double side = std::sqrt(bytes / 8);
  const auto positions = static_cast<double>(question.setting.positions);
  const auto width = static_cast<double>(question.setting.width);
  return 2 * (3e-11 * side * side * side + 1e-10 * side * side * positions * width * width);
}

double memory_of(const RankQuestion& question) {
  const double grid = 8 * question.least_rank * question.least_rank;
  return std::max(exact::smallest_memory(question.setting, options_of(question)), grid);
}

/// "the rank of attention with L = 3, d = 30, H = 1 and 60 positions".
std::string words_of(const exact::RankSetting& setting) {
  if (setting.family != exact::Family::attention) {
    return fmt::format("the rank of a {} circuit of {} channels on {} positions",
                       setting.family == exact::Family::conv ? "convolutional" : "recurrent",
                       setting.width, setting.positions);
  }
  return fmt::format("the rank of attention with L = {}, d = {}, H = {} and {} positions",
                     setting.layers, setting.width, setting.heads, setting.positions);
}

}  // namespace

exact::RankSetting attention_setting(std::size_t layers, std::size_t width, std::size_t heads,
                                     std::size_t positions) {
  exact::RankSetting setting;
  setting.layers = layers;
  setting.width = width;
  setting.heads = heads;
  setting.positions = positions == 0 ? 2 * width : positions;
  setting.partition = std::string(setting.positions / 2, '0') +
                      std::string(setting.positions - setting.positions / 2, '1');
  setting.output_position = setting.positions - 1;
  return setting;
}

std::vector<Part> rank_parts(const Setup& setup, const std::vector<RankQuestion>& questions) {
  std::vector<Part> parts;
  double seconds = 0;
  double bytes = 0;
  std::string largest;
  for (const RankQuestion& question : questions) {
    const double needed = memory_of(question);
    const double cost = estimate(question, needed);
    seconds += cost;
    if (needed > bytes) {
      bytes = needed;
      largest = words_of(question.setting);
    }
    std::string key = fmt::format("rank v{} {}", kRankVersion, question.setting.key());
    if (question.direct) key += " direct";
    if (question.max_side != 0) key += fmt::format(" max={}", question.max_side);
    parts.push_back({key, 0.01 + cost, [question](const Ticker& tick) {
                       exact::RankOptions options = options_of(question);
                       options.progress = [&](const std::string&, double share) { tick(share); };
                       Json json;
                       exact::add_result(json, exact::compute_rank(question.setting, options));
                       return json;
                     }});
  }
  check_cost(setup, largest, seconds, bytes * static_cast<double>(setup.threads));
  return parts;
}

exact::RankResult rank_result(const Json& result) {
  return exact::result_from_json(nlohmann::json::parse(result.dump()), "lab record");
}

std::string rank_words(const exact::RankResult& result) {
  const std::string number = format_whole(static_cast<std::int64_t>(result.rank));
  return result.status == exact::RankStatus::at_least ? "at least " + number : number;
}

}  // namespace fathom::lab
