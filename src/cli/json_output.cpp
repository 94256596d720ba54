#include "cli/json_output.h"

#include <cmath>

namespace fathom {

Json json_document(const std::string& name) {
  return {{"schema", "fathom." + name + ".v1"}, {"fathom", FATHOM_VERSION}};
}

void print_json(Session& session, const Json& document) {
  session.out << document.dump(2) << "\n";
}

Json number_or_null(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json whole_number(double value) {
  return std::fabs(value) < 9007199254740992.0
             ? Json(static_cast<std::int64_t>(std::llround(value)))
             : Json(value);
}

}  // namespace fathom
