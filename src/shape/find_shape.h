// A shape by whatever the user calls it: LAYERSxWIDTH, a config file, or a published name.
#pragma once

#include <string>

#include "shape/catalogue.h"
#include "shape/shape.h"

namespace fathom {

struct NamedShape {
  std::string name;  // with what was changed: "Llama-3-8B, vocabulary 32,000"
  Shape shape;
  const CatalogueEntry* published = nullptr;
  std::string note;  // "'opt 13' taken as OPT-13B"; empty for exact names
};

/// The `fathom shape` command that counts this very shape.
std::string shape_command(const Shape& shape);

/// `asked` completes LAYERSxWIDTH; next to a name or a file it changes what that gives (what if?).
/// ConfigError for unknown names, impossible changes and encoder-decoders.
NamedShape find_shape(const std::string& what, const ShapeRequest& asked);

}  // namespace fathom
