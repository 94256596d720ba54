// The pages of 'fathom serve' and what they ask for while they are open. No sockets here: a
// question comes in, a reply goes out.
//
//   /                     studies, labs and probes, as cards
//   /map?plan=WORDS       the map of shapes for 'fathom plan WORDS'
//   /study/NAME           the report of a study, growing while it trains
//   /lab/NAME             the verdicts of a lab directory
//   /probe/NAME           a probe of a trained model
//   /api/overview         the cards again
//   /api/study/NAME?seen=VERSION                    what has changed since
//   /api/map?plan=WORDS&count=COUNT&ratio=TOKENS    one row of the map's table, planned now
//
// Every question is a GET or HEAD and changes nothing.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "planner/planner.h"
#include "serve/fit_desk.h"
#include "serve/places.h"
#include "serve/probe_shelf.h"
#include "serve/study_watch.h"

namespace fathom::serve {

struct Question {
  std::string method = "GET";
  std::string path;
  std::string host;                          // the Host header
  std::string fetch_site;                    // the Sec-Fetch-Site header, "" where there is none
  std::map<std::string, std::string> query;  // decoded
};

struct Reply {
  int status = 200;
  std::string type;
  std::string body;
};

/// A request for the planner, and its options as typed.
struct PlanWords {
  planner::PlanRequest request;
  std::string options;  // besides size, tokens and hardware
};

struct SiteOptions {
  std::vector<std::filesystem::path> roots;
  /// From the words after 'fathom plan'; ConfigError in one line.
  std::function<PlanWords(const std::vector<std::string>&)> parse_plan;
  /// See FitDesk.
  std::vector<std::string> fit_command;
  /// A study's folders are read no more often than this.
  std::chrono::milliseconds look_every{1000};
};

class Site {
 public:
  explicit Site(SiteOptions options);

  /// Never throws. Any thread may call it.
  Reply answer(const Question& question);

 private:
  Reply route(const Question& question);
  Reply overview_page();
  Reply map_page(const Question& question);
  Reply map_row(const Question& question);
  Reply study_page(const std::string& name);
  Reply study_news(const std::string& name, const Question& question);
  Reply lab_page(const std::string& name);
  Reply probe_page(const std::string& name);

  std::vector<Place> places();
  std::filesystem::path find(Place::Kind kind, const std::string& name);
  std::shared_ptr<StudyWatch> watch(const std::filesystem::path& study);
  nlohmann::ordered_json overview();
  PlanWords plan_words(const Question& question);

  SiteOptions options_;
  FitDesk desk_;
  ProbeShelf probes_;
  std::mutex mutex_;
  std::map<std::filesystem::path, std::shared_ptr<StudyWatch>> watches_;
};

/// The words of a text, at spaces. Nothing is quoted: no word of 'plan' has a space in it.
std::vector<std::string> words_of(const std::string& text);

/// A Host header that names this machine: other names belong to pages that try to read from here
/// through their own domain (DNS rebinding).
bool is_local_host(const std::string& host);

}  // namespace fathom::serve
