// Any bytes either read as documents, packed or not, or throw an error of one line. The first byte
// says how the text falls into documents; where it is not JSONL and not packed, the pieces make up
// the text again.
#include "data/corpus.h"
#include "fuzz_input.h"

namespace {

constexpr std::size_t kMostBytes = 4 << 20;  // of an unpacked text; the rest is more of the same

bool is_packed(const std::uint8_t* data, std::size_t size) {
  return size > 1 && (data[0] == 0x1f || data[0] == 0xfd || data[0] == 0x28);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  using data::DocumentKind;
  if (size == 0) return 0;
  const auto kind = static_cast<DocumentKind>(*data % enum_names(DocumentKind{}).size());
  const FuzzFile file(data + 1, size - 1);
  read_or_refuse([&] {
    data::CorpusReader reader({{file.path(), {}, "fuzz"}}, {kind, "<end>", ""});
    std::string text;
    for (data::Piece piece; text.size() < kMostBytes && reader.next(piece);) text += piece.text;
    const bool whole = kind == DocumentKind::paragraphs || kind == DocumentKind::lines ||
                       kind == DocumentKind::blocks || kind == DocumentKind::titles;
    const std::string_view input(reinterpret_cast<const char*>(data + 1), size - 1);
    if (whole && !is_packed(data + 1, size - 1) && text != input) std::abort();
  });
  return 0;
}
