#include "serve/probe_shelf.h"

#include <fmt/format.h>

#include <fstream>

#include "core/error.h"
#include "core/files.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "report/render_report.h"

namespace fathom::serve {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr const char* kSchema = "fathom.probe.v1";
constexpr std::size_t kMostBytes = 64 << 20;
// The schema's name comes first in a document; a page has its style sheet before that.
constexpr std::size_t kPageHead = 256 << 10, kDocumentHead = 64;

bool is_page(const fs::path& file) {
  return file.extension() == ".html";
}

Json make_card(const std::string& name, const fs::path& file) {
  Json card{{"name", name}, {"problem", nullptr}, {"model", ""},
            {"layers", 0},  {"width", 0},         {"text", ""},
            {"tokens", 0},  {"loss", nullptr},    {"verdict", nullptr}};
  try {
    const Json probe = read_probe(file);
    const Json& model = probe.at("model");
    card["model"] = model.at("name").get<std::string>();
    card["layers"] = json_whole<std::int64_t>(model.at("layers"));
    card["width"] = json_whole<std::int64_t>(model.at("width"));
    card["text"] = probe.at("text").get<std::string>();
    card["tokens"] = json_whole<std::int64_t>(probe.at("tokens"));
    if (probe.at("loss").is_number()) card["loss"] = probe.at("loss");
    const Json& verdict = probe.at("verdict");
    if (!verdict.empty()) card["verdict"] = verdict.front().get<std::string>();
  } catch (const std::exception& error) {
    card["problem"] = error.what();
  }
  return card;
}

}  // namespace

bool holds_probe(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::string head(is_page(file) ? kPageHead : kDocumentHead, '\0');
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(stream.gcount()));
  std::size_t begin = 0;
  if (is_page(file)) {
    begin = head.find("id=\"fathom-document\"");
    if (begin == head.npos) return false;
  }
  const std::string_view document = std::string_view(head).substr(begin, kDocumentHead);
  return document.find(fmt::format("\"{}\"", kSchema)) != document.npos;
}

Json read_probe(const fs::path& file) {
  const std::string name = file.filename().string();
  const std::string text = read_text_file(file, kMostBytes);
  const Json probe = is_page(file) ? report::document_of_page(text, name) : parse_json(text, name);
  for (const char* key : {"model", "text", "tokens", "loss", "verdict", "layers", "streams", "lens",
                          "distance", "greedy", "heads", "agreement", "notes"}) {
    if (probe.contains(key)) continue;
    throw DataError(fmt::format("{}: lacks '{}'", name, key));
  }
  return probe;
}

Json ProbeShelf::card(const std::string& name, const fs::path& file) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(file, error);
  const std::uintmax_t size = fs::file_size(file, error);
  const std::lock_guard lock(mutex_);
  Known& known = known_[file];
  if (error || known.card.is_null() || known.time != time || known.size != size) {
    known = {time, size, make_card(name, file)};
  }
  Json card = known.card;
  card["name"] = name;
  return card;
}

}  // namespace fathom::serve
