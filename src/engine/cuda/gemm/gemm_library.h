// The GEMMs of one executor; equal ones are shared. Algorithms, and other choices between ways to
// compute the same thing, are picked by timing on the memory they will run on, and remembered in a
// file so that the next start, and a resumed run, makes the same choice and gives the same bits.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/cuda/gemm/gemm.h"

namespace fathom::engine::cuda {

class GemmLibrary {
 public:
  /// `cache` is a file name, or "" to keep nothing. GEMMs may run on `stream`, where they are
  /// timed, and concurrently on `other`.
  GemmLibrary(int device, const std::string& cache, cudaStream_t stream,
              cudaStream_t other = nullptr);
  ~GemmLibrary();
  GemmLibrary(const GemmLibrary&) = delete;
  GemmLibrary& operator=(const GemmLibrary&) = delete;

  /// Null when cuBLASLt has no such GEMM, which can happen with a bias. The operands are
  /// used for timing: C is overwritten.
  std::shared_ptr<Gemm> get(const GemmSpec& spec, const GemmOperands& operands);
  /// The fastest of several alternatives, by timing `run`; remembered under `key` by name.
  std::size_t pick(const std::string& key, const std::vector<std::string>& names,
                   const std::function<void(std::size_t, cudaStream_t)>& run);
  /// Writes new choices to the cache file.
  void save();
  /// Frees workspace memory that no chosen algorithm needs.
  void shrink();
  std::int64_t bytes() const { return workspaces_.total(); }

 private:
  void choose_algorithm(Gemm& gemm, const GemmOperands& operands,
                        const std::vector<Gemm::Algorithm>& suggested, const std::string& key);
  /// `count` if `launch` refuses all.
  std::size_t fastest(std::size_t count, const std::function<bool(std::size_t)>& launch);

  cublasLtHandle_t handle_ = nullptr;
  cudaStream_t stream_;
  Workspaces workspaces_;
  std::string cache_, machine_;
  std::map<std::string, std::string> remembered_;  // what is done -> how, both as text
  bool changed_ = false;
  std::map<std::string, std::shared_ptr<Gemm>> made_;
};

}  // namespace fathom::engine::cuda
