#include "lab/frame/claim.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/text.h"
#include "core/toml_reader.h"
#include "core/units.h"

namespace fathom::embedded {
extern const std::string_view claims_toml;
extern const std::string_view trained_claims_toml;
}  // namespace fathom::embedded

namespace fathom::lab {
namespace {

template <NamedEnum Enum>
Enum read_enum(TomlReader& table, const std::string& key) {
  const std::string word = table.text(key);
  if (const auto found = find_enum<Enum>(word)) return *found;
  table.fail(key, fmt::format("= '{}' must be one of: {}", word, join(list_names<Enum>(), ", ")));
}

Criterion read_criterion(TomlReader table, const std::string& id) {
  Criterion criterion;
  criterion.id = id;
  criterion.text = table.text("text");
  criterion.low = table.number("low", criterion.low);
  criterion.high = table.number("high", criterion.high);
  criterion.boundary = table.text("boundary", "");
  if (criterion.low > criterion.high) table.fail("low", "is above high");
  table.finish();
  return criterion;
}

Claim read_claim(TomlReader table, const std::string& id) {
  Claim claim;
  claim.id = id;
  claim.topic = table.text("topic");
  claim.topic_about = table.text("topic_about", "");
  claim.title = table.text("title");
  claim.source = table.text("source");
  claim.arxiv = table.text("arxiv", "");
  claim.place = table.text("place");
  claim.statement = table.text("statement");
  claim.published = table.text("published");
  claim.experiment = table.text("experiment");
  claim.kind = read_enum<Kind>(table, "kind");
  claim.by = read_enum<Evidence>(table, "by");
  claim.cpu_cost = table.text("cpu_cost");
  claim.gpu_cost = table.text("gpu_cost");
  claim.quick_seconds = table.number("quick_seconds", 0);
  claim.gpu_seconds = table.number("gpu_seconds", 0);
  if (claim.quick_seconds > 0) {
    claim.cpu_cost = fmt::format("{} of processor time, {}", format_seconds(claim.quick_seconds),
                                 claim.cpu_cost);
  }
  if (claim.gpu_seconds > 0) {
    claim.gpu_cost =
        fmt::format("{} on an H200, {}", format_seconds(claim.gpu_seconds), claim.gpu_cost);
  }
  claim.undecided = table.text("undecided", "");
  claim.ask = table.text("ask", "");
  claim.page = table.text("page");
  claim.finding.verdict = read_enum<Verdict>(table, "verdict");
  claim.finding.summary = table.text("found");
  TomlReader criteria = table.table("criteria");
  for (const std::string& key : criteria.keys()) {
    claim.criteria.push_back(read_criterion(criteria.table(key), key));
  }
  if (claim.criteria.empty()) table.fail("criteria", "is empty; a claim needs one");
  criteria.finish();
  table.finish();
  return claim;
}

}  // namespace

std::string Criterion::range() const {
  if (low == high) return fmt::format("exactly {:g}", low);
  if (low == -std::numeric_limits<double>::infinity()) return fmt::format("at most {:g}", high);
  if (high == std::numeric_limits<double>::infinity()) return fmt::format("at least {:g}", low);
  return fmt::format("{:g} to {:g}", low, high);
}

const Criterion& Claim::criterion(std::string_view wanted) const {
  for (const Criterion& criterion : criteria) {
    if (criterion.id == wanted) return criterion;
  }
  throw InternalError(fmt::format("claim {} has no criterion {}", id, wanted));
}

std::vector<Claim> read_claims(std::string_view toml, const std::string& origin) {
  TomlReader file = TomlReader::from_text(toml, origin);
  std::vector<Claim> all;
  for (const std::string& id : file.keys()) all.push_back(read_claim(file.table(id), id));
  file.finish();
  return all;
}

const std::vector<Claim>& claims() {
  static const std::vector<Claim> all = [] {
    std::vector<Claim> read = read_claims(embedded::claims_toml, "data/claims.toml");
    for (Claim& claim : read_claims(embedded::trained_claims_toml, "data/trained_claims.toml")) {
      read.push_back(std::move(claim));
    }
    return read;
  }();
  return all;
}

std::vector<std::string> claim_ids() {
  std::vector<std::string> ids;
  for (const Claim& claim : claims()) ids.push_back(claim.id);
  return ids;
}

std::vector<std::string> claim_ids(bool trained) {
  std::vector<std::string> ids;
  for (const Claim& claim : claims()) {
    if ((claim.kind == Kind::trained) == trained) ids.push_back(claim.id);
  }
  return ids;
}

const Claim& find_claim(std::string_view id) {
  for (const Claim& claim : claims()) {
    if (claim.id == id) return claim;
  }
  throw ConfigError(fmt::format("there is no claim '{}'.{} 'fathom lab list' shows them all",
                                printable(id), did_you_mean(id, claim_ids())));
}

}  // namespace fathom::lab
