#include "shape/hardware.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "core/error.h"
#include "core/text.h"
#include "core/toml_reader.h"

namespace fathom {

namespace embedded {
extern const std::string_view hardware_toml;
}

namespace {

double positive(TomlReader& table, const std::string& key) {
  const double value = table.number(key);
  if (!(value > 0)) table.fail(key, "must be greater than zero");
  return value;
}

double share(TomlReader& table, const std::string& key) {
  const double value = table.number(key, 1);
  if (!(value > 0 && value <= 1)) table.fail(key, "must be a share between 0 and 1");
  return value;
}

Hardware read_profile(const std::string& name, TomlReader table) {
  Hardware hardware;
  hardware.name = name;
  hardware.title = table.text("title", name);
  hardware.peak_flops = positive(table, "peak_tflops") * 1e12;
  hardware.achievable_matmul = share(table, "achievable_matmul");
  hardware.bandwidth = positive(table, "bandwidth_gbs") * 1e9;
  hardware.achievable_bandwidth = share(table, "achievable_bandwidth");
  hardware.memory_bytes = positive(table, "memory_gb") * 1e9;
  const double multiprocessors = positive(table, "multiprocessors");
  if (!(multiprocessors >= 1 && multiprocessors <= 1e6) ||
      multiprocessors != std::floor(multiprocessors)) {
    table.fail("multiprocessors", "must be a whole number from 1 to 1,000,000");
  }
  hardware.multiprocessors = static_cast<int>(multiprocessors);
  hardware.train_layer_fixed_seconds = positive(table, "train_layer_fixed_us") * 1e-6;
  hardware.decode_layer_fixed_seconds = positive(table, "decode_layer_fixed_us") * 1e-6;
  hardware.source = table.text("source", "");
  table.finish();
  return hardware;
}

}  // namespace

std::vector<std::string> hardware_names() {
  return TomlReader::from_text(embedded::hardware_toml, "hardware.toml").keys();
}

Hardware find_hardware(const std::string& name_or_path) {
  TomlReader builtin = TomlReader::from_text(embedded::hardware_toml, "hardware.toml");
  const std::string lower = to_lower(name_or_path);
  if (builtin.has(lower)) return read_profile(lower, builtin.table(lower));
  const bool is_path =
      name_or_path.ends_with(".toml") || name_or_path.find('/') != std::string::npos;
  if (is_path) {
    return read_profile(std::filesystem::path(name_or_path).stem().string(),
                        TomlReader::from_file(name_or_path));
  }
  throw ConfigError(fmt::format(
      "hardware '{}' is not known.{} Choose from: {}, or give a .toml file", name_or_path,
      did_you_mean(name_or_path, builtin.keys()), join(builtin.keys(), ", ")));
}

}  // namespace fathom
