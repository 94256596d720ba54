#include "train/provenance.h"

#include <dnnl.h>
#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/hash.h"
#include "core/mapped_file.h"
#include "engine/cpu/cpu_features.h"
#include "engine/cuda/module.h"
#include "engine/device.h"

namespace fathom::train {
namespace {

using Json = nlohmann::ordered_json;

Json hash_of_file(const std::filesystem::path& path) {
  try {
    const MappedFile file(path);
    return hash_bytes({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()})
        .hex();
  } catch (const DataError&) {
    return nullptr;
  }
}

/// Read once: ten megabytes take milliseconds.
const Json& hash_of_program() {
  static const Json hash = hash_of_file("/proc/self/exe");
  return hash;
}

}  // namespace

Json provenance_of(const RunSpec& spec) {
  const dnnl_version_t* dnnl = dnnl_version();
  Json made{{"fathom", FATHOM_VERSION},
            {"binary", hash_of_program()},
            {"compiler", "g++ " __VERSION__},
            {"onednn", fmt::format("{}.{}.{}", dnnl->major, dnnl->minor, dnnl->patch)},
            {"onednn_isa", static_cast<int>(dnnl_get_effective_cpu_isa())},
            {"instructions", name_of(engine::best_isa())},
            {"threads", spec.threads},
            {"device", name_of(spec.device)}};
  if (spec.device == engine::DeviceKind::cuda) {
    const engine::CudaOptions options = engine::cuda_options(spec.place().index);
    const engine::CudaDevice device = engine::cuda_module().describe(options.device);
    made["device"] = device.name;
    made["capability"] = device.capability;
    made["algorithms"] = hash_of_file(options.gemm_cache);
  }
  return made;
}

}  // namespace fathom::train
