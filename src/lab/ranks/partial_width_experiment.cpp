#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "lab/frame/options.h"
#include "lab/ranks/rank_experiments.h"
#include "lab/ranks/rank_parts.h"

namespace fathom::lab {
namespace {

using exact::RankSetting;

/// A stream of width D read in slices of d.
struct SliceCase {
  std::size_t layers, slice, stream, stride;
};

std::vector<SliceCase> slice_list(const Setup& setup) {
  if (setup.own) {
    const std::size_t slice = setup.size("slice");
    const std::size_t stride = setup.size("stride");
    return {{setup.size("layers"), slice, setup.size("width"),
             stride == 0 ? std::max<std::size_t>(1, slice / 2) : stride}};
  }
  std::vector<SliceCase> list;
  for (const auto& [layers, slice] :
       {std::pair<std::size_t, std::size_t>{2, 2}, {2, 3}, {2, 4}, {3, 2}}) {
    for (const std::size_t times : {2, 4}) list.push_back({layers, slice, times * slice, 1});
    list.push_back({layers, slice, 2 * slice, slice});  // disjoint slices
  }
  return list;
}

RankSetting sliced_setting(const SliceCase& c, std::size_t heads) {
  RankSetting setting = attention_setting(c.layers, c.slice, heads, 2 * c.stream);
  setting.residual = true;
  setting.stream = c.stream;
  setting.stride = c.stride;
  // The first coordinate that the last layer writes.
  setting.output_component = (c.layers - 1) * c.stride % c.stream;
  return setting;
}

RankSetting plain_setting(std::size_t layers, std::size_t width, std::size_t heads) {
  RankSetting setting = attention_setting(layers, width, heads);
  setting.residual = true;
  return setting;
}

/// Whether the wide network is shown next to the slices; at four times the slice its rank outgrows
/// every grid.
bool shows_wide(const Setup& setup, const SliceCase& c) {
  return setup.own || c.stream <= 2 * c.slice;
}

/// No grid is larger than this: ranks of wide streams are then lower bounds.
std::size_t largest_grid(const Setup& setup) {
  return setup.quick ? 1200 : 4000;
}

std::vector<Part> plan_partial(const Setup& setup) {
  const std::size_t heads = setup.size("heads");
  const std::size_t most = largest_grid(setup);
  std::vector<RankQuestion> questions;
  for (const SliceCase& c : slice_list(setup)) {
    questions.push_back({sliced_setting(c, heads), false, most});
    questions.push_back({plain_setting(c.layers, c.slice, heads), false, most});
    if (shows_wide(setup, c)) {
      questions.push_back({plain_setting(c.layers, c.stream, heads), false, most});
    }
  }
  return rank_parts(setup, questions);
}

Conclusion conclude_partial(const Setup& setup, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"Exact separation ranks with residual connections",
                     {"L", "slice d", "stream D", "moves by", "width d", "slices of D", "width D"},
                     {}};
  std::optional<double> least_gain;
  std::optional<double> least_further;
  std::optional<double> least_disjoint;
  double previous = 0;
  std::size_t part = 0;
  conclusion.data["settings"] = Json::array();
  for (const SliceCase& c : slice_list(setup)) {
    const exact::RankResult sliced = rank_result(results[part++]);
    const exact::RankResult narrow = rank_result(results[part++]);
    std::optional<exact::RankResult> wide;
    if (shows_wide(setup, c)) wide = rank_result(results[part++]);
    const double gain = static_cast<double>(sliced.rank) / static_cast<double>(narrow.rank);
    const bool known = narrow.status != exact::RankStatus::at_least &&
                       sliced.status != exact::RankStatus::at_least;
    if (!known) {
      conclusion.notes.push_back(
          "a rank that is only known to be at least so much decides nothing; a higher --time-limit "
          "lets grids grow further");
    } else if (c.stride >= c.slice) {
      least_disjoint = std::min(least_disjoint.value_or(1e9), gain);
    } else if (setup.own || c.stream == 2 * c.slice) {
      least_gain = std::min(least_gain.value_or(1e9), gain);
      previous = static_cast<double>(sliced.rank);
    } else {
      least_further =
          std::min(least_further.value_or(1e9), static_cast<double>(sliced.rank) / previous);
    }
    conclusion.data["settings"].push_back({{"layers", c.layers},
                                           {"slice", c.slice},
                                           {"width", c.stream},
                                           {"stride", c.stride},
                                           {"rank", sliced.rank},
                                           {"rank_status", to_string(sliced.status)},
                                           {"narrow_rank", narrow.rank},
                                           {"wide_rank", wide ? Json(wide->rank) : Json()}});
    table.rows.push_back({std::to_string(c.layers), std::to_string(c.slice),
                          std::to_string(c.stream), std::to_string(c.stride), rank_words(narrow),
                          rank_words(sliced), wide ? rank_words(*wide) : "-"});
  }
  if (least_gain) conclusion.measures.push_back({"gain", least_gain});
  if (least_further) conclusion.measures.push_back({"further", least_further});
  if (least_disjoint) conclusion.measures.push_back({"disjoint", least_disjoint});
  conclusion.tables.push_back(std::move(table));
  conclusion.notes.push_back(
      "a sliced layer has the weights and the work of width d; L layers that move by s see at most "
      "d + (L - 1) s coordinates of the stream");
  return conclusion;
}

}  // namespace

Experiment partial_width_experiment() {
  return {"partial-width",
          {integer_option("layers", 2, "L", "Depth", 1, 4),
           integer_option("slice", 2, "D", "Coordinates that a layer reads and writes", 1, 16),
           integer_option("width", 4, "D", "Width of the stream", 1, 64),
           integer_option("stride", 0, "S", "By how much the slice moves; 0: half of it", 0, 64),
           integer_option("heads", 1, "H", "Heads of a layer", 1, 16)},
          plan_partial,
          conclude_partial};
}

}  // namespace fathom::lab
