#include "data/tasks/task.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/counts.h"
#include "core/error.h"
#include "core/text.h"
#include "data/tasks/generators.h"

namespace fathom::data {
namespace {

// Streams of a seed that no other user of it has: "task", then the use, then 40 bits of index.
constexpr std::uint64_t kTaskStream = 0x74736bull << 41;  // "tsk"
constexpr std::uint64_t kHeldOutStream = 1ull << 40;
constexpr std::uint64_t kHeldOutSeed = 0;
constexpr std::uint64_t kMostExamples = 1ull << 40;

struct TaskEntry {
  TaskMaker make;
  std::vector<std::string> parameters;
};

const TaskEntry& entry_of(TaskKind kind) {
  static const std::vector<TaskEntry> entries{
      {nullptr, {}},
      {make_induction, {"symbols", "lengths"}},
      {make_hops, {"symbols", "hops"}},
      {make_cycles, {"vertices"}},
      {make_counting, {"blocks", "lengths", "eval_lengths"}},
      {make_stair, {"blocks", "lengths", "eval_lengths"}},
      {make_dyck, {"symbols", "depth"}},
      {make_sort, {"symbols", "in_place"}},
      {make_listops, {"depth", "arguments", "lengths", "class_first"}},
      {make_cases, {"symbols", "class_first"}},
      {make_local_global, {"symbols"}},
      {make_inverse, {}},
      {make_era, {"text", "class_first"}},
      {make_same_speaker, {"text", "class_first"}},
  };
  return entries.at(static_cast<std::size_t>(kind));
}

/// Refuses a parameter that was set and that the task does not have.
struct ParameterCheck {
  TaskKind kind;

  template <class T>
  void operator()(const char* key, const T& value, const char* /*meaning*/, KeyRule /*rule*/) {
    const std::vector<std::string>& known = entry_of(kind).parameters;
    if (value == T{} || std::string_view(key) == "examples" ||
        std::find(known.begin(), known.end(), key) != known.end()) {
      return;
    }
    std::vector<std::string> all = known;
    all.emplace_back("examples");
    require_task(false, fmt::format("task {} has no parameter {}; it has: {}", name_of(kind), key,
                                    join(all, ", ")));
  }
};

/// Moves the one token that has a target to the front, and all before it one place on.
void move_class_first(std::span<TokenId> inputs, std::span<TokenId> targets) {
  const auto place = std::find_if(targets.begin(), targets.end(),
                                  [](TokenId target) { return target != kNoTarget; });
  const auto at = place - targets.begin();
  std::rotate(targets.begin(), place, place + 1);
  std::rotate(inputs.begin(), inputs.begin() + at, inputs.begin() + at + 1);
}

}  // namespace

void require_task(bool rule, const std::string& message) {
  if (!rule) throw ConfigError("data: " + message);
}

void require_context(const TaskSpec& spec, std::int64_t context, std::int64_t needed) {
  require_task(context >= needed,
               fmt::format("task {} needs model.context of {} or more for these parameters, not {}",
                           name_of(spec.kind), needed, context));
}

void resolve_range(const char* key, std::vector<std::int64_t>& range,
                   const std::vector<std::int64_t>& fallback, std::int64_t low) {
  if (range.empty()) range = fallback;
  require_task(range.size() == 2 && range[0] >= low && range[1] >= range[0],
               fmt::format("{} must be [least, most] with least at least {}", key, low));
}

void resolve_number(const char* key, std::int64_t& value, std::int64_t fallback, std::int64_t low,
                    std::int64_t high) {
  if (value == 0) value = fallback;
  require_task(value >= low && value <= high,
               fmt::format("{} = {} must lie between {} and {}", key, value, low, high));
}

std::unique_ptr<const Task> make_task(const TaskSpec& spec, std::int64_t context) {
  if (spec.kind == TaskKind::none) throw InternalError("make_task: no task");
  ParameterCheck check{spec.kind};
  TaskSpec::visit_parameters(spec, check);
  return entry_of(spec.kind).make(spec, context);
}

std::int64_t Task::example(std::uint64_t seed, ExampleUse use, std::uint64_t index,
                           std::span<TokenId> inputs, std::span<TokenId> targets) const {
  if (std::ssize(inputs) != context_ || std::ssize(targets) != context_) {
    throw InternalError("Task::example: buffers are not of the context's length");
  }
  const bool training = use == ExampleUse::training;
  if (training && spec_.examples > 0) index %= as_size(spec_.examples);
  if (index >= kMostExamples) throw InternalError("Task::example: no such example");
  std::fill(inputs.begin(), inputs.end(), padding());
  std::fill(targets.begin(), targets.end(), kNoTarget);
  Draws draws(training ? seed : kHeldOutSeed,
              kTaskStream + (training ? 0 : kHeldOutStream) + index);
  const std::int64_t group = make(draws, use, inputs, targets);
  if (spec_.class_first) move_class_first(inputs, targets);
  return group;
}

}  // namespace fathom::data
