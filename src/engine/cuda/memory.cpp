#include "engine/cuda/memory.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kBetween = 4;  // pieces of side work that may be pending

}  // namespace

Block::Block(std::int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* memory = nullptr;
  if (cudaMalloc(&memory, static_cast<std::size_t>(bytes)) != cudaSuccess) {
    cudaGetLastError();
    throw DeviceError("not enough GPU memory for this model: " + std::to_string(bytes >> 20) +
                      " MiB more are needed; use a smaller batch");
  }
  data_ = static_cast<char*>(memory);
  check(cudaMemset(data_, 0, static_cast<std::size_t>(bytes)), "clearing memory");
}

Block::~Block() {
  cudaFree(data_);
}

Block::Block(Block&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Block& Block::operator=(Block&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Memory::Memory(const StepPlan& plan) : plan_(plan) {
  for (const Storage storage : kEnumValues<Storage>) {
    blocks_[storage] = Block(plan.storage_bytes(storage));
  }
  for (auto& scratch : scratch_) scratch = std::make_shared<Scratch>();
  for (int i = 0; i < kBetween; ++i) between_.push_back(std::make_shared<Scratch>());
}

void* Memory::address(TensorId id) const {
  if (!id.exists()) return nullptr;
  const Tensor& tensor = plan_.tensor(id);
  return blocks_[tensor.storage].data() + tensor.offset_bytes;
}

Footprint Memory::footprint(const Op& op) const {
  const auto ranges = [&](const std::vector<TensorId>& ids) {
    std::vector<ByteRange> found;
    for (const TensorId id : ids) found.push_back(bytes_at(address(id), plan_.tensor(id).bytes()));
    return found;
  };
  const Uses uses = uses_of(op);
  return {ranges(uses.reads), ranges(uses.writes)};
}

void Memory::place_scratch() {
  std::vector<std::shared_ptr<Scratch>> all(scratch_.begin(), scratch_.end());
  all.insert(all.end(), between_.begin(), between_.end());
  for (const auto& scratch : all) {
    scratch->place(scratch_blocks_.emplace_back(scratch->bytes()).data());
  }
}

void Memory::clear_results() {
  for (const Storage storage : {Storage::gradient, Storage::output, Storage::activation}) {
    const Block& block = blocks_[storage];
    if (block.data() == nullptr) continue;
    check(cudaMemset(block.data(), 0, static_cast<std::size_t>(block.bytes())), "clearing memory");
  }
  check(cudaDeviceSynchronize(), "clearing memory");
}

std::int64_t Memory::bytes() const {
  std::int64_t total = 0;
  for (const Block& block : blocks_) total += block.bytes();
  for (const std::vector<Block>* blocks : {&held_, &scratch_blocks_}) {
    for (const Block& block : *blocks) total += block.bytes();
  }
  return total;
}

}  // namespace fathom::engine::cuda
