#include "engine/cuda/gemm/gemm_library.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "engine/cuda/check.h"

namespace fathom::engine::cuda {
namespace {

constexpr std::size_t kWorkspaceBytes = 64u << 20;  // what an algorithm may ask for
constexpr int kCandidates = 24;
constexpr float kLook = 1;  // milliseconds that a candidate is timed for, if it is short

std::string hexadecimal(const Gemm::Algorithm& algorithm) {
  std::string text;
  for (const std::uint64_t word : algorithm.data) text += fmt::format("{:016x}", word);
  return text;
}

bool read_hexadecimal(const std::string& text, Gemm::Algorithm& algorithm) {
  constexpr std::size_t kWords = std::size(decltype(algorithm.data){});
  if (text.size() != 16 * kWords) return false;
  for (std::size_t i = 0; i < kWords; ++i) {
    algorithm.data[i] = std::strtoull(text.substr(16 * i, 16).c_str(), nullptr, 16);
  }
  return true;
}

}  // namespace

GemmLibrary::GemmLibrary(int device, const std::string& cache, cudaStream_t stream,
                         cudaStream_t other)
    : stream_(stream), cache_(cache) {
  check(cublasLtCreate(&handle_), "start");
  workspaces_.add(stream);
  if (other != nullptr) workspaces_.add(other);
  workspaces_.resize(kWorkspaceBytes);
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "device properties");
  machine_ = fmt::format("{} cublasLt {}", properties.name, cublasLtGetVersion());
  std::ifstream file(cache_);
  std::string line;
  if (cache_.empty() || !std::getline(file, line) || line != machine_) return;
  while (std::getline(file, line)) {
    const std::size_t bar = line.find('|');
    if (bar != std::string::npos) remembered_[line.substr(0, bar)] = line.substr(bar + 1);
  }
}

GemmLibrary::~GemmLibrary() {
  made_.clear();
  cublasLtDestroy(handle_);
}

std::size_t GemmLibrary::fastest(std::size_t count,
                                 const std::function<bool(std::size_t)>& launch) {
  cudaEvent_t begin, end;
  check(cudaEventCreate(&begin), "event");
  check(cudaEventCreate(&end), "event");
  const auto time = [&](std::size_t i, int repeats) {
    cudaEventRecord(begin, stream_);
    for (int repeat = 0; repeat < repeats; ++repeat) launch(i);
    cudaEventRecord(end, stream_);
    check(cudaEventSynchronize(end), "timing of a GEMM");
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    return milliseconds / static_cast<float>(repeats);
  };
  float best = 0;
  std::size_t chosen = count;
  for (std::size_t i = 0; i < count; ++i) {
    if (!launch(i)) continue;
    // The times of long GEMMs are steady: one run is enough. Short ones are timed again.
    float milliseconds = time(i, 1);
    if (chosen != count && milliseconds > 1.2f * best) continue;
    const int repeats = static_cast<int>(std::min(20.0f, kLook / milliseconds));
    if (repeats > 1) milliseconds = time(i, repeats);
    // The first suggestion stays unless another is clearly faster.
    if (chosen == count || milliseconds < 0.99f * best) {
      chosen = i;
      best = milliseconds;
    }
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return chosen;
}

void GemmLibrary::choose_algorithm(Gemm& gemm, const GemmOperands& operands,
                                   const std::vector<Gemm::Algorithm>& suggested,
                                   const std::string& key) {
  const std::size_t chosen = fastest(suggested.size(), [&](std::size_t i) {
    return gemm.try_run(operands, stream_, suggested[i]);
  });
  if (chosen == suggested.size()) throw DeviceError("cuBLAS: no algorithm for " + key);
  gemm.choose(suggested[chosen]);
  remembered_[key] = hexadecimal(gemm.algorithm());
  changed_ = true;
}

std::size_t GemmLibrary::pick(const std::string& key, const std::vector<std::string>& names,
                              const std::function<void(std::size_t, cudaStream_t)>& run) {
  if (const auto known = remembered_.find(key); known != remembered_.end()) {
    const auto found = std::find(names.begin(), names.end(), known->second);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  }
  const std::size_t chosen = fastest(names.size(), [&](std::size_t i) {
    run(i, stream_);
    return true;
  });
  remembered_[key] = names[chosen];
  changed_ = true;
  return chosen;
}

std::shared_ptr<Gemm> GemmLibrary::get(const GemmSpec& spec, const GemmOperands& operands) {
  const std::string key = spec.key();
  if (const auto found = made_.find(key); found != made_.end()) return found->second;
  auto gemm = std::make_shared<Gemm>(handle_, spec, workspaces_);
  Gemm::Algorithm known{};
  const auto remembered = remembered_.find(key);
  if (remembered != remembered_.end() && read_hexadecimal(remembered->second, known) &&
      gemm->try_run(operands, stream_, known)) {
    gemm->choose(known);
    return made_[key] = gemm;
  }
  const std::vector<Gemm::Algorithm> suggested = gemm->suggest(operands, kCandidates);
  if (suggested.empty()) {
    if (spec.bias) return made_[key] = nullptr;
    throw DeviceError("cuBLAS: no algorithm for " + key);
  }
  choose_algorithm(*gemm, operands, suggested, key);
  return made_[key] = gemm;
}

void GemmLibrary::shrink() {
  std::size_t needed = 0;
  for (const auto& [key, gemm] : made_) {
    if (gemm != nullptr) needed = std::max(needed, gemm->workspace_needed(kWorkspaceBytes));
  }
  workspaces_.resize(needed);
}

void GemmLibrary::save() {
  if (cache_.empty() || !changed_) return;
  std::string text = machine_ + "\n";
  for (const auto& [what, how] : remembered_) text += what + "|" + how + "\n";
  // A cache that cannot be written costs the next start some time, nothing else.
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(cache_).parent_path(), error);
  const std::string temporary = fmt::format("{}.{}.tmp", cache_, getpid());
  std::ofstream(temporary) << text;
  std::filesystem::rename(temporary, cache_, error);
  changed_ = false;
}

}  // namespace fathom::engine::cuda
