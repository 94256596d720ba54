// A model spec as the [model] table of a TOML file, strict in keys and words; and back.
#pragma once

#include "core/toml_reader.h"
#include "model/model_spec.h"

namespace fathom::model {

/// Reads and validates; the caller calls finish() on its own reader, this one on `table`.
ModelSpec read_model_spec(TomlReader& table);

/// All keys, resolved, one per line, without the [model] header. Reading it back gives an equal
/// spec.
std::string to_toml(const ModelSpec& spec);

}  // namespace fathom::model
