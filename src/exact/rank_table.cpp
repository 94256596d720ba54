#include "exact/rank_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/counts.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/units.h"

namespace fathom::exact {
namespace {

/// Assigns settings, the largest first, to workers that have memory for them.
class Pool {
 public:
  Pool(const std::vector<RankSetting>& settings, const RankOptions& options, RankRecords* records,
       const TableProgress& progress)
      : settings_(settings),
        options_(options),
        records_(records),
        progress_(progress),
        limit_(options.memory_bytes > 0 ? options.memory_bytes : usable_memory_bytes()),
        results_(settings.size()) {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      needs_.push_back(smallest_memory(settings[i], options));
      if (needs_[i] > limit_) {
        throw ConfigError(fmt::format("{} needs {} of memory, above the limit of {}",
                                      settings[i].key(), format_bytes(needs_[i]),
                                      format_bytes(limit_)));
      }
      const RankResult* known = records == nullptr ? nullptr : records->find(settings[i], options);
      if (known != nullptr) {
        results_[i] = *known;
        ++done_;
      } else {
        waiting_.push_back(i);
      }
    }
    std::stable_sort(waiting_.begin(), waiting_.end(),
                     [&](std::size_t a, std::size_t b) { return needs_[a] > needs_[b]; });
  }

  std::vector<RankResult> run() {
    std::vector<std::thread> workers;
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options_.threads); ++i) {
      workers.emplace_back([this] { work(); });
    }
    for (std::thread& worker : workers) worker.join();
    if (failure_) std::rethrow_exception(failure_);
    return std::move(results_);
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (!failure_ && !waiting_.empty()) {
      const auto fits = std::find_if(waiting_.begin(), waiting_.end(), [&](std::size_t i) {
        return in_use_ == 0 || in_use_ + needs_[i] <= limit_;
      });
      if (fits == waiting_.end()) {
        memory_freed_.wait(lock);
        continue;
      }
      const std::size_t index = *fits;
      waiting_.erase(fits);
      in_use_ += needs_[index];
      lock.unlock();
      std::exception_ptr failure;
      try {
        compute(index);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      in_use_ -= needs_[index];
      if (failure && !failure_) failure_ = failure;
      memory_freed_.notify_all();
    }
  }

  void compute(std::size_t index) {
    RankOptions options = options_;
    options.threads = 1;
    options.memory_bytes = std::max(needs_[index] * 1.001,
                                    limit_ / as_double(std::max<std::size_t>(1, options_.threads)));
    RankResult result = compute_rank(settings_[index], options);
    const std::scoped_lock lock(mutex_);
    if (records_ != nullptr) records_->add(settings_[index], options_, result);
    results_[index] = std::move(result);
    ++done_;
    if (progress_.finished) {
      progress_.finished(index, results_[index], done_, settings_.size());
    }
  }

  const std::vector<RankSetting>& settings_;
  const RankOptions& options_;
  RankRecords* records_;
  const TableProgress& progress_;
  double limit_;
  std::vector<RankResult> results_;
  std::vector<double> needs_;
  std::vector<std::size_t> waiting_;
  std::size_t done_ = 0;
  double in_use_ = 0;
  std::exception_ptr failure_;
  std::mutex mutex_;
  std::condition_variable memory_freed_;
};

}  // namespace

std::vector<RankResult> compute_ranks(const std::vector<RankSetting>& settings,
                                      const RankOptions& options, RankRecords* records,
                                      const TableProgress& progress) {
  return Pool(settings, options, records, progress).run();
}

}  // namespace fathom::exact
