#include "model/spec_toml.h"

#include <fmt/format.h>

#include <vector>

#include "core/error.h"
#include "core/text.h"

namespace fathom::model {
namespace {

/// One place that lists every key: reading and writing are visitors of it.
template <class Spec, class Visitor>
void visit_keys(Spec& spec, Visitor& visit) {
  visit.whole("layers", spec.layers);
  visit.whole("width", spec.width);
  visit.whole("heads", spec.heads);
  visit.whole("key_heads", spec.key_heads);
  visit.whole("head_size", spec.head_size);
  visit.whole("ffn", spec.ffn);
  visit.whole("vocab", spec.vocab);
  visit.whole("context", spec.context);
  visit.whole("embedding_rank", spec.embedding_rank);
  visit.flag("tied", spec.tied);
  visit.flag("biases", spec.biases);
  visit.word("norm", spec.norm, {"pre", "post", "none"});
  visit.word("norm_kind", spec.norm_kind, {"layer", "rms"});
  visit.number("norm_epsilon", spec.norm_epsilon);
  visit.flag("residual", spec.residual);
  visit.flag("feed_forward", spec.feed_forward);
  visit.word("activation", spec.activation, {"relu", "gelu", "gelu_tanh", "swiglu", "identity"});
  visit.text("order", spec.order);
  visit.word("attention", spec.attention, {"softmax", "none", "linear"});
  visit.word("mask", spec.mask, {"causal", "bidirectional", "strict"});
  visit.whole("window", spec.window);
  visit.word("positions", spec.positions, {"learned", "rotary", "none"});
  visit.number("rotary_base", spec.rotary_base);
  visit.number("dropout", spec.dropout);
  visit.word("parametrisation", spec.parametrisation, {"standard", "mup", "completep"});
  visit.word("depth_scheme", spec.depth_scheme, {"none", "admin", "deepnorm"});
  visit.number("init_std", spec.init_std);
  visit.whole("base_width", spec.base_width);
  visit.whole("base_layers", spec.base_layers);
  visit.number("depth_alpha", spec.depth_alpha);
}

struct Reading {
  TomlReader& table;

  void whole(const char* key, std::int64_t& value) { value = table.integer(key, value); }
  void number(const char* key, double& value) { value = table.number(key, value); }
  void flag(const char* key, bool& value) { value = table.boolean(key, value); }
  void text(const char* key, std::string& value) { value = table.text(key, value); }
  template <class Enum>
  void word(const char* key, Enum& value, const std::vector<std::string>& words) {
    const std::string given = table.text(key, words[static_cast<std::size_t>(value)]);
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i] != given) continue;
      value = static_cast<Enum>(i);
      return;
    }
    table.fail(key, fmt::format("'{}' is not one of {}.{}", given, join(words, ", "),
                                did_you_mean(given, words)));
  }
};

struct Writing {
  std::string out;

  void whole(const char* key, std::int64_t value) { out += fmt::format("{} = {}\n", key, value); }
  void number(const char* key, double value) {
    // {} writes the shortest text that reads back as the same double; TOML wants 1.0, not 1.
    std::string text = fmt::format("{}", value);
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    out += fmt::format("{} = {}\n", key, text);
  }
  void flag(const char* key, bool value) { out += fmt::format("{} = {}\n", key, value); }
  void text(const char* key, const std::string& value) {
    out += fmt::format("{} = \"{}\"\n", key, value);
  }
  template <class Enum>
  void word(const char* key, Enum value, const std::vector<std::string>& words) {
    text(key, words[static_cast<std::size_t>(value)]);
  }
};

}  // namespace

ModelSpec read_model_spec(TomlReader& table) {
  ModelSpec spec;
  Reading reading{table};
  visit_keys(spec, reading);
  table.finish();
  validate(spec);
  return spec;
}

std::string to_toml(const ModelSpec& spec) {
  Writing writing;
  visit_keys(spec, writing);
  return writing.out;
}

}  // namespace fathom::model
