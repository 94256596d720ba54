// A claim's result as Markdown and its charts as SVG.
#include "report/lab_markdown.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "lab/frame/records.h"
#include "lab/frame/result_json.h"
#include "report/chart_svg.h"
#include "scratch_folder.h"

namespace fathom::report {
namespace {

lab::LabResult planted() {
  lab::LabResult result;
  result.claim = &lab::find_claim("induction");
  result.parts = 6;
  result.part_seconds = 90;
  result.conclusion.measures = {{"one-layer", 3.1}, {"two-layers", 0.2, Interval{0.1, 0.3}}};
  result.conclusion.tables = {{"Losses", {"layers", "loss"}, {{"1", "3.1"}, {"2", "0.2"}}}};
  result.conclusion.charts = {
      {"Loss < 4",
       "step",
       "nats",
       false,
       true,
       {{"1 layer", {{0, 4}, {10, 3.1, 3.0, 3.2}}}, {"2 layers", {{0, 0}}}}}};
  result.conclusion.notes = {"a note"};
  result.judgement = judge(*result.claim, result.conclusion.measures, false);
  return result;
}

TEST(LabMarkdown, TellsCriteriaTablesChartsAndNotes) {
  const MarkdownPage page = lab_markdown(lab::result_json(planted()));
  for (const char* part :
       {"# Induction takes two layers", "fathom lab run induction", "## Verdict: undecided",
        "at least 2.3 | 3.1 | passes |", "at most 0.5 | 0.2 (0.1 to 0.3) | passes |",
        "not measured | open |", "| 2 | 0.2 |", "![Loss < 4](induction-1.svg)", "A note."}) {
    EXPECT_NE(page.text.find(part), std::string::npos) << part << "\n" << page.text;
  }
  ASSERT_EQ(page.drawings.size(), 1u);
}

TEST(LabMarkdown, SaysHowManySeedsItTookAndHowLong) {
  lab::LabResult result = planted();
  const auto text = [&] {  // as one line
    std::string page = lab_markdown(lab::result_json(result)).text;
    std::replace(page.begin(), page.end(), '\n', ' ');
    return page;
  };
  EXPECT_NE(text().find("6 parts, 90.0 s added up. "), std::string::npos) << text();
  EXPECT_EQ(text().find("seeds:"), std::string::npos);
  result.setup.values["seeds"] = 3;  // all of them
  EXPECT_EQ(text().find("seeds:"), std::string::npos);
  result.setup.values["seeds"] = 1;
  EXPECT_NE(text().find("a full run with 1 of 3 seeds: 6 parts"), std::string::npos) << text();
  result.dated = 6;
  result.busy = {20, 5};
  EXPECT_NE(text().find("they took 20.0 s of wall time"), std::string::npos) << text();
  EXPECT_NE(text().find("up to 5 at once"), std::string::npos);
  result.dated = 2;
  EXPECT_NE(text().find("2 of them took 20.0 s"), std::string::npos) << text();
}

TEST(LabMarkdown, IsWrittenForEveryResultOfADirectory) {
  const ScratchFolder folder;
  lab::LabRecords(folder / "lab").finish(lab::result_json(planted()));
  const auto pages = write_lab_markdown(folder / "lab", folder / "pages");
  ASSERT_EQ(pages.size(), 1u);
  EXPECT_EQ(pages[0].filename(), "induction.md");
  EXPECT_TRUE(std::filesystem::exists(folder / "pages" / "induction-1.svg"));
}

TEST(ChartSvg, DrawsWhatCanBeDrawn) {
  const std::string svg = chart_svg(lab::result_json(planted()).at("charts")[0]);
  EXPECT_NE(svg.find("Loss &lt; 4"), std::string::npos);
  const auto count = [&](const std::string& what) {
    int found = 0;
    for (std::size_t at = svg.find(what); at != svg.npos; at = svg.find(what, at + 1)) ++found;
    return found;
  };
  EXPECT_EQ(count("<polyline"), 2);
  EXPECT_EQ(count("<circle"), 2);  // the logarithm of 0 has no place
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_EQ(svg.find("inf"), std::string::npos);
}

TEST(ChartSvg, LabelsTheDepthsThatWereTrained) {
  lab::LabResult result = planted();
  lab::ExhibitChart& chart = result.conclusion.charts[0];
  chart = {"Loss", "layers", "nats", true, false, {{"a", {{1, 3}, {2, 2.5}, {8, 2}}}}};
  const auto labels = [&](const char* text) {
    return chart_svg(lab::result_json(result).at("charts")[0])
               .find(fmt::format("text-anchor=\"middle\">{}</text>", text)) != std::string::npos;
  };
  EXPECT_TRUE(labels("1") && labels("2") && labels("8"));
  EXPECT_FALSE(labels("3"));
  for (int x = 9; x < 40; ++x) chart.series[0].dots.push_back({static_cast<double>(x), 1});
  EXPECT_TRUE(labels("1") && labels("3") && labels("30"));
  EXPECT_FALSE(labels("8"));
}

}  // namespace
}  // namespace fathom::report
