#include "cli/rank_options.h"

#include <fmt/format.h>

#include "core/threads.h"
#include "core/units.h"

namespace fathom {

void add_rank_work_options(CommandTree& tree, Command& command, RankWorkOptions& options) {
  tree.restrict(command
                    .add_option("--method", options.method,
                                "How values are computed: gram is fast but only for bidirectional "
                                "attention, direct follows the definition")
                    ->type_name("NAME"),
                list_names<exact::Method>());
  command.add_flag("--whole", options.whole, "Eliminate one whole matrix, not degree by degree");
  command
      .add_option("--max-grid", options.max_grid,
                  "Largest side of a matrix; the answer may then be 'at least'")
      ->type_name("N")
      ->positive();
  command.add_option("--primes", options.primes, "Minimum number of primes (default 2)")
      ->type_name("N")
      ->positive();
  command.add_option("--seed", options.seed, "Seed of weights and inputs (default 1)")
      ->type_name("N");
  command
      .add_option("--memory", options.memory, "Memory limit, e.g. 16GB (default: the machine's)")
      ->type_name("SIZE");
  command.add_option("--threads", options.threads, "Concurrent computations (default: all cores)")
      ->type_name("N")
      ->positive();
}

exact::RankOptions to_rank_options(const RankWorkOptions& options) {
  exact::RankOptions result;
  result.seed = options.seed;
  result.primes = options.primes;
  result.max_side = options.max_grid;
  result.split = !options.whole;
  result.threads = threads_or_all(static_cast<unsigned>(options.threads));
  result.method = parse_enum<exact::Method>(options.method, "--method");
  if (!options.memory.empty()) result.memory_bytes = parse_bytes(options.memory, "--memory");
  return result;
}

std::vector<std::size_t> parse_sizes(const std::string& text, const std::string& what) {
  if (text.empty()) return {};
  const std::vector<std::int64_t> values = parse_whole_list(text, what);
  return {values.begin(), values.end()};
}

std::string RankForecast::look(double evaluated_share, double seconds) {
  constexpr double kEnoughSeen = 1.5, kWorthSaying = 10;
  if (evaluated_share <= 0 || seconds < kEnoughSeen) return "";
  const double total = seconds / evaluated_share;
  if (total < kWorthSaying || said_.exchange(true)) return "";
  return fmt::format(
      "evaluating takes about {} (extrapolated from the first {}), elimination comes after it; "
      "--max-grid N gives a lower bound sooner",
      format_seconds(total), format_seconds(seconds));
}

std::string rank_text(const exact::RankResult& result) {
  const std::string digits = format_whole(static_cast<std::int64_t>(result.rank));
  return result.status == exact::RankStatus::at_least ? "≥ " + digits : digits;
}

}  // namespace fathom
