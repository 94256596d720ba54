// A task as the [data] table of a run spec gives it: its name and its parameters. Which parameters
// a task has, and their defaults, is documented with its generator; docs/tasks.md has them all.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/enum_names.h"
#include "core/spec_keys.h"

namespace fathom::data {

enum class TaskKind : std::uint8_t {
  none,  // the run reads a text
  induction,
  k_hop,
  cycles,
  counting,
  stair,
  dyck,
  sort,
  listops,
  cases,
  local_global,
  inverse,
  era,
  same_speaker
};
constexpr auto enum_names(TaskKind) {
  return std::array{"none",         "induction", "k-hop", "cycles",      "counting",
                    "stair",        "dyck",      "sort",  "listops",     "cases",
                    "local-global", "inverse",   "era",   "same-speaker"};
}

struct TaskSpec {
  TaskKind kind = TaskKind::none;
  std::int64_t symbols = 0;
  std::vector<std::uint64_t> hops{};
  std::int64_t vertices = 0;
  std::int64_t blocks = 0;
  std::int64_t depth = 0;
  std::int64_t arguments = 0;
  std::vector<std::int64_t> lengths{}, eval_lengths{};
  std::int64_t examples = 0;
  std::string text{};
  bool in_place = false;
  bool class_first = false;

  bool operator==(const TaskSpec&) const = default;

  /// 0 and empty mean the task's own default, so keys are written only when set.
  template <class Self, class Visitor>
  static void visit_keys(Self& spec, Visitor& key) {
    key("task", spec.kind, "train on generated examples instead of tokens",
        {.only_when_set = true});
    visit_parameters(spec, key);
  }

  template <class Self, class Visitor>
  static void visit_parameters(Self& spec, Visitor& key) {
    constexpr double kMost = 1 << 20;
    key("symbols", spec.symbols,
        "induction, k-hop, sort, cases, local-global: letters; dyck: kinds of brackets",
        {.low = 0, .high = kMost, .only_when_set = true});
    key("hops", spec.hops, "k-hop: numbers of hops to ask for", {.only_when_set = true});
    key("vertices", spec.vertices, "cycles: vertices of the graph, an even number",
        {.low = 0, .high = kMost, .only_when_set = true});
    key("blocks", spec.blocks, "counting, stair: k",
        {.low = 0, .high = kMost, .only_when_set = true});
    key("depth", spec.depth, "dyck, listops: maximum nesting depth",
        {.low = 0, .high = kMost, .only_when_set = true});
    key("arguments", spec.arguments, "listops: maximum arguments of an operator",
        {.low = 0, .high = kMost, .only_when_set = true});
    key("lengths", spec.lengths,
        "shortest and longest; induction: block; counting, stair, listops: string",
        {.only_when_set = true});
    key("eval_lengths", spec.eval_lengths, "counting, stair: lengths of the held-out strings",
        {.only_when_set = true});
    key("examples", spec.examples, "distinct examples to train on; 0: unlimited",
        {.low = 0, .high = 0x1p40, .only_when_set = true});
    key("text", spec.text, "era, same-speaker: hash of the speeches; default: the installed ones",
        {.only_when_set = true});
    key("in_place", spec.in_place, "sort: position i predicts the i-th letter in sorted order",
        {.only_when_set = true});
    key("class_first", spec.class_first,
        "cases, era, listops, same-speaker: the token with the target comes first",
        {.only_when_set = true});
  }
};

}  // namespace fathom::data
