#include "engine/cuda/step_graph.h"

namespace fathom::engine::cuda {
namespace {

constexpr std::size_t kNoEvent = static_cast<std::size_t>(-1);

}  // namespace

StepGraph::StepGraph(BoundProgram program, const Streams& streams)
    : program_(std::move(program)), streams_(&streams), event_of_(program_.tasks.size(), kNoEvent) {
  for (std::size_t i = 0; i < event_of_.size(); ++i) {
    if (!program_.schedule.signals[i]) continue;
    event_of_[i] = done_.size();
    done_.emplace_back();
  }
  if (program_.schedule.last_side != kNoTask) fork_.emplace();
}

StepGraph::~StepGraph() {
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}

StepGraph::StepGraph(StepGraph&& other) noexcept {
  *this = std::move(other);
}

StepGraph& StepGraph::operator=(StepGraph&& other) noexcept {
  std::swap(program_, other.program_);
  std::swap(streams_, other.streams_);
  std::swap(done_, other.done_);
  std::swap(event_of_, other.event_of_);
  std::swap(fork_, other.fork_);
  std::swap(warm_, other.warm_);
  std::swap(graph_, other.graph_);
  return *this;
}

void StepGraph::launch() const {
  const LaneSchedule& schedule = program_.schedule;
  const auto done = [&](std::ptrdiff_t task) -> const Event& {
    return done_[event_of_[static_cast<std::size_t>(task)]];
  };
  if (fork_) {
    fork_->record(streams_->main());
    fork_->delay((*streams_)[Lane::side]);
  }
  for (std::size_t i = 0; i < program_.tasks.size(); ++i) {
    const Task& task = program_.tasks[i];
    const cudaStream_t stream = (*streams_)[task.lane];
    if (schedule.waits[i] != kNoTask) done(schedule.waits[i]).delay(stream);
    task.run(stream);
    if (event_of_[i] != kNoEvent) done_[event_of_[i]].record(stream);
  }
  if (fork_) done(schedule.last_side).delay(streams_->main());
}

void StepGraph::capture() {
  const cudaStream_t stream = streams_->main();
  cudaGraph_t graph = nullptr;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing a step");
  try {
    launch();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    throw;
  }
  check(cudaStreamEndCapture(stream, &graph), "capturing a step");
  check(cudaGraphInstantiate(&graph_, graph, 0), "preparing a step");
  check(cudaGraphDestroy(graph), "preparing a step");
}

void StepGraph::run(bool graphs) {
  // The first run loads every kernel, which is not allowed during a capture.
  if (!warm_ || !graphs) {
    launch();
    warm_ = true;
    return;
  }
  if (graph_ == nullptr) capture();
  replay();
}

void StepGraph::replay() const {
  check(cudaGraphLaunch(graph_, streams_->main()), "launching a step");
}

void StepGraph::run_timed(const std::function<void(std::size_t, double)>& report) const {
  const cudaStream_t stream = streams_->main();
  const std::vector<Task>& tasks = program_.tasks;
  std::vector<cudaEvent_t> events(tasks.size() + 1);
  for (cudaEvent_t& event : events) check(cudaEventCreate(&event), "event");
  cudaEventRecord(events[0], stream);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    tasks[i].run(stream);
    cudaEventRecord(events[i + 1], stream);
  }
  streams_->wait();
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, events[i], events[i + 1]);
    report(tasks[i].place, milliseconds * 1e-3);
  }
  for (cudaEvent_t event : events) cudaEventDestroy(event);
}

}  // namespace fathom::engine::cuda
