// One kernel updates all parameters and one more writes all their bf16 copies: they are cut into
// pieces of equal size, one block per piece, so that many small parameters cost no more launches
// than one large one.
#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"

namespace fathom::engine::cuda {
namespace {

constexpr int kUpdateThreads = 256;
constexpr std::int64_t kPiece = 4096;

struct Piece {
  std::int64_t begin, end;  // of the whole storages
  float lr_multiplier, weight_decay, epsilon;
};

__global__ void squares_kernel(const float* values, std::int64_t size, double* partial) {
  __shared__ double shared[33];
  double sum = 0;
  for (std::int64_t i = (blockIdx.x * std::int64_t{kUpdateThreads} + threadIdx.x) * 4; i < size;
       i += std::int64_t{gridDim.x} * kUpdateThreads * 4) {
    const Pack<4> four = load<4>(values + i);
    sum += static_cast<double>(four.v[0] * four.v[0] + four.v[1] * four.v[1]) +
           static_cast<double>(four.v[2] * four.v[2] + four.v[3] * four.v[3]);
  }
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void norm_kernel(const double* partial, int parts, float* norm) {
  __shared__ double shared[33];
  double sum = 0;
  for (int i = threadIdx.x; i < parts; i += blockDim.x) sum += partial[i];
  sum = block_sum(sum, shared);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(sum));
}

struct Update {
  float* parameter;
  const float* gradient;
  float* m;
  float* v;
  const float* norm;
  const DeviceScalars* scalars;
  const Piece* pieces;
  float beta1, beta2;
};

__global__ void __launch_bounds__(kUpdateThreads) adamw_kernel(Update a) {
  const Piece piece = a.pieces[blockIdx.x];
  const DeviceScalars s = *a.scalars;
  const float norm = *a.norm;
  const float factor = s.clip_norm > 0 && norm > s.clip_norm ? s.clip_norm / norm : 1.0f;
  const float rate = s.learning_rate * piece.lr_multiplier;
  const float decay = rate * piece.weight_decay;
  for (std::int64_t i = piece.begin + threadIdx.x * 4; i < piece.end; i += kUpdateThreads * 4) {
    // Parameters are padded to 256 bytes: the tail of a pack belongs to no other parameter.
    Pack<4> p = load<4>(a.parameter + i), m = load<4>(a.m + i), v = load<4>(a.v + i);
    const Pack<4> gradient = load<4>(a.gradient + i);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float g = gradient.v[j] * factor;
      m.v[j] = a.beta1 * m.v[j] + (1 - a.beta1) * g;
      v.v[j] = a.beta2 * v.v[j] + (1 - a.beta2) * g * g;
      const float step = m.v[j] * s.correction1 / (sqrtf(v.v[j] * s.correction2) + piece.epsilon);
      p.v[j] -= decay * p.v[j] + rate * step;
    }
    store<4>(a.parameter + i, p);
    store<4>(a.m + i, m);
    store<4>(a.v + i, v);
  }
}

struct Copy {
  const float* from;
  __nv_bfloat16* to;
  std::int64_t size;
};

__global__ void copy_kernel(const Copy* copies) {
  const Copy copy = copies[blockIdx.x];
  for (std::int64_t i = threadIdx.x * 4; i < copy.size; i += kUpdateThreads * 4) {
    if (i + 4 <= copy.size) {
      store<4>(copy.to + i, load<4>(copy.from + i));
    } else {
      for (std::int64_t j = i; j < copy.size; ++j) store<1>(copy.to + j, load<1>(copy.from + j));
    }
  }
}

}  // namespace

BoundOp bind(const SquaredNorm& op, const Context& context) {
  const std::int64_t size = context.tensor(op.gradients).size();
  const int blocks = blocks_for(size, 4 * kUpdateThreads, context.gpu, 2);
  context.scratch->reserve(blocks * 8);
  return [=, gradients = context.floats(op.gradients), norm = context.floats(op.norm),
          scratch = context.scratch](cudaStream_t stream) {
    auto* partial = static_cast<double*>(scratch->data());
    squares_kernel<<<blocks, kUpdateThreads, 0, stream>>>(gradients, size, partial);
    norm_kernel<<<1, 1024, 0, stream>>>(partial, blocks, norm);
    check_launch("gradient norm");
  };
}

BoundOp bind(const AdamW& op, const Context& context) {
  std::vector<Piece> pieces;
  for (const AdamWGroup& group : op.groups) {
    const Tensor& tensor = context.tensor(group.parameter);
    const std::int64_t begin = tensor.offset_bytes / 4, end = begin + tensor.size();
    for (std::int64_t at = begin; at < end; at += kPiece) {
      pieces.push_back(
          {at, std::min(end, at + kPiece), group.lr_multiplier, group.weight_decay, group.epsilon});
    }
  }
  const Update update{context.floats(op.parameters),
                      context.floats(op.gradients),
                      context.floats(op.moment1),
                      context.floats(op.moment2),
                      context.floats(op.norm),
                      context.scalars,
                      context.upload(pieces),
                      op.beta1,
                      op.beta2};
  return [update, count = pieces.size()](cudaStream_t stream) {
    adamw_kernel<<<static_cast<unsigned>(count), kUpdateThreads, 0, stream>>>(update);
    check_launch("adamw");
  };
}

BoundOp bind(const CopyParameters& op, const Context& context) {
  std::vector<Copy> copies;
  for (const TensorId id : op.copies) {
    const auto* from = context.floats(context.tensor(id).master);
    auto* to = static_cast<__nv_bfloat16*>(context.address(id));
    const std::int64_t size = context.tensor(id).size();
    for (std::int64_t at = 0; at < size; at += kPiece) {
      copies.push_back({from + at, to + at, std::min(kPiece, size - at)});
    }
  }
  return [copies = context.upload(copies), count = copies.size()](cudaStream_t stream) {
    copy_kernel<<<static_cast<unsigned>(count), kUpdateThreads, 0, stream>>>(copies);
    check_launch("copies of parameters");
  };
}

}  // namespace fathom::engine::cuda
