// Any text either reads as TOML or throws ConfigError or DataError; every key can be asked for in
// every type.

#include "core/error.h"
#include "core/toml_reader.h"
#include "fuzz_input.h"

namespace {

using namespace fathom;

template <typename Ask>
void ask(Ask&& question) {
  try {
    question();
  } catch (const ConfigError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
}

void walk(TomlReader& reader, int depth) {
  for (const std::string& key : reader.keys()) {
    ask([&] { reader.number(key); });
    ask([&] { reader.integer(key); });
    ask([&] { reader.text(key); });
    ask([&] { reader.boolean(key); });
    ask([&] { reader.number(key, 1); });
    ask([&] { reader.fail(key, "asked to fail"); });
    if (depth > 0) {
      ask([&] {
        TomlReader inner = reader.table(key);
        walk(inner, depth - 1);
      });
    }
  }
  ask([&] { reader.number("missing"); });
  ask([&] { reader.finish(); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    TomlReader reader = TomlReader::from_text(text, "fuzz.toml");
    try {
      reader.finish();
    } catch (const ConfigError&) {
    }
    walk(reader, 3);
  } catch (const ConfigError& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  } catch (const DataError&) {
  }
  return 0;
}
