#include "engine/cuda/fusion_probe.h"

#include "engine/cuda/gemm/gemm_norm.h"
#include "engine/cuda/memory.h"
#include "engine/cuda/streams.h"

namespace fathom::engine::cuda {
namespace {

constexpr const char* kApart = "apart";

/// The ops of one shape, fused and separate, with their own memory.
class Probe {
 public:
  Probe(const LinearNormShape& shape, const Gpu& gpu, GemmLibrary& gemms)
      : shape_(shape), gpu_(gpu), gemms_(gemms), scratch_(std::make_shared<Scratch>()) {
    const auto bf16 = DType::bf16, f32 = DType::f32;
    const std::int64_t rows = shape.rows, width = shape.width, depth = shape.depth;
    a_ = add(bf16, rows, depth);
    weight_ = shape.backward ? add(bf16, depth, width) : add(bf16, width, depth);
    internal_ = add(bf16, rows, width);
    stream_ = add(f32, rows, width);
    stats_ = add(f32, rows, 2);
    y_ = add(bf16, rows, width);
    gradient_ = add(bf16, rows, width);
    gain_ = add(f32, 1, width);
    shift_ = add(f32, 1, width);
    bias_ = add(f32, 1, width);
    narrow_bias_ = add(bf16, 1, width);
  }

  bool fused_is_faster() {
    std::vector<std::string> names{kApart};
    std::vector<GemmNorm> fused;
    for (const GemmNormVariant& variant : GemmNorm::variants(shape_, gpu_)) {
      names.push_back(variant.name());
      fused.emplace_back(shape_, operands(), variant, gpu_);
    }
    if (fused.empty()) return false;
    Block partial;
    const std::size_t best =
        gemms_.pick(key_of(shape_), names, [&](std::size_t i, cudaStream_t stream) {
          if (i == 0) return run_apart(stream);
          const GemmNorm& gemm = fused[i - 1];
          const std::int64_t bytes = std::int64_t{gemm.parts()} * gemm.sums() * shape_.width * 4;
          if (partial.bytes() < bytes) partial = Block(bytes);
          auto* memory = reinterpret_cast<float*>(partial.data());
          gemm.run(memory, stream);
          if (!shape_.backward) return;
          reduce_sums(memory, gemm.parts(), gemm.sums(), shape_.width, sums(), stream);
        });
    return best > 0;
  }

 private:
  TensorId add(DType type, std::int64_t rows, std::int64_t cols) {
    const TensorId id = tensors_.add({"", type, rows, cols, Storage::input, 0, {}});
    blocks_.push_back(Block(tensors_[id].bytes()));
    return id;
  }
  void* address(TensorId id) const { return id.exists() ? blocks_[id].data() : nullptr; }
  float* floats(TensorId id) const { return static_cast<float*>(address(id)); }
  TensorId branch_gradient() const { return shape_.branch ? y_ : TensorId{}; }

  Norm norm() const {
    Norm op{.x = stream_,
            .branch = internal_,
            .gain = gain_,
            .bias = shift_,
            .r = stream_,
            .y = y_,
            .stats = stats_};
    if (shape_.rms) op.bias = {};
    if (shape_.rms) op.kind = NormKind::rms;
    return op;
  }
  NormBackward norm_backward() const {
    NormBackward op{};
    op.dy = internal_;
    op.incoming = op.dx = gradient_;
    op.r = stream_;
    op.stats = stats_;
    op.gain = gain_;
    op.d_branch = branch_gradient();
    op.d_gain = shift_;
    op.d_bias = bias_;
    if (shape_.rms) op.kind = NormKind::rms;
    return op;
  }
  NormSums sums() const {
    return {{floats(shift_), false},
            {floats(bias_), false},
            {shape_.branch_sums ? floats(gain_) : nullptr, false}};
  }
  GemmNormOperands operands() const {
    GemmNormOperands given{.a = address(a_),
                           .b = address(weight_),
                           .gain = floats(gain_),
                           .stats = floats(stats_),
                           .r = floats(stream_)};
    if (shape_.backward) {
      given.incoming = address(gradient_);
      given.dx = address(gradient_);
      given.d_branch = address(branch_gradient());
    } else {
      given.x = floats(stream_);
      given.shift = shape_.rms ? nullptr : floats(shift_);
      given.bias = floats(bias_);
      given.y = address(y_);
      given.epsilon = 1e-5f;
    }
    return given;
  }

  /// The GEMM and the norm as separate ops, side work included.
  void run_apart(cudaStream_t stream) {
    if (apart_.empty()) bind_apart();
    for (const BoundOp& op : apart_) op(stream);
    for (const BoundOp& op : beside_) op(stream);
  }
  void bind_apart() {
    const Context context{tensors_,
                          gpu_,
                          gemms_,
                          scratch_,
                          nullptr,
                          [this](TensorId id) { return address(id); },
                          [this](std::int64_t bytes) { return held_.emplace_back(bytes).data(); },
                          [this](SideWork work) { beside_.push_back(std::move(work.run)); },
                          [this] { return scratch_; },
                          {}};
    if (shape_.backward) {
      LinearBackward linear{};
      linear.dy = a_;
      linear.x = internal_;  // for its shape
      linear.weight = weight_;
      linear.dx = internal_;
      apart_ = {bind(linear, context), bind(norm_backward(), context)};
    } else {
      apart_ = {bind(Linear{a_, weight_, narrow_bias_, internal_}, context), bind(norm(), context)};
    }
    memory_ = Block(scratch_->bytes());
    scratch_->place(memory_.data());
  }

  LinearNormShape shape_;
  const Gpu& gpu_;
  GemmLibrary& gemms_;
  Tensors tensors_;
  TensorTable<Block> blocks_;
  TensorId a_, weight_, internal_, stream_, stats_, y_, gradient_;
  TensorId gain_, shift_, bias_, narrow_bias_;
  std::shared_ptr<Scratch> scratch_;
  Block memory_;
  std::vector<Block> held_;
  std::vector<BoundOp> apart_, beside_;
};

}  // namespace

std::vector<bool> measure_fusions(const std::vector<LinearNormShape>& shapes,
                                  const CudaOptions& options) {
  check(cudaSetDevice(options.device), "device");
  const Gpu gpu = find_gpu(options.device, options.generic);
  const Streams streams;
  GemmLibrary gemms(options.device, options.gemm_cache, streams.main());
  std::vector<bool> pays;
  for (const LinearNormShape& shape : shapes) {
    pays.push_back(Probe(shape, gpu, gemms).fused_is_faster());
  }
  streams.wait();
  gemms.save();
  return pays;
}

}  // namespace fathom::engine::cuda
