#include "report/versions.h"

#include <ctime>
#include <nlohmann/json.hpp>

namespace fathom::report {

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

nlohmann::ordered_json program_versions() {
  return {{"fathom", FATHOM_VERSION}, {"compiler", "g++ " __VERSION__}};
}

}  // namespace fathom::report
