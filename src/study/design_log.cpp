#include "study/design_log.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/files.h"
#include "core/hash.h"
#include "core/json_file.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom::study {
namespace {

constexpr const char* kSchema = "fathom.design.v1";
using Json = nlohmann::ordered_json;

std::string training_hash(const StudySpec& spec) {
  Hasher hasher;
  hasher.add_field(to_toml(spec.run_spec(spec.first_shape(), 1000, 1)));
  hasher.add_field(write_keys(spec.budget));
  hasher.add_field(spec.corpus.summary());
  for (const Trajectory& t : grid_trajectories(spec)) {
    hasher.add_field(
        fmt::format("{} {} {} {}", t.shape.layers, t.shape.width, t.shape.heads, t.seed));
  }
  return hasher.value().hex();
}

Json round_json(const DesignRound& round) {
  Json runs = Json::array();
  for (const Trajectory& t : round.runs) {
    runs.push_back({{"layers", t.shape.layers},
                    {"width", t.shape.width},
                    {"heads", t.shape.heads},
                    {"seed", t.seed}});
  }
  return {{"cost", round.cost}, {"runs", runs}};
}

DesignRound read_round(const nlohmann::json& json) {
  DesignRound round;
  round.cost = json.at("cost").get<double>();
  for (const auto& run : json.at("runs")) {
    const auto whole = [&](const char* key) { return json_whole<std::int64_t>(run.at(key)); };
    const GridShape shape{whole("layers"), whole("width"), whole("heads")};
    if (shape.layers < 1 || shape.width < 1 || shape.heads < 1 || shape.width % shape.heads != 0) {
      throw DataError(fmt::format("{}x{} with {} heads is not a shape", shape.layers, shape.width,
                                  shape.heads));
    }
    round.runs.push_back({shape, json_whole<std::uint64_t>(run.at("seed"))});
  }
  return round;
}

/// The first line in which two designs differ: "error = [0.01]; it was error = [0.02]".
std::string difference(const std::string& now, const std::string& before) {
  const auto lines = split(now, '\n');
  const auto old_lines = split(before, '\n');
  for (std::size_t i = 0; i < std::min(lines.size(), old_lines.size()); ++i) {
    if (lines[i] != old_lines[i]) return fmt::format("{}; it was: {}", lines[i], old_lines[i]);
  }
  return "the keys differ";
}

}  // namespace

std::vector<Trajectory> DesignLog::trajectories() const {
  std::vector<Trajectory> all;
  for (const DesignRound& round : rounds) {
    all.insert(all.end(), round.runs.begin(), round.runs.end());
  }
  return all;
}

std::optional<DesignLog> read_design_log(const StudyFolder& folder) {
  std::error_code error;
  if (!std::filesystem::exists(folder.design(), error)) return std::nullopt;
  const nlohmann::json json = read_json_file(folder.design());
  try {
    if (json.at("schema").get<std::string>() != kSchema) throw DataError("another schema");
    DesignLog log;
    log.design = json.at("design").get<std::string>();
    log.training = json.at("training").get<std::string>();
    log.jobs = json_whole<int>(json.at("jobs"));
    for (const auto& point : json.at("speed")) {
      log.speed.points.push_back({point.at(0).get<double>(), point.at(1).get<double>()});
    }
    for (const auto& round : json.at("rounds")) log.rounds.push_back(read_round(round));
    return log;
  } catch (const std::exception& problem) {
    throw DataError(
        fmt::format("{}: not a design file: {}", folder.design().string(), problem.what()));
  }
}

void write_design_log(const StudyFolder& folder, const DesignLog& log) {
  Json json{{"schema", kSchema}, {"design", log.design},   {"training", log.training},
            {"jobs", log.jobs},  {"speed", Json::array()}, {"rounds", Json::array()}};
  for (const SpeedPoint& point : log.speed.points) {
    json["speed"].push_back({point.step_flops, point.flops_per_second});
  }
  for (const DesignRound& round : log.rounds) json["rounds"].push_back(round_json(round));
  write_file_atomically(folder.design(), json_file_text(json));
}

DesignLog new_design_log(const StudySpec& spec) {
  DesignLog log;
  log.design = spec.design->text();
  log.training = training_hash(spec);
  return log;
}

void require_same_design(const StudyFolder& folder, const StudySpec& spec) {
  const auto log = read_design_log(folder);
  if (!log) return;
  const char* kAdvice = "its rounds were chosen for the old one; start a new folder";
  if (!spec.design) {
    throw ConfigError(
        fmt::format("{}: this study was started with a [design] and the spec no longer has one; {}",
                    folder.name(), kAdvice));
  }
  const DesignLog now = new_design_log(spec);
  if (now.design != log->design) {
    throw ConfigError(fmt::format("{}: the design has changed ({}); {}", folder.name(),
                                  difference(now.design, log->design), kAdvice));
  }
  if (now.training != log->training) {
    throw ConfigError(
        fmt::format("{}: [model], [train], [budget], [corpus] or [grid] has changed since the "
                    "design was started; {}",
                    folder.name(), kAdvice));
  }
}

}  // namespace fathom::study
