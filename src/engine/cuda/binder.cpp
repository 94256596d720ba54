#include "engine/cuda/binder.h"

namespace fathom::engine::cuda {
namespace {

/// Represents the bytes of a scratch that is not allocated yet: the address of its object.
ByteRange token_of(const std::shared_ptr<Scratch>& scratch) {
  return bytes_at(scratch.get(), 1);
}

/// Tasks with what each touches. Side work of an op becomes tasks of its own: early ones before all
/// others, the rest after their op.
class TaskList {
 public:
  explicit TaskList(Lane side) : side_(side) {}

  void add_side_work(SideWork work) { side_works_.push_back(std::move(work)); }

  void add(BoundOp bound, std::size_t place, Lane lane, Footprint touched) {
    for (const SideWork& work : side_works_) {
      (work.early ? touched.reads : touched.writes).push_back(token_of(work.between));
    }
    main_.add({std::move(bound), place, lane}, std::move(touched));
    for (SideWork& work : side_works_) {
      (work.early ? work.touched.writes : work.touched.reads).push_back(token_of(work.between));
      (work.early ? early_ : main_)
          .add({std::move(work.run), place, side_}, std::move(work.touched));
    }
    side_works_.clear();
  }

  BoundProgram finish() {
    early_.append(main_);
    return {std::move(early_.tasks), schedule_lanes(early_.lanes)};
  }

 private:
  struct Tasks {
    std::vector<Task> tasks;
    std::vector<LaneTask> lanes;

    void add(Task task, Footprint touched) {
      lanes.push_back({task.lane, std::move(touched)});
      tasks.push_back(std::move(task));
    }
    void append(const Tasks& later) {
      tasks.insert(tasks.end(), later.tasks.begin(), later.tasks.end());
      lanes.insert(lanes.end(), later.lanes.begin(), later.lanes.end());
    }
  };
  Lane side_;
  Tasks early_, main_;
  std::vector<SideWork> side_works_;  // of the op being bound
};

BoundProgram bind_program(const StepPlan& plan, Program which, Lane side, const Memory& memory,
                          Context context) {
  TaskList list(side);
  context.beside = [&](SideWork work) { list.add_side_work(std::move(work)); };
  const std::vector<Op>& ops = plan.program(which);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Lane lane = plan.lanes(which)[i] == Lane::side ? side : Lane::main;
    context.scratch = memory.scratch(lane);
    BoundOp bound = std::visit([&](const auto& op) { return bind(op, context); }, ops[i]);
    list.add(std::move(bound), i, lane, memory.footprint(ops[i]));
  }
  return list.finish();
}

}  // namespace

EnumArray<Program, BoundProgram> bind_programs(const StepPlan& plan, const CudaOptions& options,
                                               const Gpu& gpu, Memory& memory, GemmLibrary& gemms,
                                               const DeviceScalars* scalars) {
  std::vector<std::function<void()>> ready;
  const Context context{plan.tensors(),
                        gpu,
                        gemms,
                        {},
                        scalars,
                        [&memory](TensorId id) { return memory.address(id); },
                        [&memory](std::int64_t bytes) { return memory.hold(bytes); },
                        {},
                        [&memory] { return memory.between(); },
                        [&ready](std::function<void()> call) { ready.push_back(std::move(call)); }};
  const Lane side = options.lanes > 1 ? Lane::side : Lane::main;
  EnumArray<Program, BoundProgram> programs;
  for (const Program which : kEnumValues<Program>) {
    programs[which] = bind_program(plan, which, side, memory, context);
  }
  memory.place_scratch();
  for (const auto& call : ready) call();
  check(cudaDeviceSynchronize(), "preparing GEMMs");
  memory.clear_results();
  return programs;
}

}  // namespace fathom::engine::cuda
