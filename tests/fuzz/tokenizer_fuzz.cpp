// Any bytes either read as a tokenizer.json, whose ids then lie within its vocabulary, or throw an
// error of one line.
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"
#include "tokenizers/hf_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  try {
    const auto tokenizer =
        tokenizers::make_hf_tokenizer(parse_json(input, "fuzz"), nlohmann::json::object(), "fuzz");
    const auto encoder = tokenizer->encoder();
    for (const char* text : {"", " the  quick\nfox 123", "it's caf\xC3\xA9 <s>",
                             "\xE6\x97\xA5\xE6\x9C\xAC [MASK] x"}) {
      std::vector<data::TokenId> ids = tokenizer->text_start();
      encoder->encode(text, ids);
      for (const data::TokenId id : ids) {
        if (id < 0 || static_cast<std::size_t>(id) >= tokenizer->token_bytes().size()) std::abort();
      }
      tokenizer->decode(ids);
    }
  } catch (const Error& error) {
    if (std::string_view(error.what()).find('\n') != std::string_view::npos) std::abort();
  }
  return 0;
}
