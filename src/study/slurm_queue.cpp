#include "study/slurm_queue.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>

#include "core/error.h"
#include "core/files.h"
#include "core/folders.h"
#include "core/hash.h"
#include "core/text.h"
#include "study/subprocess.h"

namespace fathom::study {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kNamePrefix = "fathom-";

std::string first_line(const std::string& text) {
  return printable(split(text, '\n').front(), 300);
}

std::string shell_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Whether sbatch failed because the controller could not be reached, which passes, and not because
/// it refuses the job (the words of slurm_strerror for errors of communication).
bool is_passing(const std::string& message) {
  constexpr std::array kWords{"Unable to contact slurm controller",
                              "Connection refused",
                              "Socket timed out",
                              "Communication connection failure",
                              "Communication shutdown failure",
                              "Message receive failure",
                              "Message send failure",
                              "Zero Bytes were transmitted",
                              "controller not accepting",
                              "Slurm temporarily unable",
                              "in standby mode",
                              "slurm_receive_msg",
                              "Resource temporarily unavailable"};
  return std::any_of(kWords.begin(), kWords.end(),
                     [&](const char* words) { return message.find(words) != std::string::npos; });
}

/// Names a submission: the directory's part distinguishes studies, the rest submissions.
std::string study_part(const fs::path& directory) {
  return hash_bytes(directory.string()).hex().substr(0, 8);
}

std::string new_token(const fs::path& directory) {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  return study_part(directory) + "-" +
         hash_bytes(fmt::format("{} {}", now, getpid())).hex().substr(0, 8);
}

}  // namespace

std::vector<std::string> read_task(const fs::path& file, std::size_t index) {
  const std::vector<std::string> lines = split(read_text_file(file), '\n');
  if (index >= lines.size() || lines[index].empty()) {
    throw DataError(fmt::format("{}: has no task {}", file.string(), index));
  }
  return split(lines[index], ' ');
}

SlurmQueue::SlurmQueue(StudyFolder folder, SlurmOptions options, std::function<bool()> stop)
    : folder_(std::move(folder)),
      options_(std::move(options)),
      patience_{options_.answer_seconds, std::move(stop)} {
  remove_leftovers_in(folder_.slurm());  // of a submitter that was killed
  const ProgramResult version = run_program({"sbatch", "--version"}, patience_);
  if (version.code != 0 && !version.cut_short) {
    throw DeviceError("there is no Slurm here: sbatch was not found on the PATH");
  }
}

fs::path SlurmQueue::task_file(const std::string& token) const {
  return folder_.slurm() / (token + ".tasks");
}

std::optional<std::string> SlurmQueue::submit(std::span<const std::vector<std::string>> tasks,
                                              std::int64_t cpus) {
  const fs::path folder = folder_.slurm();
  std::error_code ignored;
  fs::create_directories(folder, ignored);
  const std::string token = new_token(folder_.path());
  std::string lines;
  for (const auto& ids : tasks) lines += join(ids, " ") + "\n";
  const fs::path file = task_file(token);
  write_file_atomically(file, lines);
  // exec: the program itself is what Slurm signals.
  const fs::path script = folder / (token + ".sh");
  write_file_atomically(
      script,
      fmt::format("#!/bin/sh\nexec {} study task {} {}\n", shell_quoted(options_.program.string()),
                  shell_quoted(folder_.name()), shell_quoted(file.string())));
  std::string array = fmt::format("--array=0-{}", tasks.size() - 1);
  if (options_.max_tasks > 0) array += fmt::format("%{}", options_.max_tasks);
  std::vector<std::string> command{
      "sbatch",
      "--parsable",
      array,
      fmt::format("--job-name={}{}", kNamePrefix, token),
      "--requeue",
      "--open-mode=append",
      "--signal=B:USR1@60",
      fmt::format("--cpus-per-task={}", cpus),
      fmt::format("--output={}", (folder / (token + "-%a.log")).string())};
  if (!options_.partition.empty()) command.push_back("--partition=" + options_.partition);
  command.insert(command.end(), options_.sbatch_options.begin(), options_.sbatch_options.end());
  command.push_back(script.string());
  const ProgramResult result = run_program(command, patience_);
  if (result.cut_short) {
    // The job may be in the queue all the same: its files stay, and the queue will show it.
    error_ = fmt::format("sbatch gave no answer in {:.0f} seconds", patience_.seconds);
    return {};
  }
  if (result.code != 0) {
    fs::remove(file, ignored);
    fs::remove(script, ignored);
    error_ = first_line(result.err);
    if (is_passing(result.err)) return {};
    throw DeviceError("Slurm refuses the job: " + error_);
  }
  return split(split(result.out, '\n').front(), ';').front();
}

std::optional<std::vector<SlurmTask>> SlurmQueue::tasks() {
  const ProgramResult result = run_program(
      {"squeue", "-h", "-r", "-u", std::to_string(getuid()), "-o", "%F_%K|%K|%T|%j|%r"}, patience_);
  if (result.cut_short || result.code != 0) {
    error_ = result.cut_short
                 ? fmt::format("squeue gave no answer in {:.0f} seconds", patience_.seconds)
                 : first_line(result.err);
    return {};
  }
  std::vector<SlurmTask> tasks;
  const std::string prefix = std::string(kNamePrefix) + study_part(folder_.path()) + "-";
  for (const std::string& line : split(result.out, '\n')) {
    const std::vector<std::string> parts = split(line, '|');
    if (parts.size() != 5 || !parts[3].starts_with(prefix)) continue;
    tasks.push_back({parts[0], parts[3].substr(kNamePrefix.size()),
                     std::strtoull(parts[1].c_str(), nullptr, 10), parts[2], parts[4]});
  }
  return tasks;
}

std::vector<std::string> SlurmQueue::runs_of(const SlurmTask& task) {
  const fs::path file = task_file(task.token);
  return fs::exists(file) ? read_task(file, task.index) : std::vector<std::string>{};
}

void SlurmQueue::cancel(const std::string& task_or_job) const {
  run_program({"scancel", task_or_job}, patience_);
}

void SlurmQueue::start_now(const SlurmTask& task) const {
  run_program({"scontrol", "update", "JobId=" + task.id, "StartTime=now"}, patience_);
}

}  // namespace fathom::study
