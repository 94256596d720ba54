// What the process must settle before its first command.
#pragma once

namespace fathom {

/// Standard streams that the caller closed must not become the first file that is opened: /dev/null
/// takes their place, unwritable, so that a result which goes nowhere is still an error. A
/// file-size limit makes writing fail instead of killing (SIGXFSZ), and memory mapped from a file
/// that was truncated meanwhile, or whose disk fails, ends the process with a message and exit code
/// 3 (SIGBUS).
void prepare_process();

}  // namespace fathom
