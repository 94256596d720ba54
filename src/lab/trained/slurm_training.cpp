#include "lab/trained/slurm_training.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/folders.h"
#include "study/planned_run.h"
#include "study/slurm_executor.h"

namespace fathom::lab {

void train_on_slurm(const Setup& setup, const std::vector<Part>& parts, const LabRecords& records,
                    const study::SlurmOptions& options, const study::ExecutorEvents& events) {
  study::Study lab{.folder = study::StudyFolder(setup.folder), .spec = {}, .runs = {}};
  lab.has_tokens = true;
  make_folder(lab.folder.runs());
  for (const Part& part : parts) {
    if (!part.plan_run || records.find(part.key) != nullptr) continue;
    study::PlannedRun run = part.plan_run();
    if (lab.find(run.id) == nullptr) lab.runs.push_back(std::move(run));
  }
  if (lab.runs.empty()) return;
  const study::ExecutorResult result = study::run_slurm(lab, lab.all_runs(), options, events);
  if (result.stopped) throw StoppedError("stopped; the same command continues");
  if (result.failed > 0) {
    throw DataError(
        fmt::format("{} of {} runs failed under Slurm; 'fathom study status {}' says why",
                    result.failed, lab.runs.size(), setup.folder.string()));
  }
}

}  // namespace fathom::lab
