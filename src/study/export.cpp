#include "study/export.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "study/tfevents.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

using Json = nlohmann::ordered_json;

std::string cell(double value) {
  return std::isfinite(value) ? fmt::format("{}", value) : "";
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

Json number_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

double seconds_of(fs::file_time_type time) {
  const auto system = std::chrono::file_clock::to_sys(time);
  return std::chrono::duration<double>(system.time_since_epoch()).count();
}

/// All numbers of a metrics file; the clock of a step is not recorded, so events carry the file's
/// last change.
EventFile events_of(const fs::path& metrics) {
  const double wall_time = seconds_of(fs::last_write_time(metrics));
  EventFile events(wall_time);
  std::ifstream stream(metrics);
  for (std::string line; std::getline(stream, line);) {
    const Json entry = Json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.contains("step")) continue;
    const std::int64_t step = entry["step"];
    for (const auto& [key, value] : entry.items()) {
      if (key == "step" || !value.is_number()) continue;
      const bool held_out = key == "eval_loss" || key == "bits_per_byte";
      const std::string name = key == "eval_loss" ? "loss" : key;
      events.scalar((held_out ? "valid/" : "train/") + name, step, value, wall_time);
    }
  }
  return events;
}

}  // namespace

std::vector<std::pair<double, double>> read_curve(const fs::path& folder, double tokens_per_step,
                                                  std::size_t limit) {
  std::vector<std::pair<double, double>> all;
  std::ifstream stream(folder / "metrics.jsonl");
  for (std::string line; std::getline(stream, line);) {
    if (line.find("\"eval_loss\"") == std::string::npos) continue;
    const Json entry = Json::parse(line, nullptr, false);
    if (!entry.is_object() || !entry.value("eval_loss", Json()).is_number()) continue;
    all.emplace_back(entry.value("step", 0.0) * tokens_per_step, entry["eval_loss"]);
  }
  if (all.size() <= limit) return all;
  std::vector<std::pair<double, double>> thinned;
  for (std::size_t i = 1; i <= limit; ++i) thinned.push_back(all[i * all.size() / limit - 1]);
  return thinned;
}

std::string export_csv(const std::vector<RunRow>& rows) {
  std::string text =
      "id,layers,width,heads,params,total_params,tokens,seed,loss,bits_per_byte,status,reason,"
      "seconds,tokens_per_second,flops,in_spec\n";
  for (const RunRow& r : rows) {
    text +=
        fmt::format("{},{},{},{},{:.0f},{:.0f},{:.0f},{},{},{},{},{},{},{},{},{}\n", r.id, r.layers,
                    r.width, r.heads, r.params, r.total_params, r.tokens, r.seed, cell(r.loss),
                    cell(r.bits_per_byte), to_string(r.status), quoted(r.reason), cell(r.seconds),
                    cell(r.tokens_per_second), cell(r.flops), r.in_spec ? 1 : 0);
  }
  return text;
}

std::string export_json(const std::vector<RunRow>& rows) {
  Json document{{"schema", "fathom.study_runs.v1"}, {"runs", Json::array()}};
  for (const RunRow& r : rows) {
    document["runs"].push_back({{"id", r.id},
                                {"layers", r.layers},
                                {"width", r.width},
                                {"heads", r.heads},
                                {"params", r.params},
                                {"total_params", r.total_params},
                                {"tokens", r.tokens},
                                {"seed", r.seed},
                                {"loss", number_or_null(r.loss)},
                                {"bits_per_byte", number_or_null(r.bits_per_byte)},
                                {"status", to_string(r.status)},
                                {"reason", r.reason},
                                {"seconds", number_or_null(r.seconds)},
                                {"tokens_per_second", number_or_null(r.tokens_per_second)},
                                {"flops", number_or_null(r.flops)},
                                {"in_spec", r.in_spec}});
  }
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::size_t export_tensorboard(const fs::path& directory, const std::vector<RunRow>& rows,
                               const fs::path& output) {
  std::size_t written = 0;
  for (const RunRow& row : rows) {
    const fs::path metrics = directory / "runs" / row.id / "metrics.jsonl";
    if (row.id.empty() || !fs::exists(metrics)) continue;
    const fs::path folder =
        output / fmt::format("{}x{}-seed{}-{}", row.layers, row.width, row.seed, row.id);
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) throw DataError(fmt::format("{}: {}", folder.string(), error.message()));
    const auto time = static_cast<std::int64_t>(seconds_of(fs::last_write_time(metrics)));
    write_file_atomically(folder / fmt::format("events.out.tfevents.{}.fathom", time),
                          events_of(metrics).bytes());
    ++written;
  }
  return written;
}

}  // namespace fathom::study
