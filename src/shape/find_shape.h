// A shape by whatever a user calls it: LAYERSxWIDTH, a config file, or a published name.
#pragma once

#include <string>

#include "shape/catalogue.h"
#include "shape/shape.h"

namespace fathom {

struct NamedShape {
  std::string name;
  Shape shape;
  const CatalogueEntry* published = nullptr;
};

/// `asked` completes LAYERSxWIDTH. A name or a file says everything itself, so beside one only the
/// context may be set. ConfigError otherwise, for unknown names, and for models that are not a
/// dense stack.
/// The `fathom shape` command that counts this very shape.
std::string shape_command(const Shape& shape);

NamedShape find_shape(const std::string& what, const ShapeRequest& asked);

}  // namespace fathom
