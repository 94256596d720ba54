#include "pretrained/read_rotary.h"

#include <fmt/format.h>

#include "core/counts.h"
#include "core/json_text.h"
#include "core/text.h"

namespace fathom::pretrained {
namespace {

using Json = nlohmann::json;

void read_scaling(const ConfigKeys& config, const ConfigKeys& rope, RotarySpec& s) {
  s.factor = rope.number("factor", 1);
  const double context = as_double(config.whole("max_position_embeddings", 2048));
  s.original_context = rope.number("original_max_position_embeddings",
                                   config.number("original_max_position_embeddings", context));
  s.low_frequency = rope.number("low_freq_factor", 1);
  s.high_frequency = rope.number("high_freq_factor", 4);
  s.beta_fast = rope.number("beta_fast", 32);
  s.beta_slow = rope.number("beta_slow", 1);
  s.truncate = rope.flag("truncate", true);
  s.amplitude = rope.number("attention_factor", 0);
  s.mscale = rope.number("mscale", 0);
  s.mscale_all = rope.number("mscale_all_dim", 0);
  if (s.kind == RotaryKind::longrope) {
    s.short_factors = rope.numbers("short_factor");
    s.long_factors = rope.numbers("long_factor");
    if (s.original_context > 0 && context != s.original_context) {
      s.factor = context / s.original_context;
    }
  }
  if (!(s.factor > 0) || !(s.original_context > 0)) rope.fail("factor", "is not positive");
}

RotaryKind rotary_kind(const ConfigKeys& rope) {
  std::string name = rope.text("rope_type", rope.text("type", "default"));
  if (name == "su") name = "longrope";
  // Phi-3's first releases wrote "yarn" over lists of factors, which is longrope.
  if (name == "yarn" && rope.find("short_factor") != nullptr) name = "longrope";
  for (const RotaryKind kind : kEnumValues<RotaryKind>) {
    if (name == name_of(kind)) return kind;
  }
  rope.fail("rope_type", fmt::format("'{}' is not known; {}", printable(name),
                                     fmt::join(list_names<RotaryKind>(), ", ")));
}

/// The object for one kind of layer; nullptr: none.
const Json* rotary_object(const ConfigKeys& config, const char* which) {
  const Json* rope = config.find("rope_parameters");
  const Json* old = config.find("rope_scaling");
  if (rope == nullptr) rope = old;
  if (rope == nullptr) return nullptr;
  if (rope->is_object() && rope->contains(which)) rope = &rope->at(which);
  if (!rope->is_object()) config.fail("rope_parameters", "is not an object");
  return rope;
}

void check(const ConfigKeys& config, const Layout& layout, double share, RotarySpec& s) {
  if (!(s.theta > 1) || !(share > 0) || share > 1) {
    config.fail("rope_theta", "and the rotated share do not make rotary positions");
  }
  s.size = static_cast<std::int64_t>(as_double(layout.head_size) * share);
  if (s.size < 2 || s.size % 2 != 0) {
    config.fail("partial_rotary_factor",
                fmt::format("turns {} numbers of a head, which are no pairs", s.size));
  }
  if (s.kind == RotaryKind::longrope &&
      (std::ssize(s.short_factors) != s.size / 2 || std::ssize(s.long_factors) != s.size / 2)) {
    config.fail("rope_scaling", fmt::format("needs {} factors", s.size / 2));
  }
}

/// `which`: "full_attention" or "sliding_attention", for configs that nest both.
RotarySpec read_one(const Family& family, const ConfigKeys& config, const Layout& layout,
                    const char* which) {
  RotarySpec s;
  const bool neox = family.type == "gpt_neox";
  s.theta = config.number("rope_theta", neox ? config.number("rotary_emb_base", 10000) : 10000);
  double share =
      config.number("partial_rotary_factor", neox ? config.number("rotary_pct", 0.25) : 1);
  if (const Json* rope = rotary_object(config, which)) {
    const ConfigKeys inner = config.inside(*rope);
    s.kind = rotary_kind(inner);
    s.theta = inner.number("rope_theta", s.theta);
    share = inner.number("partial_rotary_factor", share);
    read_scaling(config, inner, s);
    inner.refuse_unread();
  }
  check(config, layout, share, s);
  return s;
}

}  // namespace

std::vector<RotarySpec> read_rotary(const Family& family, const ConfigKeys& config,
                                    const Layout& layout) {
  const RotarySpec full = read_one(family, config, layout, "full_attention");
  RotarySpec local = full;
  config.number("original_max_position_embeddings", 0);  // means nothing without a scaling
  const double local_theta = config.number("rope_local_base_freq", 0);
  const Json* rope = config.find("rope_parameters");
  if (rope != nullptr && rope->is_object() && rope->contains("sliding_attention")) {
    local = read_one(family, config, layout, "sliding_attention");
  } else if (local_theta > 0) {
    local = RotarySpec{};
    local.theta = local_theta;
    check(config, layout, 1, local);
  }
  return {full, local};
}

}  // namespace fathom::pretrained
