#include "train/checkpoint_notes.h"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.h"
#include "core/safetensors.h"

namespace fathom::train {
namespace {

std::string text_of(double value) {
  return fmt::format("{}", value);  // the shortest text that reads back as the same double
}
std::string text_of(std::uint64_t value) {
  return std::to_string(value);
}
std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
std::string text_of(const std::string& value) {
  return value;
}
std::string text_of(const std::optional<RunStatus>& value) {
  return value ? to_string(*value) : "";
}

void read_text(const std::string& text, double& value) {
  value = std::strtod(text.c_str(), nullptr);
}
void read_text(const std::string& text, std::uint64_t& value) {
  value = std::strtoull(text.c_str(), nullptr, 10);
}
void read_text(const std::string& text, std::int64_t& value) {
  value = std::strtoll(text.c_str(), nullptr, 10);
}
void read_text(const std::string& text, std::string& value) {
  value = text;
}
void read_text(const std::string& text, std::optional<RunStatus>& value) {
  value = find_enum<RunStatus>(text);
}

constexpr const char* kOutcome = "outcome";

/// The notes of the first version, then those that came with the outcome.
template <class Notes, class Visitor>
void visit_notes(Notes& notes, Visitor&& note, bool with_outcome) {
  note("metrics_bytes", notes.metrics_bytes);
  note("best_loss", notes.best_loss);
  note("stale", notes.stale);
  note("watch", notes.watch);
  if (!with_outcome) return;
  note("final_loss", notes.final_loss);
  note("final_bits_per_byte", notes.final_bits_per_byte);
  note("reason", notes.reason);
  note(kOutcome, notes.outcome);
}

}  // namespace

std::map<std::string, std::string> CheckpointNotes::to_metadata() const {
  std::map<std::string, std::string> metadata;
  const auto write = [&](const char* key, const auto& value) { metadata[key] = text_of(value); };
  visit_notes(*this, write, true);
  metadata["spec"] = spec;
  return metadata;
}

CheckpointNotes CheckpointNotes::from_metadata(const std::map<std::string, std::string>& metadata,
                                               const std::filesystem::path& path) {
  CheckpointNotes notes;
  const auto read = [&](const char* key, auto& value) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) {
      throw DataError(fmt::format("{}: lacks '{}'", path.string(), key));
    }
    read_text(found->second, value);
  };
  visit_notes(notes, read, metadata.contains(kOutcome));
  return notes;
}

CheckpointNotes read_checkpoint_notes(const std::filesystem::path& path) {
  return CheckpointNotes::from_metadata(SafetensorsFile(path).metadata(), path);
}

}  // namespace fathom::train
