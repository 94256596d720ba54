// The handlers of 'fathom serve', without a socket.
#include "serve/site.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/file_lock.h"
#include "core/json_text.h"
#include "schema_check.h"
#include "study/planted_study.h"
#include "study/tiny_study.h"

namespace fathom::serve {
namespace {

using nlohmann::json;

PlanWords plan_of(const std::vector<std::string>& words) {
  PlanWords plan;
  if (words.size() != 1) throw ConfigError("one size is wanted");
  plan.request.parameters = std::stod(words.front());
  plan.request.base.gated = true;
  plan.options = "--vocab 1000";
  return plan;
}

SiteOptions options_for(const std::filesystem::path& root) {
  // A fit that fails at once: these tests are about what is read.
  return {.roots = {root},
          .parse_plan = plan_of,
          .fit_command = {"/bin/false"},
          .look_every = std::chrono::milliseconds(0)};
}

Question ask(const std::string& path, std::map<std::string, std::string> query = {}) {
  return {.path = path, .host = "127.0.0.1:8642", .fetch_site = "", .query = std::move(query)};
}

/// The address that a page asks for news.
std::string news_address(const std::string& page) {
  const std::string mark = "name=\"fathom-news\" content=\"";
  const std::size_t begin = page.find(mark) + mark.size();
  return page.substr(begin, page.find('"', begin) - begin);
}

json document_in(const std::string& page) {
  const std::size_t begin = page.find('>', page.find("id=\"fathom-document\"")) + 1;
  return json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

struct ServedStudy {
  study::PlantedStudy planted;
  Site site{options_for(planted.scratch.path())};

  json news(std::int64_t seen) {
    return json::parse(site.answer(ask("/api/study/study", {{"seen", std::to_string(seen)}})).body);
  }
};

TEST(Site, AnswersToThisMachineOnly) {
  EXPECT_TRUE(is_local_host("127.0.0.1:8642"));
  EXPECT_TRUE(is_local_host("LOCALHOST"));
  EXPECT_TRUE(is_local_host("localhost:9"));
  EXPECT_TRUE(is_local_host("[::1]:8642"));
  EXPECT_FALSE(is_local_host(""));
  EXPECT_FALSE(is_local_host("evil.example:8642"));
  EXPECT_FALSE(is_local_host("127.0.0.1.evil.example"));
  ServedStudy served;
  Question question = ask("/");
  question.host = "evil.example:8642";
  EXPECT_EQ(served.site.answer(question).status, 403);
}

TEST(Site, OnlyReads) {
  ServedStudy served;
  Question question = ask("/");
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "PATCH"}) {
    question.method = method;
    EXPECT_EQ(served.site.answer(question).status, 405) << method;
  }
  question.method = "HEAD";
  EXPECT_EQ(served.site.answer(question).status, 200);
  question = ask("/api/overview");
  question.fetch_site = "cross-site";
  EXPECT_EQ(served.site.answer(question).status, 403);
}

TEST(Site, NoAddressLeavesTheServedFolders) {
  ServedStudy served;
  served.planted.scratch.write("secret.txt", "secret");
  for (const char* path :
       {"/study/../secret.txt", "/study/study/../../secret.txt", "/study//etc/passwd", "/study/..",
        "/study/", "/lab/study", "/api/study/../study", "/secret.txt", "/etc/passwd", "//", ""}) {
    const Reply reply = served.site.answer(ask(path, {{"seen", "0"}}));
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(reply.body.find("secret\n"), std::string::npos);
  }
}

TEST(Site, TheOverviewFollowsItsSchema) {
  ServedStudy served;
  served.planted.scratch.write("lab/results/claim.json", "{}");
  served.planted.scratch.write("broken/study.toml", "grid = ");
  const json overview = json::parse(served.site.answer(ask("/api/overview")).body);
  EXPECT_EQ(report::SchemaFile("serve.schema.json").complaints(overview),
            std::vector<std::string>{});
  ASSERT_EQ(overview["studies"].size(), 2u);
  EXPECT_FALSE(overview["studies"][0]["problem"].is_null());  // said, and the others are shown
  EXPECT_EQ(overview["studies"][1]["title"], "Planted");
  EXPECT_EQ(overview["studies"][1]["state"]["done"], 24);
  EXPECT_EQ(overview["labs"][0]["name"], "lab");
  EXPECT_EQ(served.site.answer(ask("/")).status, 200);
}

/// What the overview and the page's header need of a probe.
nlohmann::ordered_json small_probe() {
  using Json = nlohmann::ordered_json;
  return Json{{"schema", "fathom.probe.v1"},
              {"fathom", "1"},
              {"model", {{"name", "small <b>"}, {"layers", 2}, {"width", 8}}},
              {"text", "notes"},
              {"tokens", 100},
              {"loss", 1.5},
              {"verdict", {"Both layers work."}},
              {"layers", Json::array()},
              {"streams", Json::array()},
              {"lens", Json::array()},
              {"distance", Json::array()},
              {"greedy", Json::array()},
              {"heads", Json::array()},
              {"agreement", Json::object()},
              {"notes", Json::array()}};
}

TEST(Site, ProbesAreListedAndServedFromTheirData) {
  ServedStudy served;
  const auto& scratch = served.planted.scratch;
  scratch.write("small.json", small_probe().dump());
  // Of a page only the data is taken: nothing else of it is ever sent.
  scratch.write("paged.html", "<script>alert(1)</script><script id=\"fathom-document\">" +
                                  small_probe().dump() + "</script>");
  scratch.write("broken.json", R"({"schema": "fathom.probe.v1", "model": )");
  const json overview = json::parse(served.site.answer(ask("/api/overview")).body);
  EXPECT_EQ(report::SchemaFile("serve.schema.json").complaints(overview),
            std::vector<std::string>{});
  ASSERT_EQ(overview["probes"].size(), 3u);
  EXPECT_FALSE(overview["probes"][0]["problem"].is_null());
  EXPECT_EQ(overview["probes"][1]["name"], "paged");
  EXPECT_EQ(overview["probes"][2]["model"], "small <b>");
  EXPECT_EQ(overview["probes"][2]["verdict"], "Both layers work.");
  for (const char* path : {"/probe/small", "/probe/paged"}) {
    const Reply page = served.site.answer(ask(path));
    ASSERT_EQ(page.status, 200) << page.body;
    EXPECT_EQ(document_in(page.body), json(small_probe()));
    EXPECT_EQ(page.body.find("alert(1)"), std::string::npos);
    EXPECT_EQ(page.body.find("small <b>"), std::string::npos);
  }
  EXPECT_EQ(served.site.answer(ask("/probe/broken")).status, 500);
  EXPECT_EQ(served.site.answer(ask("/probe/../small.json")).status, 404);
  // A file that has changed is read again.
  nlohmann::ordered_json other = small_probe();
  other["verdict"] = {"One layer is idle, on this text."};
  scratch.write("small.json", other.dump());
  const json again = json::parse(served.site.answer(ask("/api/overview")).body);
  EXPECT_EQ(again["probes"][2]["verdict"], "One layer is idle, on this text.");
}

TEST(Site, AStudysPageIsItsReport) {
  ServedStudy served;
  const Reply page = served.site.answer(ask("/study/study"));
  ASSERT_EQ(page.status, 200) << page.body;
  const json document = document_in(page.body);
  EXPECT_EQ(report::SchemaFile("report.schema.json").complaints(document),
            std::vector<std::string>{});
  EXPECT_EQ(document["runs"].size(), 24u);
  EXPECT_EQ(document["curves"].size(), 24u);
  EXPECT_TRUE(news_address(page.body).starts_with("/api/study/study?seen="));
  EXPECT_NE(page.body.find("connect-src 'self'"), std::string::npos);
}

TEST(Site, WritesNothingIntoAStudy) {
  ServedStudy served;
  const auto count = [&] {
    std::size_t files = 0;
    for (const auto& entry :
         std::filesystem::recursive_directory_iterator(served.planted.folder.path())) {
      files += entry.is_regular_file() ? 1 : 0;
    }
    return files;
  };
  const std::size_t before = count();
  for (const char* path : {"/", "/study/study", "/api/overview"}) served.site.answer(ask(path));
  served.news(0);
  EXPECT_EQ(count(), before);
}

TEST(Site, NewsAreWhatHasChanged) {
  const study::TinyStudy tiny;
  const study::Study study = tiny.begin();
  Site site(options_for(tiny.directory));
  const std::string page = site.answer(ask("/study/study")).body;
  std::string address = news_address(page);
  const auto news = [&](const std::string& seen) {
    return json::parse(site.answer(ask("/api/study/study", {{"seen", seen}})).body);
  };
  const json quiet = news(address.substr(address.find("seen=") + 5));
  EXPECT_FALSE(quiet["reload"]);
  EXPECT_TRUE(quiet["runs"].empty());
  EXPECT_EQ(quiet["state"]["waiting"], 4);
  EXPECT_EQ(quiet["state"]["next"].size(), 4u);

  // A worker claims a run and does ten steps.
  study::prepare_run_folder(study, study.runs[0]);
  const study::StudyRunFolder folder = study.folder.run(study.runs[0].id);
  auto claim = FileLock::acquire(folder.claim(), "run", 1);
  write_file_atomically(folder.metrics(),
                        "{\"step\":9,\"loss\":5.0}\n{\"step\":10,\"eval_loss\":4.0}\n"
                        "{\"step\":10,\"loss\":4.5}\n");
  const json begun = news(quiet["version"].dump());
  ASSERT_EQ(begun["runs"].size(), 1u);
  EXPECT_EQ(begun["runs"][0]["status"], "running");
  ASSERT_EQ(begun["curves"].size(), 1u);
  EXPECT_EQ(begun["curves"][0]["points"], json::parse("[[1280.0,4.0]]"));
  EXPECT_EQ(begun["curves"][0]["training"].size(), 2u);
  ASSERT_EQ(begun["state"]["running"].size(), 1u);
  EXPECT_EQ(begun["state"]["running"][0]["step"], 10);
  EXPECT_EQ(begun["state"]["running"][0]["steps"], study.runs[0].spec.schedule.steps);

  // It ends with a record.
  train::RunRecord record = study::planted_record(0, 0, 1);
  record.id = study.runs[0].id;
  write_run_record(record, folder.record());
  claim.reset();
  const json ended = news(begun["version"].dump());
  ASSERT_EQ(ended["runs"].size(), 1u);
  EXPECT_EQ(ended["runs"][0]["status"], "finished");
  EXPECT_EQ(ended["state"]["done"], 1);

  // A page of an earlier server does not know these versions.
  EXPECT_TRUE(json::parse(site.answer(ask("/api/study/study", {{"seen", "1"}})).body)["reload"]);
  EXPECT_EQ(site.answer(ask("/api/study/study", {{"seen", "x"}})).status, 400);
}

TEST(Site, TheMapPlansWhatIsAskedFor) {
  ServedStudy served;
  const Reply page = served.site.answer(ask("/map", {{"plan", "1e9"}}));
  ASSERT_EQ(page.status, 200) << page.body;
  const json map = document_in(page.body);
  EXPECT_EQ(report::SchemaFile("map.schema.json").complaints(map), std::vector<std::string>{});
  EXPECT_EQ(map["options"], "--vocab 1000");
  EXPECT_EQ(news_address(page.body), "/api/map?plan=1e9");
  const std::size_t start = map["start"]["tokens"];
  const json& plans = map["by_parameters"]["plans"];
  for (std::size_t row = 0; row < plans.size(); ++row) {
    EXPECT_EQ(plans[row].is_null(), row != start);
  }
  // The row that the page would ask for, and the one it has, are the planner's.
  const double ratio = map["tokens_per_parameter"][start];
  const Reply row = served.site.answer(ask(
      "/api/map", {{"plan", "1e9"}, {"count", "parameters"}, {"ratio", std::to_string(ratio)}}));
  EXPECT_EQ(json::parse(row.body), plans[start]);
}

TEST(Site, BadPlansGetOneLine) {
  ServedStudy served;
  const Reply reply = served.site.answer(ask("/map", {{"plan", "1e9 --hardware"}}));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.body, "one size is wanted\n");
  EXPECT_EQ(served.site.answer(ask("/map", {{"plan", std::string(3000, '1')}})).status, 400);
  EXPECT_EQ(served.site.answer(ask("/api/map", {{"plan", "1e9"}, {"count", "x"}, {"ratio", "20"}}))
                .status,
            400);
}

}  // namespace
}  // namespace fathom::serve
