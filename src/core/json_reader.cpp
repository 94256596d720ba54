#include "core/json_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "core/error.h"
#include "core/text.h"

namespace fathom {
namespace {

/// The words between `before` and `after` in an exception's message.
std::string_view words_between(std::string_view what, std::string_view before,
                               std::string_view after) {
  const std::size_t begin = what.find(before);
  if (begin == std::string_view::npos) return {};
  what.remove_prefix(begin + before.size());
  return what.substr(0, what.rfind(after));
}

std::string with_article(std::string_view type) {
  if (type == "null") return "null";
  if (type == "boolean") return "true or false";
  if (type == "array") return "a list";
  return fmt::format("{} {}", type == "object" ? "an" : "a", type);
}

/// Characters of a text; the parser's copies of it share one count of the characters read.
class CountedText {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountedText(const char* at, std::size_t* count) : at_(at), count_(count) {}
  reference operator*() const { return *at_; }
  CountedText& operator++() {
    ++at_;
    ++*count_;
    return *this;
  }
  bool operator==(const CountedText& other) const { return at_ == other.at_; }
  bool operator!=(const CountedText& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  std::size_t* count_;
};

/// Walks a document until a path is reached.
class PathFinder : public nlohmann::json_sax<nlohmann::json> {
 public:
  PathFinder(std::string_view path, const std::size_t* count) : path_(path), count_(count) {}
  /// How much of the text had been read when the value was reached.
  std::optional<std::size_t> found() const { return found_; }

  bool null() override { return arrive(); }
  bool boolean(bool) override { return arrive(); }
  bool number_integer(number_integer_t) override { return arrive_at_number(); }
  bool number_unsigned(number_unsigned_t) override { return arrive_at_number(); }
  bool number_float(number_float_t, const string_t&) override { return arrive_at_number(); }
  /// A string contains no raw line breaks: it ends on the line where it begins.
  bool string(string_t&) override { return arrive(); }
  bool binary(binary_t&) override { return arrive(); }
  bool start_object(std::size_t) override { return enter(false); }
  bool key(string_t& name) override {
    levels_.back().key = name;
    return true;
  }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(true); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::json::exception&) override {
    return false;
  }

 private:
  struct Level {
    bool list;
    std::size_t items = 0;
    std::string key = {};
  };

  std::string place() const {
    std::string path;
    for (const Level& level : levels_) {
      if (level.list) {
        path += fmt::format("[{}]", level.items - 1);
      } else {
        path += (path.empty() ? "" : ".") + level.key;
      }
    }
    return path;
  }
  bool arrive(std::size_t ahead = 0) {
    if (!levels_.empty() && levels_.back().list) ++levels_.back().items;
    if (place() != path_) return true;
    found_ = *count_ - ahead;
    return false;
  }
  /// A number ends where another character comes, which has been read by then.
  bool arrive_at_number() { return arrive(1); }
  bool enter(bool list) {
    if (!arrive()) return false;
    levels_.push_back({list});
    return true;
  }
  bool leave() {
    levels_.pop_back();
    return true;
  }

  std::string_view path_;
  const std::size_t* count_;
  std::optional<std::size_t> found_;
  std::vector<Level> levels_;
};

}  // namespace

std::string json_problem(const nlohmann::json::exception& error) {
  // "[json.exception.type_error.302] type must be number, but is string"
  std::string_view what = error.what();
  if (const auto end = what.find("] "); end != std::string_view::npos) what.remove_prefix(end + 2);
  switch (error.id) {
    case 304:
    case 305:
    case 306:
      return fmt::format("there is {} where something else was expected",
                         with_article(what.substr(what.rfind(' ') + 1)));
    case 401:
      return fmt::format("a list is too short: it has no item [{}]",
                         words_between(what, "index ", " is"));
    case 403:
      return fmt::format("the key \"{}\" is missing", printable(words_between(what, "'", "'")));
    case 406:
      return fmt::format("the number {} is too large", printable(words_between(what, "'", "'")));
    default:
      return printable(what, 300);
  }
}

std::int64_t json_whole(const nlohmann::json& json, double least, double most) {
  constexpr double kExact = 0x1p53;  // beyond this, a double is not an exact count
  const auto refuse = [&](const std::string& found) {
    throw nlohmann::json::type_error::create(
        302, "type must be a whole number within bounds, but is " + found, &json);
  };
  if (!json.is_number()) refuse(json.type_name());
  const double value = json.get<double>();
  if (json.is_number_unsigned()) refuse(json.dump());  // a whole number that does not fit
  const bool whole = std::floor(value) == value && value >= least && value <= most;
  if (!whole || (json.is_number_float() && std::fabs(value) > kExact)) {
    refuse(fmt::format("{}", value));
  }
  return json.is_number_float() ? static_cast<std::int64_t>(value) : json.get<std::int64_t>();
}

std::size_t json_line_of(std::string_view text, std::string_view path) {
  std::size_t count = 0;
  PathFinder finder(path, &count);
  nlohmann::json::sax_parse(CountedText(text.data(), &count),
                            CountedText(text.data() + text.size(), &count), &finder);
  if (!finder.found()) return 0;
  const std::string_view read = text.substr(0, *finder.found());
  return 1 + static_cast<std::size_t>(std::count(read.begin(), read.end(), '\n'));
}

JsonReader::JsonReader(const nlohmann::json& value, std::string_view text, std::string origin)
    : value_(&value), text_(text), origin_(std::move(origin)) {}

void JsonReader::fail(std::string_view what) const {
  const std::size_t line = text_.empty() || path_.empty() ? 0 : json_line_of(text_, path_);
  const std::string place = line == 0 ? "" : fmt::format(":{}", line);
  const std::string key = path_.empty() ? "" : printable(path_) + " ";
  throw DataError(fmt::format("{}{}: {}{}", origin_, place, key, what));
}

void JsonReader::refuse(const char* expected) const {
  fail(fmt::format("must be {}, but is {}", expected, with_article(value_->type_name())));
}

double JsonReader::number() const {
  if (!value_->is_number()) refuse("a number");
  return value_->get<double>();
}

std::size_t JsonReader::count() const {
  if (!value_->is_number()) refuse("a number");
  if (!value_->is_number_unsigned()) fail("must be a whole number from 0 on");
  return value_->get<std::size_t>();
}

bool JsonReader::boolean() const {
  if (!value_->is_boolean()) refuse("true or false");
  return value_->get<bool>();
}

std::string JsonReader::text() const {
  if (!value_->is_string()) refuse("a string");
  return value_->get<std::string>();
}

std::vector<JsonReader> JsonReader::items() const {
  if (!value_->is_array()) refuse("a list");
  std::vector<JsonReader> items;
  for (std::size_t i = 0; i < value_->size(); ++i) items.push_back(at(i));
  return items;
}

JsonReader JsonReader::at(const std::string& key) const {
  if (!value_->is_object()) refuse("an object");
  const auto found = value_->find(key);
  if (found == value_->end()) fail(fmt::format("has no \"{}\"", key));
  JsonReader reader(*found, text_, origin_);
  reader.path_ = path_.empty() ? key : path_ + "." + key;
  return reader;
}

std::optional<JsonReader> JsonReader::find(const std::string& key) const {
  if (!value_->is_object()) refuse("an object");
  const auto found = value_->find(key);
  if (found == value_->end() || found->is_null()) return {};
  return at(key);
}

JsonReader JsonReader::at(std::size_t index) const {
  if (!value_->is_array()) refuse("a list");
  if (index >= value_->size()) fail(fmt::format("has only {} of its items", value_->size()));
  JsonReader reader((*value_)[index], text_, origin_);
  reader.path_ = fmt::format("{}[{}]", path_, index);
  return reader;
}

}  // namespace fathom
