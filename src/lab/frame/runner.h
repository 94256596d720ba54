// Runs the parts of an experiment, several at once, and judges what they found.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lab/frame/claim.h"
#include "lab/frame/experiment.h"
#include "lab/frame/records.h"
#include "lab/frame/verdict.h"

namespace fathom::lab {

struct RunEvents {
  /// Asked often, from any thread; true stops the work with a StoppedError.
  std::function<bool()> stop;
  /// Share of the claim's work that is done; calls are made one at a time.
  std::function<void(double)> progress;
};

struct PartResults {
  std::vector<Json> results;  // in the order of the parts
  std::size_t resumed = 0;    // taken from records
  double seconds = 0;         // added up, those from records included
};
/// Computes what the records lack, `threads` parts at once, the most expensive first. Parts with
/// equal keys are one part. `records` may be null.
PartResults run_parts(const std::vector<Part>& parts, std::size_t threads, LabRecords* records = {},
                      const RunEvents& events = {});

/// Wall time of work done several parts at once, over all calls: the time during which at least one
/// part ran, and the most that ran together. Work that a part did before it was stopped is not
/// counted.
struct BusyTime {
  double seconds = 0;
  std::size_t at_once = 0;
};
BusyTime busy_time(std::span<const Interval> parts);  // from begin to end of each

struct LabResult {
  const Claim* claim = nullptr;
  Setup setup;
  Conclusion conclusion;
  Judgement judgement;
  std::size_t parts = 0;
  std::size_t resumed = 0;  // taken from records
  double seconds = 0;       // of this call
  double part_seconds = 0;  // of all parts added up, those from records included
  std::size_t dated = 0;    // parts whose end is on record, over all calls
  BusyTime busy;            // of those
};

/// `records` may be null. Results do not depend on `threads`, nor on what was resumed.
LabResult run_claim(const Claim& claim, const Setup& setup, std::size_t threads,
                    LabRecords* records = nullptr, const RunEvents& events = {});

}  // namespace fathom::lab
