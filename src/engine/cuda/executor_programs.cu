// How programs become tasks on two lanes, and how they run.
#include "engine/cuda/executor.h"

namespace fathom::engine::cuda {
namespace {

constexpr int kBetween = 4;  // side works that may be behind

struct Parts {
  std::optional<Op> unhurried;  // makes gradients of parameters, which nobody waits for
  std::optional<Op> rest;
};

Parts split(const Op& op) {
  Parts parts;
  if (const auto* product = std::get_if<LinearBackward>(&op)) {
    LinearBackward weight = *product, input = *product;
    weight.dx = input.d_weight = input.d_bias = {};
    if (weight.d_weight.exists() || weight.d_bias.exists()) parts.unhurried = weight;
    if (input.dx.exists()) parts.rest = input;
  } else if (const auto* embed = std::get_if<EmbedBackward>(&op);
             embed && embed->d_table.exists()) {
    EmbedBackward positions = *embed, table = *embed;
    positions.d_table = table.d_positions = {};
    if (positions.d_positions.exists()) parts.unhurried = positions;
    parts.rest = table;
  } else {
    parts.rest = op;
  }
  return parts;
}

/// A product that fills the device for long gains nothing from company: at width 512 (100 GFLOP and
/// more) steps were 0.9 % slower with it, at 128 (9 GFLOP) 2.7 % faster, at 64 5.7 %.
bool is_long(const Op& op, const StepPlan& plan) {
  constexpr double kLong = 50e9;
  const auto* product = std::get_if<LinearBackward>(&op);
  if (product == nullptr) return false;
  const Tensor& x = plan.tensor(product->x);
  const auto outs = static_cast<double>(plan.tensor(product->weight).rows);
  return 2 * outs * static_cast<double>(x.rows) * static_cast<double>(x.cols) > kLong;
}

BoundOp bind_any(const Op& op, const Context& context) {
  return std::visit([&](const auto& typed) { return bind(typed, context); }, op);
}

Footprint joined(Footprint first, const Footprint& second) {
  first.reads.insert(first.reads.end(), second.reads.begin(), second.reads.end());
  first.writes.insert(first.writes.end(), second.writes.begin(), second.writes.end());
  return first;
}

/// The bytes of a scratch before it has a place: those of the object that stands for it.
ByteRange token_of(const std::shared_ptr<Scratch>& scratch) {
  return bytes_at(scratch.get(), 1);
}

}  // namespace

/// The activation of u adds the bias of the product that makes u, if it is u's only reader: the
/// product is faster bare.
TensorId CudaExecutor::late_bias(TensorId u) const {
  TensorId bias;
  int readers = 0;
  bool activated = false;
  for (const ForwardOp& op : plan_.forward()) {
    if (const auto* linear = std::get_if<Linear>(&op); linear && linear->y == u) {
      bias = linear->bias;
    }
    const Uses uses = std::visit([](const auto& typed) { return typed.uses(); }, op);
    if (std::find(uses.reads.begin(), uses.reads.end(), u) == uses.reads.end()) continue;
    ++readers;
    activated = std::holds_alternative<Activation>(op);
  }
  return readers == 1 && activated ? bias : TensorId{};
}

/// What an op touches, less what only the ops of its own lane use (scratch, workspaces).
Footprint CudaExecutor::footprint(const Op& op) const {
  const auto ranges = [&](const std::vector<TensorId>& ids) {
    std::vector<ByteRange> found;
    for (const TensorId id : ids) found.push_back(bytes_at(address(id), plan_.tensor(id).bytes()));
    return found;
  };
  const Uses uses = uses_of(op);
  return {ranges(uses.reads), ranges(uses.writes)};
}

/// Tasks in the order that is right without lanes, with what each touches.
struct CudaExecutor::TaskList {
  std::vector<Task> tasks, early;
  std::vector<LaneTask> lanes, early_lanes;
  std::vector<SideWork> side_works;  // of the op that is being bound
  Lane side;

  void add(BoundOp bound, std::size_t place, Lane lane, Footprint touched) {
    for (const SideWork& work : side_works) {
      (work.early ? touched.reads : touched.writes).push_back(token_of(work.between));
    }
    tasks.push_back({std::move(bound), place, lane, nullptr});
    lanes.push_back({lane, std::move(touched)});
    for (SideWork& work : side_works) {
      (work.early ? work.touched.writes : work.touched.reads).push_back(token_of(work.between));
      (work.early ? early : tasks).push_back({std::move(work.run), place, side, nullptr});
      (work.early ? early_lanes : lanes).push_back({side, std::move(work.touched)});
    }
    side_works.clear();
  }

  BoundProgram finish() {
    tasks.insert(tasks.begin(), early.begin(), early.end());
    lanes.insert(lanes.begin(), early_lanes.begin(), early_lanes.end());
    BoundProgram program{.tasks = std::move(tasks), .schedule = schedule_lanes(lanes)};
    for (std::size_t i = 0; i < program.tasks.size(); ++i) {
      if (!program.schedule.signals[i]) continue;
      check(cudaEventCreateWithFlags(&program.tasks[i].done, cudaEventDisableTiming), "event");
    }
    return program;
  }
};

/// What nobody waits for, on the lane where it is best.
void CudaExecutor::bind_unhurried(const Op& op, std::size_t place, const Context& context,
                                  const Context& aside, TaskList& list) const {
  const Lane lane = is_long(op, plan_) ? Lane::main : list.side;
  list.add(bind_any(op, lane == Lane::side ? aside : context), place, lane, footprint(op));
}

/// Where the gradient of a product's result is made, so is the gradient of its bias: then the
/// product need not. False where ops[i] is no such maker.
bool CudaExecutor::bind_maker(std::vector<Op>& ops, std::size_t i, const Context& context,
                              TaskList& list) const {
  if (i + 1 == ops.size()) return false;
  auto* product = std::get_if<LinearBackward>(&ops[i + 1]);
  if (product == nullptr) return false;
  BoundOp maker = bind_with_bias_gradient(ops[i], *product, context);
  if (!maker) return false;
  Footprint touched = footprint(ops[i]);
  touched.writes.push_back(
      bytes_at(context.address(product->d_bias), plan_.tensor(product->d_bias).bytes()));
  product->d_bias = {};
  list.add(std::move(maker), i, Lane::main, std::move(touched));
  return true;
}

/// A product and the activation next to it as one task; on the way back the weight gradient of
/// `down` stays by itself. False where they stay apart; else ops[i + 1] is done with as well.
bool CudaExecutor::bind_activation(std::vector<Op>& ops, std::size_t i, const Context& context,
                                   const Context& aside, TaskList& list) const {
  if (i + 2 >= ops.size()) return false;
  if (const auto* up = std::get_if<Linear>(&ops[i])) {
    const auto* activation = std::get_if<Activation>(&ops[i + 1]);
    BoundOp bound = activation ? bind_activated(*up, *activation, context) : BoundOp{};
    if (bound) list.add(bound, i, Lane::main, joined(footprint(ops[i]), footprint(ops[i + 1])));
    return static_cast<bool>(bound);
  }
  const auto* down = std::get_if<LinearBackward>(&ops[i]);
  const auto* activation = std::get_if<ActivationBackward>(&ops[i + 1]);
  auto* up = std::get_if<LinearBackward>(&ops[i + 2]);
  if (!down || !activation || !up) return false;
  BoundOp bound = bind_activated(*down, *activation, *up, context);
  if (!bound) return false;
  const Parts parts = split(ops[i]);
  if (parts.unhurried) bind_unhurried(*parts.unhurried, i, context, aside, list);
  Footprint touched = joined(footprint(*parts.rest), footprint(ops[i + 1]));
  if (up->d_bias.exists()) {
    touched.writes.push_back(
        bytes_at(context.address(up->d_bias), plan_.tensor(up->d_bias).bytes()));
    up->d_bias = {};
  }
  list.add(std::move(bound), i + 1, Lane::main, std::move(touched));
  return true;
}

/// A product and the norm next to it as one task; on the way back the weight gradient of the
/// product stays by itself, and the bias gradient of the product before goes with them. False where
/// they stay apart; else ops[i + 1] is done with as well.
bool CudaExecutor::bind_norm(std::vector<Op>& ops, std::size_t i, const Context& context,
                             const Context& aside, TaskList& list) const {
  if (i + 1 >= ops.size()) return false;
  if (const auto* linear = std::get_if<Linear>(&ops[i])) {
    const auto* norm = std::get_if<Norm>(&ops[i + 1]);
    BoundOp bound = norm ? bind_normed(*linear, *norm, context) : BoundOp{};
    if (bound) list.add(bound, i, Lane::main, joined(footprint(ops[i]), footprint(ops[i + 1])));
    return static_cast<bool>(bound);
  }
  const auto* linear = std::get_if<LinearBackward>(&ops[i]);
  const auto* norm = std::get_if<NormBackward>(&ops[i + 1]);
  if (!linear || !norm) return false;
  auto* branch = i + 2 < ops.size() ? std::get_if<LinearBackward>(&ops[i + 2]) : nullptr;
  BoundOp bound = bind_normed(*linear, *norm, branch, context);
  if (!bound) return false;
  std::vector<SideWork> side_works;  // they follow the kernel, not the weight gradient before it
  side_works.swap(list.side_works);
  const Parts parts = split(ops[i]);
  if (parts.unhurried) bind_unhurried(*parts.unhurried, i, context, aside, list);
  list.side_works.swap(side_works);
  Footprint touched = joined(footprint(*parts.rest), footprint(ops[i + 1]));
  if (branch != nullptr && makes_bias_gradient(*norm, *branch)) {
    touched.writes.push_back(
        bytes_at(context.address(branch->d_bias), plan_.tensor(branch->d_bias).bytes()));
    branch->d_bias = {};
  }
  list.add(std::move(bound), i + 1, Lane::main, std::move(touched));
  return true;
}

CudaExecutor::BoundProgram CudaExecutor::bind_program(Program which, const Context& shared) {
  TaskList list{.side = options_.lanes > 1 ? Lane::side : Lane::main};
  Context context = shared;
  context.beside = [&](SideWork work) { list.side_works.push_back(std::move(work)); };
  Context aside = context;
  if (list.side == Lane::side) aside.scratch = side_scratch_;
  std::vector<Op> ops = plan_.program(which);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (bind_maker(ops, i, context, list)) continue;
    if (bind_activation(ops, i, context, aside, list) || bind_norm(ops, i, context, aside, list)) {
      ++i;
      continue;
    }
    const Parts parts = split(ops[i]);
    if (parts.unhurried) bind_unhurried(*parts.unhurried, i, context, aside, list);
    if (parts.rest) {
      list.add(bind_any(*parts.rest, context), i, Lane::main, footprint(*parts.rest));
    }
    if (const auto* adamw = std::get_if<AdamW>(&ops[i])) {
      beta1_ = adamw->beta1;
      beta2_ = adamw->beta2;
    }
  }
  return list.finish();
}

void CudaExecutor::bind_programs() {
  for (int i = 0; i < kBetween; ++i) between_.push_back(std::make_shared<Scratch>());
  std::vector<std::function<void()>> ready;
  int multiprocessors = 0;
  check(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, options_.device),
        "device");
  const Context context{
      plan_,
      *products_,
      scratch_,
      reinterpret_cast<const DeviceScalars*>(scalars_.data()),
      multiprocessors,
      [this](TensorId id) { return address(id); },
      [this](TensorId id) -> const void* {
        const std::int64_t offset = bias_offsets_[static_cast<std::size_t>(id.index)];
        return offset < 0 ? nullptr : bias_block_.data() + offset;
      },
      [this](TensorId u) { return late_bias(u); },
      [this](std::int64_t bytes) -> void* { return held_.emplace_back(bytes).data(); },
      {},
      [this] { return between_[next_between_++ % between_.size()]; },
      [&ready](std::function<void()> call) { ready.push_back(std::move(call)); }};
  for (int which = 0; which < kProgramCount; ++which) {
    programs_[static_cast<std::size_t>(which)] = bind_program(static_cast<Program>(which), context);
  }
  scratch_block_ = Block(scratch_->bytes());
  scratch_->place(scratch_block_.data());
  side_scratch_block_ = Block(side_scratch_->bytes());
  side_scratch_->place(side_scratch_block_.data());
  for (const auto& between : between_) {
    between_blocks_.emplace_back(between->bytes());
    between->place(between_blocks_.back().data());
  }
  for (const auto& call : ready) call();
  check(cudaStreamSynchronize(stream_), "preparing products");
  // Timing wrote to tensors that a program may only add to.
  for (const Storage storage : {Storage::gradient, Storage::output, Storage::activation}) {
    const Block& block = blocks_[static_cast<std::size_t>(storage)];
    if (block.data() == nullptr) continue;
    check(cudaMemset(block.data(), 0, static_cast<std::size_t>(block.bytes())), "clearing memory");
  }
  check(cudaDeviceSynchronize(), "clearing memory");
}

void CudaExecutor::launch(const BoundProgram& program) const {
  const bool forks = program.schedule.last_side != kNoTask;
  if (forks) {
    check(cudaEventRecord(fork_, stream_), "event");
    check(cudaStreamWaitEvent(side_, fork_), "event");
  }
  const auto done = [&](std::ptrdiff_t task) {
    return program.tasks[static_cast<std::size_t>(task)].done;
  };
  for (std::size_t i = 0; i < program.tasks.size(); ++i) {
    const Task& task = program.tasks[i];
    const cudaStream_t stream = task.lane == Lane::side ? side_ : stream_;
    const std::ptrdiff_t first = program.schedule.waits[i];
    if (first != kNoTask) check(cudaStreamWaitEvent(stream, done(first)), "event");
    task.run(stream);
    if (task.done != nullptr) check(cudaEventRecord(task.done, stream), "event");
  }
  if (forks) check(cudaStreamWaitEvent(stream_, done(program.schedule.last_side)), "event");
}

void CudaExecutor::capture(BoundProgram& program) {
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), "capturing a step");
  try {
    launch(program);
  } catch (...) {
    cudaStreamEndCapture(stream_, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream_, &graph), "capturing a step");
  check(cudaGraphInstantiate(&program.graph, graph, 0), "preparing a step");
  check(cudaGraphDestroy(graph), "preparing a step");
}

void CudaExecutor::run(Program which, const StepScalars& scalars) {
  select();
  BoundProgram& program = programs_[static_cast<std::size_t>(which)];
  if (program.tasks.empty()) return;
  send_scalars(scalars);
  // The first run loads every kernel, which a capture may not do; later ones launch the graph.
  if (!program.warm || !options_.graphs) {
    launch(program);
    program.warm = true;
    return;
  }
  if (program.graph == nullptr) capture(program);
  check(cudaGraphLaunch(program.graph, stream_), "launching a step");
}

void CudaExecutor::run_timed(Program which, const StepScalars& scalars,
                             const std::function<void(std::size_t, double)>& report) {
  select();
  const BoundProgram& program = programs_[static_cast<std::size_t>(which)];
  send_scalars(scalars);
  std::vector<cudaEvent_t> events(program.tasks.size() + 1);
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "event");
  cudaEventRecord(events[0], stream_);
  for (std::size_t i = 0; i < program.tasks.size(); ++i) {
    program.tasks[i].run(stream_);
    cudaEventRecord(events[i + 1], stream_);
  }
  wait();
  for (std::size_t i = 0; i < program.tasks.size(); ++i) {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, events[i], events[i + 1]);
    report(program.tasks[i].place, milliseconds * 1e-3);
  }
  for (cudaEvent_t event : events) cudaEventDestroy(event);
}

}  // namespace fathom::engine::cuda
