#include "model/spec_toml.h"

#include "core/spec_keys.h"

namespace fathom::model {

ModelSpec read_model_spec(TomlReader& table) {
  ModelSpec spec;
  read_keys(table, spec);
  table.finish();
  validate(spec);
  return spec;
}

std::string to_toml(const ModelSpec& spec) {
  return write_keys(spec);
}

}  // namespace fathom::model
