#include "planner/find_law.h"

#include <fmt/format.h>

#include <vector>

#include "core/error.h"
#include "core/text.h"
#include "core/units.h"
#include "fits/study_law.h"
#include "laws/aspect.h"
#include "laws/consensus.h"

namespace fathom::planner {

laws::LawPointer find_law(const std::string& name) {
  if (laws::LawPointer law = laws::published_law(name)) return law;
  if (name.starts_with("aspect:")) {
    return std::make_shared<laws::AspectLaw>(
        parse_count(name.substr(7), "the ratio in --law aspect:R"));
  }
  if (name.starts_with("study:")) return fits::load_study_law(name.substr(6));
  std::vector<std::string> names{laws::Consensus::kName};
  for (const laws::LawPointer& law : laws::published_laws()) names.push_back(law->info().name);
  throw ConfigError(fmt::format("law '{}' is not known.{} Choose from: {}, aspect:R, study:PATH",
                                name, did_you_mean(name, names), join(names, ", ")));
}

}  // namespace fathom::planner
