#include "terminal/descriptor_buffer.h"

#include "core/files.h"

namespace fathom {

DescriptorBuffer::DescriptorBuffer(int handle) : handle_(handle), buffer_(64 << 10) {
  setp(buffer_.data(), buffer_.data() + buffer_.size());
}

int DescriptorBuffer::finish() {
  const std::string_view waiting(pbase(), static_cast<std::size_t>(pptr() - pbase()));
  if (cause_ == 0) cause_ = write_to_handle(handle_, waiting);
  setp(buffer_.data(), buffer_.data() + buffer_.size());
  return cause_;
}

DescriptorBuffer::int_type DescriptorBuffer::overflow(int_type c) {
  if (finish() != 0) return traits_type::eof();
  if (!traits_type::eq_int_type(c, traits_type::eof())) sputc(traits_type::to_char_type(c));
  return traits_type::not_eof(c);
}

}  // namespace fathom
