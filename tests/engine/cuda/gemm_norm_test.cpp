// GEMMs with a norm in their epilogue against their definition in double precision: values, column
// sums, equal bits in two runs, nothing behind the end.
#include "engine/cuda/gemm/gemm_norm.h"

#include "engine/cuda/device_memory.h"

namespace fathom::engine::cuda {
namespace {

constexpr float kEpsilon = 1e-5f;

struct Case {
  LinearNormShape shape;
  float stream_scale = 1, branch_scale = 1;
  bool in_place = true;  // forward: r on x; backward: dx on incoming
  bool rest = true;      // biases; backward: d_branch as well
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << key_of(c.shape) << (c.shape.rms ? " rms" : "");
}

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// Operands of a case, and what they should give.
struct Problem {
  explicit Problem(const Case& c)
      : given(c),
        m(c.shape.rows),
        d(c.shape.width),
        k(c.shape.depth),
        a(random_bf16(m * k, 1, 1)),
        b(random_bf16(d * k, 1 / std::sqrt(static_cast<float>(k)), 2)),
        incoming(random_bf16(m * d, 1, 7)),
        x(random_floats(m * d, 1, 3)),
        bias(random_floats(d, 0.5, 4)),
        gain(random_floats(d, 0.2f, 5)),
        shift(random_floats(d, 0.5, 6)),
        given_stats(at(2 * m)) {
    for (float& value : gain) value += 1;
    for (auto* matrix : {&r, &y, &dx, &branch, &dy, &dyh}) matrix->resize(at(m * d));
    stats.resize(at(2 * m));
    in_parallel(m, [&](std::int64_t row) { define_row(row); });
    sums.resize(at((c.shape.branch_sums ? 3 : 2) * d));
    for (std::size_t i = 0; i < dy.size(); ++i) {
      const std::size_t column = i % at(d);
      sums[column] += dyh[i];
      sums[at(d) + column] += dy[i];
      if (c.shape.branch_sums) sums[at(2 * d) + column] += branch[i];
    }
  }

  /// a b^T forward, a b backward.
  std::vector<double> gemm_row(std::int64_t row) const {
    std::vector<double> sums_of_row(at(d));
    for (std::int64_t j = 0; j < d; ++j) {
      for (std::int64_t i = 0; i < k; ++i) {
        sums_of_row[at(j)] += value_of(a[at(row * k + i)]) *
                              value_of(b[at(given.shape.backward ? i * d + j : j * k + i)]);
      }
    }
    return sums_of_row;
  }

  void define_row(std::int64_t row) {
    const LinearNormShape& shape = given.shape;
    const std::vector<double> sums_of_row = gemm_row(row);
    const auto width = static_cast<double>(d);
    double mean = 0, square = 0, mean_g = 0, mean_gh = 0;
    for (std::int64_t j = 0; j < d; ++j) {
      const std::size_t i = at(row * d + j);
      r[i] = x[i];
      if (!shape.backward) {
        r[i] = given.stream_scale * r[i] +
               given.branch_scale * (sums_of_row[at(j)] + (given.rest ? bias[at(j)] : 0));
      }
      mean += shape.rms ? 0 : r[i] / width;
    }
    for (std::int64_t j = 0; j < d; ++j) square += std::pow(r[at(row * d + j)] - mean, 2);
    const double s = 1 / std::sqrt(square / width + kEpsilon);
    stats[at(2 * row)] = mean;
    stats[at(2 * row + 1)] = s;
    given_stats[at(2 * row)] = static_cast<float>(mean);
    given_stats[at(2 * row + 1)] = static_cast<float>(s);
    for (std::int64_t j = 0; j < d; ++j) {
      const std::size_t i = at(row * d + j);
      const double h = (r[i] - mean) * s, g = sums_of_row[at(j)] * gain[at(j)];
      y[i] = h * gain[at(j)] + (given.rest ? shift[at(j)] : 0);
      dy[i] = sums_of_row[at(j)];
      dyh[i] = sums_of_row[at(j)] * h;
      mean_g += shape.rms ? 0 : g / width;
      mean_gh += g * h / width;
    }
    for (std::int64_t j = 0; j < d; ++j) {
      const std::size_t i = at(row * d + j);
      const double h = (r[i] - mean) * s;
      const double dr =
          value_of(incoming[i]) + s * (sums_of_row[at(j)] * gain[at(j)] - mean_g - h * mean_gh);
      dx[i] = given.stream_scale * dr;
      branch[i] = given.branch_scale * dr;
    }
  }

  Case given;
  std::int64_t m, d, k;
  std::vector<Bits> a, b, incoming;
  std::vector<float> x, bias, gain, shift, given_stats;
  std::vector<double> r, y, stats, dx, branch, dy, dyh, sums;  // expected
};

/// The memory of one run.
struct Buffers {
  explicit Buffers(const Problem& p)
      : problem(p),
        a(p.a),
        b(p.b),
        y(p.m * p.d),
        incoming(p.incoming),
        dx(p.m * p.d),
        branch(p.m * p.d),
        gain(p.gain),
        shift(p.shift),
        bias(p.bias),
        x(p.x),
        r(p.m * p.d),
        stats(2 * p.m) {
    if (p.given.shape.backward) stats.write(p.given_stats);
  }

  GemmNormOperands operands() const {
    const Case& c = problem.given;
    GemmNormOperands all{.a = a.data(),
                         .b = b.data(),
                         .gain = gain.data(),
                         .stats = stats.data(),
                         .r = c.in_place || c.shape.backward ? x.data() : r.data(),
                         .stream_scale = c.stream_scale,
                         .branch_scale = c.branch_scale,
                         .x = x.data(),
                         .shift = c.rest ? shift.data() : nullptr,
                         .bias = c.rest ? bias.data() : nullptr,
                         .y = y.data(),
                         .epsilon = kEpsilon};
    if (!c.shape.backward) return all;
    all.incoming = incoming.data();
    all.dx = c.in_place ? incoming.data() : dx.data();
    all.d_branch = c.rest ? branch.data() : nullptr;
    return all;
  }
  const Halves& dx_memory() const { return problem.given.in_place ? incoming : dx; }
  const Floats& r_memory() const { return problem.given.in_place ? x : r; }
  void restore() {
    incoming.write(problem.incoming);
    x.write(problem.x);
  }
  bool guards_hold() const {
    return y.guard_holds() && incoming.guard_holds() && dx.guard_holds() && branch.guard_holds() &&
           x.guard_holds() && r.guard_holds() && stats.guard_holds();
  }

  const Problem& problem;
  Halves a, b, y, incoming, dx, branch;
  Floats gain, shift, bias, x, r, stats;
};

void expect_results(const Problem& p, const Buffers& run, const std::vector<float>& parts) {
  if (!p.given.shape.backward) {
    expect_near("r", run.r_memory().read(), p.r, p.d, 1e-4, 1e-4);
    expect_near("stats", run.stats.read(), p.stats, 2, 1e-4, 1e-4);
    expect_near("y", run.y.read(), p.y, p.d, 0.004, 1e-4);
    return;
  }
  expect_near("dx", run.dx_memory().read(), p.dx, p.d, 0.004, 1e-3);
  if (p.given.rest) expect_near("d_branch", run.branch.read(), p.branch, p.d, 0.004, 1e-3);
  std::vector<float> total(p.sums.size());
  for (std::size_t i = 0; i < parts.size(); ++i) total[i % total.size()] += parts[i];
  expect_near("sums", total, p.sums, p.d, 1e-3, 2e-4 * std::sqrt(static_cast<double>(p.m)));
}

class GemmNormTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_hopper(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(GemmNormTest, IsItsDefinition) {
  const Problem problem(GetParam());
  const LinearNormShape& shape = GetParam().shape;
  const Gpu gpu = find_gpu(0);
  for (const GemmNormVariant& variant : GemmNorm::variants(shape, gpu)) {
    SCOPED_TRACE(variant.name());
    Buffers run(problem);
    const GemmNorm gemm(shape, run.operands(), variant, gpu);
    Floats partial(std::max<std::int64_t>(1, gemm.parts() * gemm.sums() * problem.d));
    const auto launch = [&] {
      gemm.run(partial.data(), nullptr);
      check(cudaDeviceSynchronize(), "GEMM with a norm");
    };
    launch();
    const auto parts = partial.read();
    const auto first = shape.backward ? run.dx_memory().read() : run.y.read();
    expect_results(problem, run, parts);
    run.restore();
    launch();
    EXPECT_EQ(first, shape.backward ? run.dx_memory().read() : run.y.read()) << "another run";
    EXPECT_TRUE(!shape.backward || parts == partial.read()) << "another run";
    EXPECT_TRUE(run.guards_hold() && partial.guard_holds());
  }
}

std::vector<Case> cases() {
  const std::int64_t shapes[][3] = {
      {64, 64, 64},     {128, 128, 128}, {100, 48, 40},    {1, 16, 8},       {200, 144, 72},
      {1000, 128, 512}, {300, 192, 192}, {513, 256, 256},  {700, 256, 1024}, {777, 176, 776},
      {9000, 256, 768}, {40000, 64, 64}, {20000, 256, 512}};
  std::vector<Case> all;
  for (const bool backward : {false, true}) {
    for (const auto& [m, d, k] : shapes) {
      LinearNormShape shape{.rows = m, .width = d, .depth = k, .backward = backward};
      shape.branch_sums = shape.branch = backward;
      all.push_back({shape, 0.5f, 1.5f, true, true});
      shape.rms = true;
      shape.branch_sums = shape.branch = false;
      all.push_back({shape, 1, 1, false, false});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, GemmNormTest, testing::ValuesIn(cases()));

}  // namespace
}  // namespace fathom::engine::cuda
