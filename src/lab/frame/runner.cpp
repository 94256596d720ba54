#include "lab/frame/runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <exception>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "core/error.h"
#include "core/json_reader.h"
#include "core/seconds_since.h"
#include "lab/frame/result_json.h"

namespace fathom::lab {
namespace {

using Clock = std::chrono::steady_clock;

/// Gives the parts to threads, the most expensive first.
class PartPool {
 public:
  PartPool(const std::vector<Part>& parts, LabRecords* records, const RunEvents& events)
      : parts_(parts), records_(records), events_(events), results_(parts.size()) {
    shares_.assign(parts.size(), 0);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      total_ += parts[i].cost;
      const auto* known = records == nullptr ? nullptr : records->find(parts[i].key);
      if (known == nullptr) {
        std::vector<std::size_t>& twins = twins_[parts[i].key];
        if (twins.empty()) waiting_.push_back(i);  // equal parts are computed once
        twins.push_back(i);
      } else {
        results_[i] = known->result;
        part_seconds_ += known->seconds;
        shares_[i] = parts[i].cost;
        ++resumed_;
      }
    }
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](std::size_t a, std::size_t b) { return parts[a].cost < parts[b].cost; });
  }

  std::vector<Json> run(std::size_t threads) {
    std::vector<std::jthread> others;
    for (std::size_t i = 1; i < std::min(threads, waiting_.size()); ++i) {
      others.emplace_back([this] { work(); });
    }
    work();
    others.clear();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(results_);
  }

  std::size_t resumed() const { return resumed_; }
  double part_seconds() const { return part_seconds_; }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!failure_ && !waiting_.empty()) {
      const std::size_t i = waiting_.back();
      waiting_.pop_back();
      lock.unlock();
      try {
        const auto start = Clock::now();
        Json result = parts_[i].compute([&](double share) { tick(i, share); });
        tick(i, 1);
        const double seconds = seconds_since(start);
        if (records_ != nullptr) records_->add(parts_[i].key, result, seconds);
        lock.lock();
        part_seconds_ += seconds;
        for (const std::size_t twin : twins_.at(parts_[i].key)) {
          results_[twin] = result;
          shares_[twin] = parts_[twin].cost;
        }
      } catch (...) {
        if (!lock.owns_lock()) lock.lock();
        if (!failure_) failure_ = std::current_exception();
      }
    }
  }

  void tick(std::size_t part, double share) {
    if (events_.stop && events_.stop()) {
      throw StoppedError(records_ != nullptr
                             ? "stopped; the same command continues"
                             : "stopped, and nothing was kept; --out DIR keeps finished parts");
    }
    const std::lock_guard lock(mutex_);
    if (failure_) throw StoppedError("another part failed");
    shares_[part] = share * parts_[part].cost;
    if (!events_.progress) return;
    double done = 0;
    for (const double each : shares_) done += each;
    events_.progress(total_ > 0 ? done / total_ : 1);
  }

  const std::vector<Part>& parts_;
  LabRecords* records_;
  const RunEvents& events_;
  std::vector<Json> results_;
  std::vector<double> shares_;
  double total_ = 0;
  double part_seconds_ = 0;
  std::vector<std::size_t> waiting_;  // most expensive last
  std::map<std::string, std::vector<std::size_t>> twins_;
  std::size_t resumed_ = 0;
  std::mutex mutex_;
  std::exception_ptr failure_;
};

/// When the parts ran, as far as records tell.
std::vector<Interval> times_of(const std::vector<Part>& parts, const LabRecords& records) {
  std::vector<Interval> times;
  std::set<std::string> seen;
  for (const Part& part : parts) {
    const LabRecords::Finished* known = records.find(part.key);
    if (known == nullptr || !std::isfinite(known->ended)) continue;
    if (!seen.insert(part.key).second) continue;
    times.push_back({known->ended - known->seconds, known->ended});
  }
  return times;
}

/// What the results say. A result read from a record may not have the form its experiment makes.
Conclusion conclude(const Experiment& experiment, const Setup& setup, const PartResults& done,
                    const LabRecords* records) {
  const auto damaged = [&](const std::string& problem) {
    return DataError(
        fmt::format("{}: a part of {} is damaged ({}); without this file it is "
                    "computed again",
                    records->parts_file().string(), experiment.claim, problem));
  };
  const bool computed_all = records == nullptr || done.resumed == 0;
  try {
    return experiment.conclude(setup, done.results);
  } catch (const Json::exception& error) {
    if (computed_all) throw;
    throw damaged(json_problem(error));
  } catch (const DataError& error) {
    if (computed_all) throw;
    throw damaged(error.what());
  }
}

}  // namespace

BusyTime busy_time(std::span<const Interval> parts) {
  std::vector<std::pair<double, int>> changes;  // an end sorts before a begin at the same moment
  for (const Interval& part : parts) {
    changes.emplace_back(part.low, 1);
    changes.emplace_back(part.high, -1);
  }
  std::sort(changes.begin(), changes.end());
  BusyTime busy;
  int running = 0;
  double since = 0;
  for (const auto& [moment, change] : changes) {
    if (running > 0) busy.seconds += moment - since;
    since = moment;
    running += change;
    busy.at_once = std::max(busy.at_once, static_cast<std::size_t>(std::max(0, running)));
  }
  return busy;
}

PartResults run_parts(const std::vector<Part>& parts, std::size_t threads, LabRecords* records,
                      const RunEvents& events) {
  PartPool pool(parts, records, events);
  PartResults done;
  done.resumed = pool.resumed();
  done.results = pool.run(std::max<std::size_t>(1, threads));
  done.seconds = pool.part_seconds();
  return done;
}

LabResult run_claim(const Claim& claim, const Setup& setup, std::size_t threads,
                    LabRecords* records, const RunEvents& events) {
  const auto start = Clock::now();
  const Experiment& experiment = find_experiment(claim.id);
  const std::vector<Part> parts = experiment.plan(setup);
  const PartResults done = run_parts(parts, threads, records, events);
  LabResult result;
  result.claim = &claim;
  result.setup = setup;
  result.parts = parts.size();
  result.resumed = done.resumed;
  result.part_seconds = done.seconds;
  if (records != nullptr) {
    const std::vector<Interval> times = times_of(parts, *records);
    result.dated = times.size();
    result.busy = busy_time(times);
  }
  result.conclusion = conclude(experiment, setup, done, records);
  result.judgement = judge(claim, result.conclusion.measures, setup.own);
  result.seconds = seconds_since(start);
  if (records != nullptr) records->finish(result_json(result));
  return result;
}

}  // namespace fathom::lab
