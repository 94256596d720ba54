// The generators of all tasks, and the checks of parameters they share. Used by make_task only.
#pragma once

#include "data/tasks/task.h"

namespace fathom::data {

using TaskMaker = std::unique_ptr<const Task> (*)(TaskSpec spec, std::int64_t context);

std::unique_ptr<const Task> make_induction(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_hops(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_cycles(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_counting(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_stair(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_dyck(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_sort(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_listops(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_cases(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_local_global(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_inverse(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_era(TaskSpec spec, std::int64_t context);
std::unique_ptr<const Task> make_same_speaker(TaskSpec spec, std::int64_t context);

/// ConfigError "data: MESSAGE" unless the rule holds.
void require_task(bool rule, const std::string& message);
/// ConfigError when the model's context is shorter than the task's longest example.
void require_context(const TaskSpec& spec, std::int64_t context, std::int64_t needed);
/// Fills in what was left out and checks that it is [least, most] with least at least `low`.
void resolve_range(const char* key, std::vector<std::int64_t>& range,
                   const std::vector<std::int64_t>& fallback, std::int64_t low);
/// Fills in what was left out and checks the ends.
void resolve_number(const char* key, std::int64_t& value, std::int64_t fallback, std::int64_t low,
                    std::int64_t high);

}  // namespace fathom::data
