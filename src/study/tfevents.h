// TensorBoard event files: scalars by step.
//
// A file is a sequence of TFRecords:  u64 length, u32 its masked crc, data, u32 masked crc.
//   masked(crc) = ((crc >> 15) | (crc << 17)) + 0xa282ead8,  crc = CRC-32C (Castagnoli)
// The data are protobuf messages Event { 1: double wall_time, 2: int64 step, 3: string
// file_version | 5: Summary { 1: repeated Value { 1: string tag, 2: float simple_value } } }.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fathom::study {

std::uint32_t crc32c(std::string_view bytes);

/// The bytes of an event file, to be written whole.
class EventFile {
 public:
  explicit EventFile(double wall_time);
  void scalar(const std::string& tag, std::int64_t step, double value, double wall_time);
  const std::string& bytes() const { return bytes_; }

 private:
  void record(const std::string& event);
  std::string bytes_;
};

}  // namespace fathom::study
