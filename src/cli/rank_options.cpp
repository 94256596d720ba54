#include "cli/rank_options.h"

#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom {

void add_rank_work_options(CommandTree& tree, CLI::App& command, RankWorkOptions& options) {
  tree.restrict(
      command
          .add_option("--method", options.method,
                      "How values are computed: gram is fast but for bidirectional attention "
                      "only, direct is the definition")
          ->type_name("NAME"),
      {"auto", "gram", "direct"});
  command.add_flag("--whole", options.whole, "Eliminate one whole matrix, not degree by degree");
  command
      .add_option("--max-grid", options.max_grid,
                  "No matrix of a larger side; the answer may then be 'at least'")
      ->type_name("N");
  command.add_option("--primes", options.primes, "Primes to take at the least (default 2)")
      ->type_name("N");
  command.add_option("--seed", options.seed, "Seed of weights and inputs (default 1)")
      ->type_name("N");
  command
      .add_option("--memory", options.memory, "Memory limit, e.g. 16GB (default: the machine's)")
      ->type_name("SIZE");
  command.add_option("--threads", options.threads, "Computations at once (default: all cores)")
      ->type_name("N");
}

exact::RankOptions to_rank_options(const RankWorkOptions& options) {
  exact::RankOptions result;
  result.seed = options.seed;
  result.primes = options.primes;
  result.max_side = options.max_grid;
  result.split = !options.whole;
  result.threads =
      options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  if (options.method == "gram") result.method = exact::Method::gram;
  if (options.method == "direct") result.method = exact::Method::direct;
  if (!options.memory.empty()) {
    std::string text = options.memory;
    if (text.ends_with("B") || text.ends_with("b")) text.pop_back();
    while (text.ends_with(" ")) text.pop_back();
    result.memory_bytes = parse_count(text, "--memory");
  }
  return result;
}

std::vector<std::size_t> parse_list(const std::string& text, const std::string& what) {
  std::vector<std::size_t> values;
  for (const std::string& part : split(text, ',')) {
    const std::size_t dash = part.find('-');
    const std::int64_t first = parse_whole(part.substr(0, dash), what);
    const std::int64_t last =
        dash == std::string::npos ? first : parse_whole(part.substr(dash + 1), what);
    if (last < first || last - first > 1000) {
      throw ConfigError(fmt::format("{} '{}' is no rising range of at most 1000", what, part));
    }
    for (std::int64_t value = first; value <= last; ++value) {
      values.push_back(static_cast<std::size_t>(value));
    }
  }
  return values;
}

std::string rank_text(const exact::RankResult& result) {
  const std::string digits = format_whole(static_cast<std::int64_t>(result.rank));
  return result.status == exact::RankStatus::at_least ? "≥ " + digits : digits;
}

std::string power_of_3_text(double log3_value) {
  const double log10_value = log3_value * std::log10(3.0);
  if (log10_value < 6) return format_significant(std::pow(10.0, log10_value), 4);
  if (log10_value < 300) return fmt::format("{:.3g}", std::pow(10.0, log10_value));
  return fmt::format("10^{}", format_significant(log10_value, 5));
}

}  // namespace fathom
