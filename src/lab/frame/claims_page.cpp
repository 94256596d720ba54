#include "lab/frame/claims_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/text.h"
#include "core/units.h"
#include "lab/frame/claim.h"

namespace fathom::lab {
namespace {

constexpr std::size_t kColumns = 100;

constexpr const char* kIntroduction =
    R"(# Claims about depth

What does depth do for a transformer? Papers answer with theorems and with experiments. Here each
answer is a claim with an experiment that runs on a laptop, a criterion that was fixed before the
experiment ran, and a verdict:

- **holds**: every part of the criterion is met;
- **holds in part**: some parts are met, others are not, and the page says where the line runs;
- **fails**: no part is met;
- **undecided**: the experiment cannot tell, and the page says what it would take.

*By* says what a verdict rests on: a **proof** (written down on the page, with a computation that
would have shown it wrong), an **exact computation** (no rounding; it speaks for the sizes it
covered), or a **measurement** (random draws, with an interval). A failed criterion is a finding,
not an error.

`fathom lab show CLAIM` prints the statement, the criterion and the verdict; `fathom lab run CLAIM`
runs the experiment again; `fathom lab run all --quick --out DIR` runs every experiment that needs
no training in a minute or two on two cores, `fathom lab run trained` those that train models, and
`fathom lab report DIR` makes a page of charts from it. Experiments take options for questions of
your own (`fathom lab run CLAIM --help`). What is wrong or unclear in the papers is collected in
[errata.md](errata.md).

This page is made from `data/claims.toml` and `data/trained_claims.toml` by
`fathom lab list --markdown`.
)";

std::vector<std::string> topics() {
  std::vector<std::string> names;
  for (const Claim& claim : claims()) {
    if (std::find(names.begin(), names.end(), claim.topic) == names.end()) {
      names.push_back(claim.topic);
    }
  }
  return names;
}

/// What the claims that train models cost, one by one and together.
std::string cost_section() {
  std::string text =
      "\n### What they take\n\n| claim | in full | on a processor |\n|---|---|---|\n";
  double gpu = 0;
  double quick = 0;
  for (const Claim& claim : claims()) {
    if (claim.kind != Kind::trained) continue;
    text += fmt::format("| `{}` | {} | {} |\n", claim.id, claim.gpu_cost, claim.cpu_cost);
    gpu += claim.gpu_seconds;
    quick += claim.quick_seconds;
  }
  const std::string sum = fmt::format(
      "Together: {} of one H200, and {} of processor time for `fathom lab run trained --quick`, "
      "which two cores share.",
      format_seconds(gpu), format_seconds(quick));
  return text + "\n" + join(wrap(sum, kColumns), "\n") + "\n";
}

}  // namespace

std::string claims_page() {
  std::string page = kIntroduction;
  for (const std::string& topic : topics()) {
    page += fmt::format("\n## {}\n\n", topic);
    std::string table =
        "| claim | verdict | by | what was found | source |\n|---|---|---|---|---|\n";
    for (const Claim& claim : claims()) {
      if (claim.topic != topic) continue;
      if (!claim.topic_about.empty())
        page += join(wrap(claim.topic_about, kColumns), "\n") + "\n\n";
      const std::string number = claim.arxiv.empty() ? "" : fmt::format(", arXiv {}", claim.arxiv);
      table += fmt::format("| [{}]({})<br>`{}` | **{}** | {} | {} | {}{} |\n", claim.title,
                           claim.page, claim.id, name_of(claim.finding.verdict), name_of(claim.by),
                           claim.finding.summary, claim.source, number);
    }
    page += table;
  }
  return page + cost_section();
}

}  // namespace fathom::lab
