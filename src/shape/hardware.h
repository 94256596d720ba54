// Hardware profiles: the few numbers that decide how long things take. Built-in ones live in
// data/hardware.toml.
#pragma once

#include <string>
#include <vector>

namespace fathom {

struct Hardware {
  std::string name;
  std::string title;
  double peak_flops = 0;            // dense bf16, per second
  double achievable_matmul = 1;     // share reached by large products
  double bandwidth = 0;             // bytes per second
  double achievable_bandwidth = 1;  // share reached by a copy
  double memory_bytes = 0;
  int multiprocessors = 1;
  double train_layer_fixed_seconds = 0;
  double decode_layer_fixed_seconds = 0;
  std::string source;

  double matmul_rate() const { return peak_flops * achievable_matmul; }
  double copy_rate() const { return bandwidth * achievable_bandwidth; }
};

/// The profile that times are modelled for by default.
inline constexpr const char* kDefaultHardware = "h200";

/// A built-in name (any case) or the path of a TOML file. ConfigError with the choices if it is
/// neither.
Hardware find_hardware(const std::string& name_or_path);
std::vector<std::string> hardware_names();

}  // namespace fathom
