// A stream buffer onto an open file descriptor that remembers why writing failed.
//
// std::cout only knows that something went wrong; a full disk should be reported as such. After a
// failure further output is dropped, so that a command finishes its work before the error is
// reported. Memory: 64 KiB.
#pragma once

#include <streambuf>
#include <vector>

namespace fathom {

class DescriptorBuffer : public std::streambuf {
 public:
  explicit DescriptorBuffer(int handle);

  /// Writes what is buffered; the error number of the first failure, 0 when everything was written.
  int finish();

 protected:
  int_type overflow(int_type c) override;
  int sync() override { return finish() == 0 ? 0 : -1; }

 private:
  int handle_;
  int cause_ = 0;
  std::vector<char> buffer_;
};

}  // namespace fathom
