#include "cli/json_output.h"

namespace fathom {

Json json_document(const std::string& name) {
  return {{"schema", "fathom." + name + ".v1"}, {"fathom", FATHOM_VERSION}};
}

void print_json(Session& session, const Json& document) {
  session.out << document.dump(2) << "\n";
}

}  // namespace fathom
