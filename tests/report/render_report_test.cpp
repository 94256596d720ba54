#include "report/render_report.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "report/report_document.h"
#include "scratch_folder.h"

namespace fathom::report {
namespace {

using Json = nlohmann::ordered_json;

const std::string kSmallestText = R"({"schema":"fathom.report.v1","title":"A study"})";
const Json kSmallest = Json::parse(kSmallestText);

/// What stands between the tags of the data element.
std::string embedded_document(const std::string& page) {
  const std::string open = "<script type=\"application/json\" id=\"fathom-document\">";
  const std::size_t from = page.find(open);
  if (from == page.npos) return "no data element";
  const std::size_t start = from + open.size();
  return page.substr(start, page.find("</script>", start) - start);
}

std::string title_of(const std::string& page) {
  const std::size_t start = page.find("<title>") + 7;
  return page.substr(start, page.find("</title>") - start);
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(RenderReport, PutsTheDocumentAndTitleIntoOnePage) {
  const std::string page = render_report(kSmallest);
  EXPECT_EQ(embedded_document(page), kSmallestText);
  EXPECT_EQ(title_of(page), "A study");
  EXPECT_EQ(page.find("@fathom-"), page.npos);
  EXPECT_TRUE(page.starts_with("<!doctype html>"));
}

TEST(RenderReport, NamesNothingOutsideTheFile) {
  const std::string page = render_report(kSmallest);
  EXPECT_EQ(page.find(" src="), page.npos);
  EXPECT_EQ(page.find("<link"), page.npos);
  EXPECT_EQ(page.find("@import"), page.npos);
  EXPECT_NE(page.find("default-src 'none'"), page.npos);
}

TEST(RenderReport, AServedPageAsksItsServerAlone) {
  const std::string page = render_served_report(kSmallest, "/api/study/a%22b?seen=1");
  EXPECT_NE(page.find("connect-src 'self'; form-action 'self'"), page.npos);
  EXPECT_NE(page.find("name=\"fathom-news\" content=\"/api/study/a%22b?seen=1\""), page.npos);
  EXPECT_EQ(embedded_document(page), kSmallestText);
  const std::string file = render_report(kSmallest);
  EXPECT_EQ(file.find("connect-src 'self'"), file.npos);
  EXPECT_NE(file.find("name=\"fathom-news\" content=\"\""), file.npos);
}

TEST(RenderReport, NoStringCanEndTheElementItStandsIn) {
  const std::string plain = render_report(kSmallest);
  const std::string page =
      render_report(Json{{"title", "</title></script><script>x()</script><!--"},
                         {"question", "a\xe2\x80\xa8z\xe2\x80\xa9 & \xe2\x80\xa6"}});
  const std::string data = embedded_document(page);
  EXPECT_EQ(data.find_first_of("<>&"), data.npos);
  EXPECT_EQ(data.find("\xe2\x80\xa8"), data.npos);
  EXPECT_NE(data.find("a\\u2028z\\u2029 \\u0026 \xe2\x80\xa6"), data.npos);
  EXPECT_EQ(title_of(page), "&lt;/title&gt;&lt;/script&gt;&lt;script&gt;x()&lt;/script&gt;&lt;!--");
  EXPECT_EQ(count(page, "<script"), count(plain, "<script"));
  EXPECT_EQ(count(page, "</script"), count(plain, "</script"));
}

TEST(RenderReport, AMarkInsideTheDocumentIsOnlyText) {
  const std::string page =
      render_report(Json{{"schema", "fathom.report.v1"}, {"title", "@fathom-document@"}});
  EXPECT_EQ(title_of(page), "@fathom-document@");
  EXPECT_NE(embedded_document(page).find("\"schema\""), std::string::npos);
}

TEST(RenderReport, ADocumentWithoutATitleGetsOne) {
  EXPECT_EQ(title_of(render_report(Json{{"title", nullptr}})), "Fathom report");
}

TEST(ReportDocument, WhatIsNoneIsRefused) {
  const ScratchFolder folder;
  const auto refusal = [&](const std::string& text) {
    const auto path = folder.write("x.json", text);
    return error_of<DataError>([&] { read_report_document(path); });
  };
  EXPECT_EQ(refusal(kSmallestText), "");
  EXPECT_EQ(refusal(R"({"schema":"fathom.report/1"})"), "");  // as earlier versions wrote it
  EXPECT_NE(refusal("").find("x.json"), std::string::npos);
  EXPECT_NE(refusal("{\"schema\":").find("x.json"), std::string::npos);
  EXPECT_NE(refusal(kSmallestText + "}").find("x.json"), std::string::npos);
  EXPECT_NE(refusal("[1]").find("JSON object"), std::string::npos);
  EXPECT_NE(refusal("{}").find("schema is ''"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":7})").find("schema is ''"), std::string::npos);
  EXPECT_NE(refusal(R"({"schema":"fathom.report.v2"})").find("'fathom.report.v2'"),
            std::string::npos);
  EXPECT_NE(refusal("{\"schema\":\"fathom.report.v1\",\"title\":\"\xff\"}"), "");
}

TEST(WriteReport, WritesTheRenderedPage) {
  const ScratchFolder folder;
  write_report(folder / "report.html", kSmallest);
  EXPECT_EQ(file_bytes(folder / "report.html"), render_report(kSmallest));
}

TEST(WriteReport, AnUnwritableFolderIsAClearError) {
  const ScratchFolder folder;
  EXPECT_NE(error_of<DataError>([&] { write_report(folder / "none/report.html", kSmallest); }), "");
}

}  // namespace
}  // namespace fathom::report
