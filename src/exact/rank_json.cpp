#include "exact/rank_json.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/json_reader.h"
#include "exact/partition.h"

namespace fathom::exact {
namespace {

/// A JSON number as long as every reader keeps it exact (2^53), a string beyond that.
nlohmann::ordered_json whole(const mpz_class& value) {
  if (value < mpz_class("9007199254740992")) return value.get_ui();
  return value.get_str();
}

mpz_class whole(const nlohmann::json& value) {
  return value.is_string() ? mpz_class(value.get<std::string>())
                           : mpz_class(json_whole<unsigned long>(value));
}

}  // namespace

void add_setting(nlohmann::ordered_json& target, const RankSetting& s) {
  target["family"] = to_string(s.family);
  if (s.family != Family::conv) target["layers"] = s.layers;
  target["width"] = s.width;
  if (s.family == Family::attention) {
    target["heads"] = s.heads;
  } else {
    target["input_dimension"] = s.inputs;
  }
  target["positions"] = s.positions;
  target["partition"] = s.partition;
  if (s.family == Family::conv) target["pooling"] = name_of(s.pooling);
  if (s.family != Family::attention) return;
  target["output_position"] = s.output_position;
  target["output_component"] = s.output_component;
  target["mask"] = s.causal ? "causal" : "bidirectional";
  target["residual"] = s.residual;
  target["embedding_rank"] = nullptr;
  if (s.embedding_rank != 0) target["embedding_rank"] = s.embedding_rank;
  if (s.stream != 0) {
    target["stream"] = s.stream;
    target["stride"] = s.stride;
  }
}

void add_result(nlohmann::ordered_json& target, const RankResult& result) {
  target["rank"] = result.rank;
  target["status"] = to_string(result.status);
  target["rmax"] = whole(result.rmax);
  target["bound"] = whole(result.bound);
  target["grid"] = result.grid;
  target["primes"] = result.primes;
  target["error_probability"] = result.error_probability;
  target["seconds"] = result.seconds;
  target["bytes"] = result.bytes;
  target["method"] = name_of(result.method);
  target["split"] = result.split;
  target["blocks"] = nlohmann::ordered_json::array();
  for (const BlockResult& block : result.blocks) {
    target["blocks"].push_back({{"degree", block.degree},
                                {"rank", block.rank},
                                {"rmax", whole(block.bound)},
                                {"bound", whole(block.proved)},
                                {"side", block.side}});
  }
}

void add_balanced(nlohmann::ordered_json& target, const std::vector<RankSetting>& settings,
                  const std::vector<RankResult>& results, const PartitionGroups& groups) {
  add_setting(target, settings.front());
  target.erase("partition");
  target["partitions"] = nlohmann::ordered_json::array();
  double seconds = 0;
  for (std::size_t i = 0; i < settings.size(); ++i) {
    seconds += results[i].seconds;
    for (const std::string& partition :
         {settings[i].partition, complement(settings[i].partition)}) {
      target["partitions"].push_back({{"partition", partition},
                                      {"output_position", settings[i].output_position},
                                      {"rank", results[i].rank},
                                      {"status", to_string(results[i].status)},
                                      {"rmax", whole(results[i].rmax)},
                                      {"error_probability", results[i].error_probability}});
    }
  }
  target["groups"] = nlohmann::ordered_json::array();
  for (const auto& [rank, partitions] : groups) {
    target["groups"].push_back(
        {{"rank", rank}, {"count", partitions.size()}, {"partitions", partitions}});
  }
  target["invariant"] = groups.size() == 1;
  target["primes"] = results.front().primes;
  target["seconds"] = seconds;
}

RankResult result_from_json(const nlohmann::json& record, const std::string& origin) {
  try {
    RankResult result;
    result.rank = json_whole<decltype(result.rank)>(record.at("rank"));
    result.status = parse_enum<RankStatus>(record.at("status").get<std::string>(), "status");
    result.rmax = whole(record.at("rmax"));
    result.bound = whole(record.at("bound"));
    result.grid = json_whole<decltype(result.grid)>(record.at("grid"));
    for (const auto& prime : record.at("primes")) {
      result.primes.push_back(json_whole<std::uint32_t>(prime));
    }
    result.error_probability = record.at("error_probability");
    result.seconds = record.at("seconds");
    result.bytes = record.at("bytes");
    result.method = parse_enum<Method>(record.at("method").get<std::string>(), "method");
    result.split = record.at("split");
    for (const auto& block : record.at("blocks")) {
      const auto size = [&](const char* key) { return json_whole<std::size_t>(block.at(key)); };
      result.blocks.push_back({size("degree"), size("side"), size("rank"), whole(block.at("rmax")),
                               whole(block.at("bound"))});
    }
    return result;
  } catch (const nlohmann::json::exception& error) {
    throw DataError(fmt::format("{} is not a rank record: {}", origin, json_problem(error)));
  } catch (const std::exception& error) {  // from a word or a GMP number
    throw DataError(fmt::format("{} is not a rank record: {}", origin, error.what()));
  }
}

}  // namespace fathom::exact
