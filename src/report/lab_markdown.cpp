#include "report/lab_markdown.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/folders.h"
#include "core/text.h"
#include "core/units.h"
#include "lab/frame/claim.h"
#include "lab/frame/experiment.h"
#include "lab/frame/records.h"
#include "report/chart_svg.h"

namespace fathom::report {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::size_t kLineWidth = 100;

std::string paragraph(std::string text) {
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  if (!text.empty() && text.back() != '.') text += '.';
  return join(wrap(text, kLineWidth), "\n") + "\n\n";
}

std::string row(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

std::string measured(const Json& criterion) {
  if (criterion.at("measured").is_null()) return "not measured";
  std::string text = fmt::format("{:.4g}", criterion.at("measured").get<double>());
  if (const auto found = criterion.find("interval"); found != criterion.end()) {
    text +=
        fmt::format(" ({:.3g} to {:.3g})", (*found)[0].get<double>(), (*found)[1].get<double>());
  }
  return text;
}

std::string table(const Json& exhibit) {
  const auto columns = exhibit.at("columns").get<std::vector<std::string>>();
  std::string text = paragraph(exhibit.at("title"));
  text += row(columns) + row(std::vector<std::string>(columns.size(), "---"));
  for (const Json& cells : exhibit.at("rows")) {
    text += row(cells.get<std::vector<std::string>>());
  }
  return text + "\n";
}

/// " with 1 of 3 seeds" where a full run was given fewer than the experiment has.
std::string seeds_taken(const Json& result) {
  const Json& setup = result.at("setup");
  if (result.at("quick").get<bool>() || !setup.contains("seeds")) return "";
  for (const lab::Option& option :
       lab::find_experiment(result.at("id").get<std::string>()).options) {
    if (option.name != "seeds") continue;
    const int all = option.value.get<int>(), taken = setup.at("seeds").get<int>();
    if (taken < all) return fmt::format(" with {} of {} seeds", taken, all);
  }
  return "";
}

/// "42 parts, 80 min added up; 18 of them took 7.1 min of wall time, up to 9 at once"
std::string time_taken(const Json& result) {
  const int parts = result.at("parts").get<int>();
  std::string sum = fmt::format("{} parts, {} added up", parts,
                                format_seconds(result.at("part_seconds").get<double>()));
  const auto wall = result.find("wall");
  if (wall == result.end()) return sum;
  const int dated = wall->at("parts").get<int>();
  return fmt::format("{}; {} took {} of wall time, up to {} at once", sum,
                     dated == parts ? "they" : fmt::format("{} of them", dated),
                     format_seconds(wall->at("seconds").get<double>()),
                     wall->at("at_once").get<int>());
}

}  // namespace

MarkdownPage lab_markdown(const Json& result) {
  const lab::Claim& claim = lab::find_claim(result.at("id").get<std::string>());
  MarkdownPage page;
  std::string& text = page.text;
  text = fmt::format("# {}\n\n", claim.title) + paragraph(claim.statement);
  text +=
      paragraph(fmt::format("{}{}: {}", claim.source,
                            claim.arxiv.empty() ? "" : ", arXiv " + claim.arxiv, claim.published));
  text += "## Experiment\n\n" + paragraph(claim.experiment);
  text += fmt::format(
      "    fathom lab run {0} --device cuda --out my-lab\n    fathom lab run {0} --quick\n\n",
      claim.id);
  const bool quick = result.at("quick").get<bool>();
  text += paragraph(
      fmt::format("This page is made by `fathom lab report --markdown` from a {} run{}: {}",
                  quick ? "`--quick`" : "full", seeds_taken(result), time_taken(result)));
  text += fmt::format("## Verdict: {}\n\n", result.at("verdict").get<std::string>());
  if (const std::string boundary = result.at("boundary"); !boundary.empty()) {
    text += paragraph(boundary);
  }
  text += row({"criterion, fixed before the first run", "must be", "measured", "outcome"});
  text += row({"---", "---", "---", "---"});
  for (const Json& criterion : result.at("criteria")) {
    text += row({fmt::format("`{}`: {}", criterion.at("id").get<std::string>(),
                             criterion.at("text").get<std::string>()),
                 criterion.at("range"), measured(criterion), criterion.at("outcome")});
  }
  text += "\n";
  for (const Json& exhibit : result.at("tables")) text += table(exhibit);
  for (const Json& chart : result.at("charts")) {
    const std::string name = fmt::format("{}-{}.svg", claim.id, page.drawings.size() + 1);
    page.drawings.push_back({name, chart_svg(chart)});
    text += fmt::format("![{}]({})\n\n", chart.at("title").get<std::string>(), name);
  }
  for (const Json& note : result.at("notes")) text += paragraph(note);
  text.pop_back();
  return page;
}

std::vector<std::filesystem::path> write_lab_markdown(const std::filesystem::path& directory,
                                                      const std::filesystem::path& folder) {
  make_folder(folder);
  std::vector<std::filesystem::path> pages;
  for (const Json& result : lab::read_results(directory)) {
    if (result.at("own_setup").get<bool>()) continue;
    const MarkdownPage page = lab_markdown(result);
    for (const MarkdownPage::Drawing& drawing : page.drawings) {
      write_file_atomically(folder / drawing.name, drawing.svg);
    }
    pages.push_back(folder / (result.at("id").get<std::string>() + ".md"));
    write_file_atomically(pages.back(), page.text);
  }
  return pages;
}

}  // namespace fathom::report
