// Backward without float atomics: the rows are sorted by token (stable, so rows of one token stay
// in order), cut into chunks, and each chunk sums its runs of equal tokens. A run inside one chunk
// goes straight to the table; the pieces of a run that crosses chunks are added in a second pass.
#include <cub/device/device_radix_sort.cuh>

#include "engine/cuda/cuda_ops.h"
#include "engine/cuda/device.cuh"

namespace fathom::engine::cuda {
namespace {

constexpr int kChunk = 32;

template <int V>
__global__ void embed_kernel(const std::int32_t* tokens, const float* table, const float* positions,
                             Operand y, std::int64_t rows, std::int64_t width, std::int64_t period,
                             float scale) {
  const std::int64_t packs = width / V;
  for (std::int64_t p = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; p < rows * packs;
       p += std::int64_t{gridDim.x} * blockDim.x) {
    const std::int64_t n = p / packs, c = p % packs * V;
    Pack<V> value = load<V>(table + tokens[n] * width + c);
#pragma unroll
    for (int j = 0; j < V; ++j) value.v[j] *= scale;
    if (positions != nullptr) {
      const Pack<V> position = load<V>(positions + n % period * width + c);
#pragma unroll
      for (int j = 0; j < V; ++j) value.v[j] += position.v[j];
    }
    store<V>(y, n * width + c, value);
  }
}

__global__ void number_rows_kernel(std::int32_t* numbers, int rows) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < rows) numbers[i] = i;
}

struct Runs {
  const std::int32_t* keys;    // tokens in order
  const std::int32_t* rows;    // their rows
  const std::int32_t* starts;  // by token: where its run begins; one more for the end
  Operand dy;
  float* d_table;
  float* pieces;  // [chunks, 2, width]: sums of the run that enters and the one that leaves
  int count;
  std::int64_t width;
  float scale;
  bool accumulate;
};

/// Thread: one place in the order, or the end. Absent tokens begin where the next one does.
__global__ void find_starts_kernel(const std::int32_t* keys, int count, int classes,
                                   std::int32_t* starts) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > count) return;
  const int before = i == 0 ? -1 : keys[i - 1], here = i == count ? classes : keys[i];
  for (int token = before + 1; token <= here; ++token) starts[token] = i;
}

template <int V>
__device__ inline void put_row(const Runs& a, int token, std::int64_t c, Pack<V> sum) {
#pragma unroll
  for (int j = 0; j < V; ++j) sum.v[j] *= a.scale;
  put<V>({a.d_table, false}, token * a.width + c, sum, a.accumulate);
}

constexpr int kTeams = 4;  // per block, at most

/// A row of threads takes a chunk; each thread takes V columns at a time.
template <int V>
__global__ void sum_runs_kernel(Runs a) {
  __shared__ std::int32_t all_keys[kTeams][kChunk + 2], all_rows[kTeams][kChunk];
  std::int32_t *keys = all_keys[threadIdx.y], *rows = all_rows[threadIdx.y];
  const int chunk = blockIdx.x * blockDim.y + threadIdx.y;
  const int first = chunk * kChunk, size = min(a.count - first, kChunk);
  for (int i = threadIdx.x; i < kChunk + 2; i += blockDim.x) {
    const int at = first - 1 + i;
    keys[i] = at >= 0 && at < a.count && i <= size + 1 ? a.keys[at] : -1;
    if (i < size) rows[i] = a.rows[first + i];
  }
  __syncthreads();
  if (size <= 0) return;
  float* enters = a.pieces + std::int64_t{2} * chunk * a.width;
  for (std::int64_t c = V * threadIdx.x; c < a.width; c += V * blockDim.x) {
    Pack<V> sum{};
    bool entered = keys[0] == keys[1];
    constexpr int kAhead = 8;  // rows requested before the first is used
    for (int i0 = 0; i0 < size; i0 += kAhead) {
      Pack<V> dy[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        if (i0 + u < size) dy[u] = load<V>(a.dy, rows[i0 + u] * a.width + c);
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int i = i0 + u;
        if (i >= size) break;
#pragma unroll
        for (int j = 0; j < V; ++j) sum.v[j] += dy[u].v[j];
        const bool run_goes_on = keys[i + 2] == keys[i + 1];
        if (run_goes_on && i + 1 < size) continue;
        if (entered) {
          store<V>(enters + c, sum);
        } else if (run_goes_on) {
          store<V>(enters + a.width + c, sum);
        } else {
          put_row<V>(a, keys[i + 1], c, sum);
        }
        entered = false;
        sum = {};
      }
    }
  }
}

/// Block: one token. Writes the rows the first pass left: tokens that do not occur and runs that
/// span several chunks.
__global__ void join_runs_kernel(Runs a) {
  const int token = blockIdx.x;
  const int first = a.starts[token], last = a.starts[token + 1] - 1;
  if (last >= first && first / kChunk == last / kChunk) return;
  if (last < first && a.accumulate) return;
  for (std::int64_t c = threadIdx.x; c < a.width; c += blockDim.x) {
    float sum = 0;
    if (last >= first) {
      sum = a.pieces[(2 * (first / kChunk) + 1) * a.width + c];
#pragma unroll 4
      for (int chunk = first / kChunk + 1; chunk <= last / kChunk; ++chunk) {
        sum += a.pieces[2 * chunk * a.width + c];
      }
    }
    put_row<1>(a, token, c, {sum});
  }
}

std::int64_t aligned(std::int64_t bytes) {
  return (bytes + 255) / 256 * 256;
}

/// Sorts the rows by token, as early side work because tokens are known from the start. Sets keys,
/// rows and starts of `runs`.
void sort_early(Runs& runs, const EmbedBackward& op, const Context& context) {
  const std::int64_t classes = context.tensor(op.d_table).rows;
  const int rows = runs.count;
  int bits = 1;
  while ((std::int64_t{1} << bits) < classes) ++bits;
  std::size_t sort_bytes = 0;
  const std::int32_t* no_keys = nullptr;
  std::int32_t* no_values = nullptr;
  cub::DeviceRadixSort::SortPairs(nullptr, sort_bytes, no_keys, no_values, no_keys, no_values, rows,
                                  0, bits);
  const std::int64_t list = aligned(4 * std::int64_t{rows}),
                     start_list = aligned(4 * (classes + 1));
  void* memory = context.hold(3 * list + start_list + static_cast<std::int64_t>(sort_bytes));
  auto* numbers = static_cast<std::int32_t*>(memory);
  auto* keys = numbers + list / 4;
  auto* order = keys + list / 4;
  auto* starts = order + list / 4;
  void* sort_memory = starts + start_list / 4;
  const std::int32_t* tokens = context.tokens(op.tokens);
  SideWork sort{.between = std::make_shared<Scratch>(), .early = true};
  sort.between->place(memory);
  sort.touched.reads.push_back(bytes_at(tokens, 4 * std::int64_t{rows}));
  sort.run = [=](cudaStream_t stream) mutable {
    number_rows_kernel<<<blocks_for(rows, 256), 256, 0, stream>>>(numbers, rows);
    check(cub::DeviceRadixSort::SortPairs(sort_memory, sort_bytes, tokens, keys, numbers, order,
                                          rows, 0, bits, stream),
          "sort of tokens");
    find_starts_kernel<<<blocks_for(rows + 1, 256), 256, 0, stream>>>(
        keys, rows, static_cast<int>(classes), starts);
    check_launch("sort of tokens");
  };
  context.beside(std::move(sort));
  runs.keys = keys;
  runs.rows = order;
  runs.starts = starts;
}

void launch_runs(const Runs& runs, std::int64_t classes, cudaStream_t stream) {
  const bool packed = runs.width % 4 == 0;
  const auto warps = [](std::int64_t items, int most) {
    return static_cast<unsigned>(std::min<std::int64_t>(most, (items + 31) / 32) * 32);
  };
  const unsigned team = warps(packed ? runs.width / 4 : runs.width, kTeams);
  const dim3 block(team, 32 * kTeams / team);
  const int chunks = blocks_for(runs.count, kChunk);
  const auto grid = static_cast<unsigned>(blocks_for(chunks, static_cast<int>(block.y)));
  if (packed) {
    sum_runs_kernel<4><<<grid, block, 0, stream>>>(runs);
  } else {
    sum_runs_kernel<1><<<grid, block, 0, stream>>>(runs);
  }
  join_runs_kernel<<<static_cast<unsigned>(classes), warps(runs.width, 8), 0, stream>>>(runs);
  check_launch("embedding gradient");
}

BoundOp bind_table_gradient(const EmbedBackward& op, const Context& context) {
  const Tensor& dy = context.tensor(op.dy);
  Runs bare{};
  bare.dy = context.operand(op.dy);
  bare.d_table = context.floats(op.d_table);
  bare.count = static_cast<int>(dy.rows);
  bare.width = dy.cols;
  bare.scale = op.scale;
  bare.accumulate = op.d_table_mode == GradMode::accumulate;
  sort_early(bare, op, context);
  context.scratch->reserve(aligned(std::int64_t{blocks_for(dy.rows, kChunk)} * 2 * dy.cols * 4));
  return [bare, classes = context.tensor(op.d_table).rows,
          scratch = context.scratch](cudaStream_t stream) {
    Runs runs = bare;
    runs.pieces = static_cast<float*>(scratch->data());
    launch_runs(runs, classes, stream);
  };
}

__global__ void gather_kernel(const void* text, int bytes_per_token, const std::uint64_t* starts,
                              std::int64_t rows, std::int64_t context, std::int32_t* inputs,
                              std::int32_t* targets) {
  const auto at = [&](std::uint64_t place) {
    return bytes_per_token == 2
               ? static_cast<std::int32_t>(static_cast<const std::uint16_t*>(text)[place])
               : static_cast<const std::int32_t*>(text)[place];
  };
  for (std::int64_t n = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x; n < rows;
       n += std::int64_t{gridDim.x} * blockDim.x) {
    const std::uint64_t place = starts[n / context] + static_cast<std::uint64_t>(n % context);
    inputs[n] = at(place);
    targets[n] = at(place + 1);
  }
}

}  // namespace

void gather_windows(const void* text, int bytes_per_token, const std::uint64_t* starts,
                    std::int64_t batch, std::int64_t context, std::int32_t* inputs,
                    std::int32_t* targets, cudaStream_t stream) {
  gather_kernel<<<std::min(1024, blocks_for(batch * context, 256)), 256, 0, stream>>>(
      text, bytes_per_token, starts, batch * context, context, inputs, targets);
  check_launch("gather of tokens");
}

BoundOp bind(const Embed& op, const Context& context) {
  const Tensor& y = context.tensor(op.y);
  const std::int64_t period = op.positions.exists() ? context.tensor(op.positions).rows : 1;
  return [tokens = context.tokens(op.tokens), table = context.floats(op.table),
          positions = context.floats(op.positions), out = context.operand(op.y), rows = y.rows,
          width = y.cols, period, scale = op.scale, gpu = context.gpu](cudaStream_t stream) {
    const std::int64_t items = rows * width / (width % 4 == 0 ? 4 : 1);
    const int grid = blocks_for(items, 256, gpu, 16);
    if (width % 4 == 0) {
      embed_kernel<4>
          <<<grid, 256, 0, stream>>>(tokens, table, positions, out, rows, width, period, scale);
    } else {
      embed_kernel<1>
          <<<grid, 256, 0, stream>>>(tokens, table, positions, out, rows, width, period, scale);
    }
    check_launch("embedding");
  };
}

BoundOp bind(const EmbedBackward& op, const Context& context) {
  const Tensor& dy = context.tensor(op.dy);
  BoundOp table, positions;
  if (op.d_table.exists()) table = bind_table_gradient(op, context);
  if (op.d_positions.exists()) {
    positions =
        bind_period_sum(context, context.operand(op.dy), context.floats(op.d_positions), dy.rows,
                        dy.cols, context.tensor(op.d_positions).rows, 1, op.d_positions_mode);
  }
  return [table, positions](cudaStream_t stream) {
    if (table) table(stream);
    if (positions) positions(stream);
  };
}

}  // namespace fathom::engine::cuda
