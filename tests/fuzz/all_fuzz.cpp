// Every fuzz target in one program; the name it is called by says which: a link `toml_fuzz` to it
// is that target.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

using Target = int(const std::uint8_t* data, std::size_t size);

extern "C" {
Target safetensors_input, token_file_input, toml_input, record_input, hf_config_input, points_input,
    law_input, tokenizer_input, gguf_input, layout_input, index_input, pattern_input, spec_input,
    design_input, documents_input, hardware_input, llama2c_input, facts_input, ranks_input,
    lab_input, automaton_input;
int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
}

namespace {

struct Entry {
  std::string_view name;
  Target* target;
};
constexpr Entry kTargets[] = {
    {"safetensors", safetensors_input},
    {"token_file", token_file_input},
    {"toml", toml_input},
    {"record", record_input},
    {"hf_config", hf_config_input},
    {"points", points_input},
    {"law", law_input},
    {"tokenizer", tokenizer_input},
    {"gguf", gguf_input},
    {"layout", layout_input},
    {"index", index_input},
    {"pattern", pattern_input},
    {"spec", spec_input},
    {"design", design_input},
    {"documents", documents_input},
    {"hardware", hardware_input},
    {"llama2c", llama2c_input},
    {"facts", facts_input},
    {"ranks", ranks_input},
    {"lab", lab_input},
    {"automaton", automaton_input},
};
Target* chosen = nullptr;

}  // namespace

int LLVMFuzzerInitialize(int*, char*** argv) {
  std::string_view name = (*argv)[0];
  name.remove_prefix(name.rfind('/') + 1);
  for (const Entry& entry : kTargets) {
    if (name.substr(0, name.rfind("_fuzz")) == entry.name) chosen = entry.target;
  }
  if (chosen != nullptr) return 0;
  std::fprintf(stderr, "no fuzz target is called %s\n", (*argv)[0]);
  std::exit(2);
}

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return chosen(data, size);
}
