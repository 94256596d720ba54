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
std::string text_of(RunStatus value) {
  return is_done(value) ? to_string(value) : "";
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
void read_text(const std::string& text, RunStatus& value) {
  value = find_enum<RunStatus>(text).value_or(value);
}

template <class Notes, class Visitor>
void visit_notes(Notes& notes, const Visitor& note) {
  note("metrics_bytes", notes.metrics_bytes);
  note("stale", notes.stale);
  note("watch", notes.watch);
}

struct ColumnWriter {
  std::map<std::string, std::string>& metadata;

  template <class T>
  void operator()(const Column& column, const T& value) {
    metadata[column.field] = text_of(value);
  }
  void derived(const Column&, double) {}
};

struct ColumnReader {
  const std::map<std::string, std::string>& metadata;

  template <class T>
  void operator()(const Column& column, T& value) {
    if (const auto found = metadata.find(column.field); found != metadata.end()) {
      read_text(found->second, value);
    }
  }
  void derived(const Column&, double) {}
};

}  // namespace

std::map<std::string, std::string> CheckpointNotes::to_metadata() const {
  std::map<std::string, std::string> metadata;
  visit_notes(*this, [&](const char* key, const auto& value) { metadata[key] = text_of(value); });
  ColumnWriter writer{metadata};
  RunRecord::visit_columns(record, writer);
  metadata["spec"] = spec;
  return metadata;
}

CheckpointNotes CheckpointNotes::from_metadata(const std::map<std::string, std::string>& metadata,
                                               const std::filesystem::path& path,
                                               RunRecord record) {
  CheckpointNotes notes;
  visit_notes(notes, [&](const char* key, auto& value) {
    const auto found = metadata.find(key);
    if (found == metadata.end()) {
      throw DataError(fmt::format("{}: lacks '{}'", path.string(), key));
    }
    read_text(found->second, value);
  });
  ColumnReader reader{metadata};
  RunRecord::visit_columns(record, reader);
  notes.record = std::move(record);
  return notes;
}

CheckpointNotes read_checkpoint_notes(const std::filesystem::path& path) {
  return CheckpointNotes::from_metadata(SafetensorsFile(path).metadata(), path);
}

}  // namespace fathom::train
