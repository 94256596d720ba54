// What `fathom rank` and `fathom rank table` share: flags, settings and how a result is shown.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/json_output.h"
#include "exact/separation_rank.h"

namespace fathom {

/// Flags about the computation rather than the network.
struct RankWorkOptions {
  std::string method = name_of(exact::Method::automatic);
  std::string memory;
  std::uint64_t seed = 1;
  std::size_t primes = 2;
  std::size_t max_grid = 0;
  std::size_t threads = 0;
  bool whole = false;
};

void add_rank_work_options(CommandTree& tree, Command& command, RankWorkOptions& options);
/// ConfigError for meaningless values.
exact::RankOptions to_rank_options(const RankWorkOptions& options);

/// "1-4,8" as 1, 2, 3, 4, 8, nothing as nothing; ConfigError names `what`.
std::vector<std::size_t> parse_sizes(const std::string& text, const std::string& what);

/// Says once, early, that a computation will take long, judging by the share of the values that was
/// evaluated so far. Elimination comes on top and is not predicted.
class RankForecast {
 public:
  /// What to say after that many seconds; "" when it is too early, short or said. Any thread may
  /// call.
  std::string look(double evaluated_share, double seconds);

 private:
  std::atomic<bool> said_{false};
};

/// "18", "≥ 18".
std::string rank_text(const exact::RankResult& result);

}  // namespace fathom
