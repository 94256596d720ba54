#include "probe/lens.h"

#include <algorithm>
#include <cmath>

#include "core/counts.h"
#include "pretrained/kernels.h"

namespace fathom::probe {
namespace {

struct LensSums {
  double divergence = 0, agreement = 0, loss = 0;
};

/// `rows` positions of one window from `begin` on; sums[l] for every stream.
std::vector<LensSums> read_lens_rows(const pretrained::Forward& forward,
                                     const pretrained::Layout& layout, const Window& window,
                                     const WindowStreams& streams, std::int64_t begin,
                                     std::int64_t rows) {
  const std::int64_t D = layout.width, V = layout.vocab;
  pretrained::Scratch scratch;
  std::vector<float> last(as_size(rows * V)), here(as_size(rows * V));
  forward.logits(streams.states.back().data() + begin * D, rows, scratch, last.data());
  std::vector<LensSums> sums(streams.states.size());
  for (std::size_t l = 0; l < sums.size(); ++l) {
    forward.logits(streams.states[l].data() + begin * D, rows, scratch, here.data());
    for (std::int64_t i = 0; i < rows; ++i) {
      const TokenId target = window.targets[as_size(begin + i)];
      if (target < 0) continue;
      const float* p = last.data() + i * V;
      const float* q = here.data() + i * V;
      const double log_p = pretrained::log_sum_exp(p, V), log_q = pretrained::log_sum_exp(q, V);
      double divergence = 0;
      for (std::int64_t v = 0; v < V; ++v) {
        const double ln_p = p[v] - log_p;
        if (ln_p > -30) divergence += std::exp(ln_p) * (ln_p - (q[v] - log_q));
      }
      sums[l].divergence += divergence;
      sums[l].agreement += std::max_element(p, p + V) - p == std::max_element(q, q + V) - q;
      sums[l].loss += log_q - static_cast<double>(q[target]);
    }
  }
  return sums;
}

}  // namespace

std::vector<LensResult> measure_lens(Sweep& sweep, std::span<const Window> windows) {
  constexpr std::int64_t kRows = 64;
  const pretrained::Layout& layout = sweep.weights().layout();
  std::vector<LensSums> total(as_size(layout.depth()) + 1);
  double tokens = 0;
  sweep.run(windows, whole_path(layout.depth()), {},
            [&](std::size_t w, const WindowStreams& streams, const WindowLosses&) {
              const Window& window = windows[w];
              const std::int64_t T = std::ssize(window.inputs), blocks = (T + kRows - 1) / kRows;
              const pretrained::Forward& forward = sweep.forward(T);
              std::vector<std::vector<LensSums>> parts(as_size(blocks));
              run_tasks(sweep.control().threads, as_size(blocks), [&](std::size_t b, std::size_t) {
                const std::int64_t begin = static_cast<std::int64_t>(b) * kRows;
                parts[b] = read_lens_rows(forward, layout, window, streams, begin,
                                          std::min(kRows, T - begin));
              });
              for (const auto& part : parts) {
                for (std::size_t l = 0; l < total.size(); ++l) {
                  total[l].divergence += part[l].divergence;
                  total[l].agreement += part[l].agreement;
                  total[l].loss += part[l].loss;
                }
              }
              tokens += as_double(window.target_count());
            });
  std::vector<LensResult> results;
  for (const LensSums& sums : total) {
    results.push_back({sums.divergence / tokens, sums.agreement / tokens, sums.loss / tokens});
  }
  return results;
}

}  // namespace fathom::probe
