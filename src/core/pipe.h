// Pipes in place of a file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

namespace fathom {

/// The first bytes of a pipe that was opened with O_NONBLOCK, if it has a writer or gets one within
/// two seconds; else a DataError that begins with `name`. Later reads of the descriptor wait for
/// the writer, however slow. Below 0 with errno when reading fails.
ssize_t read_pipe_first(int pipe, const std::string& name, char* buffer, std::size_t size);

}  // namespace fathom
