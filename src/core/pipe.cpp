#include "core/pipe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>

#include "core/error.h"
#include "core/uninterrupted.h"

namespace fathom {

ssize_t read_pipe_first(int pipe, const std::string& name, char* buffer, std::size_t size) {
  constexpr int kTries = 40;
  const auto read_some = [&] { return uninterrupted([&] { return read(pipe, buffer, size); }); };
  ssize_t count = read_some();
  for (int i = 0; count == 0 && i < kTries; ++i) {
    usleep(50'000);
    count = read_some();
  }
  const bool writer_is_slow = count < 0 && errno == EAGAIN;
  if (count == 0) throw DataError(fmt::format("{}: a pipe that nobody writes to", name));
  fcntl(pipe, F_SETFL, 0);
  return writer_is_slow ? read_some() : count;
}

}  // namespace fathom
