#include "lab/ranks/rank_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/memory.h"
#include "core/units.h"
#include "exact/rank_cost.h"
#include "exact/rank_json.h"

namespace fathom::lab {
namespace {

constexpr int kRankVersion = 1;
constexpr std::size_t kLargestGrid = std::size_t{1} << 30;

exact::RankOptions options_of(const RankQuestion& question) {
  exact::RankOptions options;
  options.threads = 1;
  options.max_side = question.max_side;
  if (question.direct) options.method = exact::Method::direct;
  return options;
}

/// The first side of a growing grid that is large enough for a rank known beforehand.
std::size_t side_for(double rank) {
  std::size_t side = 1;
  while (static_cast<double>(side) <= rank && side < kLargestGrid) side *= 2;
  return side;
}

/// Growing grids stop at a tenth of what a custom set-up may take.
void limit_growth(const Setup& setup, std::vector<RankQuestion>& questions) {
  constexpr double kShareOfLimit = 0.1;
  const exact::RankCost limit{kShareOfLimit * setup.time_limit *
                                  static_cast<double>(setup.threads) /
                                  static_cast<double>(questions.size()),
                              usable_memory_bytes() / static_cast<double>(setup.threads)};
  for (RankQuestion& question : questions) {
    if (!exact::grids_grow(question.setting)) continue;
    const std::size_t side =
        std::max(exact::side_within(question.setting, options_of(question), limit),
                 side_for(question.least_rank));
    question.max_side = question.max_side == 0 ? side : std::min(side, question.max_side);
  }
}

exact::RankCost cost_of(const Setup& setup, const RankQuestion& question) {
  constexpr std::size_t kListedSide = 1024;  // the claims' own ranks that have no prediction
  std::size_t side = setup.own ? question.max_side : kListedSide;
  if (question.least_rank > 0) side = side_for(question.least_rank);
  exact::RankCost cost = exact::search_cost(question.setting, options_of(question), side);
  cost.bytes = std::max(cost.bytes, 8 * question.least_rank * question.least_rank);
  return cost;
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

std::vector<Part> rank_parts(const Setup& setup, std::vector<RankQuestion> questions) {
  std::vector<Part> parts;
  double seconds = 0;
  double bytes = 0;
  std::string largest;
  double longest = -1;
  if (setup.own) limit_growth(setup, questions);
  for (const RankQuestion& question : questions) {
    const exact::RankCost cost = cost_of(setup, question);
    seconds += cost.seconds;
    bytes = std::max(bytes, cost.bytes);
    if (cost.seconds > longest) {
      longest = cost.seconds;
      largest = words_of(question.setting);
    }
    std::string key = fmt::format("rank v{} {}", kRankVersion, question.setting.key());
    if (question.direct) key += " direct";
    if (question.max_side != 0) key += fmt::format(" max={}", question.max_side);
    parts.push_back({key, 0.01 + cost.seconds, [question](const Ticker& tick) {
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
