// fathom doctor: what this machine offers for training, measured.
#include <dnnl.h>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/units.h"
#include "engine/cpu/cpu_features.h"
#include "engine/cuda/module.h"
#include "engine/peak.h"
#include "terminal/table.h"

namespace fathom {
namespace {

struct Findings {
  int cores;
  std::string kernels, dnnl;
  bool bf16;
  double f32_one, f32_all, bf16_one, bf16_all, bandwidth;
  std::string gpu;  // its name, or why there is none
  double gpu_bf16 = 0, gpu_f32 = 0, gpu_bandwidth = 0;
};

void examine_gpu(Findings& found) {
  using namespace engine;
  try {
    constexpr Device kGpu{.kind = DeviceKind::cuda};
    const CudaDevice device = cuda_module().describe(kGpu.index);
    found.gpu = fmt::format("{}, {}", device.name, format_bytes(as_double(device.total_bytes)));
    found.gpu_bf16 = measure_gemm_flops(kGpu, DType::bf16);
    found.gpu_f32 = measure_gemm_flops(kGpu, DType::f32);
    found.gpu_bandwidth = measure_memory_bandwidth(kGpu);
  } catch (const DeviceError& error) {
    found.gpu = error.what();
  }
}

Findings examine() {
  using namespace engine;
  Findings found{};
  found.cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  found.kernels = name_of(best_isa());
  found.bf16 = has_bf16_gemms();
  const dnnl_version_t* version = dnnl_version();
  found.dnnl = fmt::format("{}.{}.{}", version->major, version->minor, version->patch);
  found.f32_one = measure_gemm_flops({.threads = 1}, DType::f32);
  found.f32_all = measure_gemm_flops({.threads = found.cores}, DType::f32);
  if (found.bf16) {
    found.bf16_one = measure_gemm_flops({.threads = 1}, DType::bf16);
    found.bf16_all = measure_gemm_flops({.threads = found.cores}, DType::bf16);
  }
  found.bandwidth = measure_memory_bandwidth({.threads = found.cores});
  examine_gpu(found);
  return found;
}

Json to_json(const Findings& found) {
  Json document = json_document("doctor");
  document["cores"] = found.cores;
  document["kernels"] = found.kernels;
  document["bf16_products"] = found.bf16;
  document["onednn"] = found.dnnl;
  document["f32_flops_1_thread"] = found.f32_one;
  document["f32_flops_all_threads"] = found.f32_all;
  document["bf16_flops_1_thread"] = found.bf16 ? Json(found.bf16_one) : Json(nullptr);
  document["bf16_flops_all_threads"] = found.bf16 ? Json(found.bf16_all) : Json(nullptr);
  document["memory_bytes_per_second"] = found.bandwidth;
  document["gpu"] = found.gpu;
  const bool gpu = found.gpu_bf16 > 0;
  document["gpu_bf16_flops"] = gpu ? Json(found.gpu_bf16) : Json(nullptr);
  document["gpu_f32_flops"] = gpu ? Json(found.gpu_f32) : Json(nullptr);
  document["gpu_memory_bytes_per_second"] = gpu ? Json(found.gpu_bandwidth) : Json(nullptr);
  return document;
}

void print_text(Session& session, const Findings& found) {
  const auto gflops = [](double flops) { return fmt::format("{:.0f} GFLOP/s", flops / 1e9); };
  Table table({{"this machine"}, {"found"}});
  table.add_row({"cores", std::to_string(found.cores)});
  table.add_row({"vector kernels", found.kernels});
  table.add_row({"bf16 products in hardware", found.bf16 ? "yes" : "no (bf16 works, slowly)"});
  table.add_row({"oneDNN", found.dnnl});
  table.add_row({"f32 product, 1 thread", gflops(found.f32_one)});
  table.add_row({"f32 product, all cores", gflops(found.f32_all)});
  if (found.bf16) {
    table.add_row({"bf16 product, 1 thread", gflops(found.bf16_one)});
    table.add_row({"bf16 product, all cores", gflops(found.bf16_all)});
  }
  table.add_row({"memory, all cores", format_bytes(found.bandwidth) + "/s"});
  table.add_row({"GPU", found.gpu});
  if (found.gpu_bf16 > 0) {
    table.add_row({"GPU product, bf16", fmt::format("{:.0f} TFLOP/s", found.gpu_bf16 / 1e12)});
    table.add_row({"GPU product, f32", fmt::format("{:.0f} TFLOP/s", found.gpu_f32 / 1e12)});
    table.add_row({"GPU memory", format_bytes(found.gpu_bandwidth) + "/s"});
  }
  session.out << session.terminal.accent("fathom doctor") << "\n\n"
              << table.render(session.terminal);
}

}  // namespace

void add_doctor_command(CommandTree& tree) {
  auto json = std::make_shared<bool>(false);
  Command& command =
      tree.add(tree.root(), "doctor",
               {"Measure what this machine offers for training",
                "Shows the processor's features, the libraries in use and the measured peak speeds "
                "of matrix products and memory, with which training speeds are compared.",
                {{"doctor", "takes about two seconds"}, {"doctor --json", "for a script"}}},
               [json](Session& session) {
                 const Findings found = examine();
                 if (*json) {
                   print_json(session, to_json(found));
                 } else {
                   print_text(session, found);
                 }
               });
  command.add_flag("--json", *json, "Print JSON");
}

}  // namespace fathom
