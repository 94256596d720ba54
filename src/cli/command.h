// A command as plain data: its texts, its options and where their values go.
//
// Help, man pages and completion read this data; parse.cpp passes it to CLI11 and is the only file
// that knows that library (it is header-only and slow to compile).
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace fathom {

struct Session;

struct Example {
  std::string command;  // without the leading "fathom "
  std::string meaning;
};

struct CommandText {
  std::string summary;      // one line, starts with a capital, no full stop
  std::string description;  // paragraphs
  std::vector<Example> examples;
};

/// The variable that takes an option's value. It must outlive the parsing.
using OptionTarget = std::variant<bool*, int*, unsigned*, std::int64_t*, std::uint64_t*, double*,
                                  std::string*, std::vector<std::string>*>;

/// Least and largest number an option takes, both allowed.
struct Range {
  double low, high;

  bool has_top() const { return high < HUGE_VAL; }
};

class Option {
 public:
  /// `names`: "-o,--output", "--json" or a positional "SIZE"; one may be both: "CORPUS,--corpus".
  Option(const std::string& names, OptionTarget target, std::string description, bool flag);

  // Each returns the option itself, for chaining.
  Option* type_name(std::string name);
  Option* group(std::string name);
  Option* required();
  Option* check(Range range);
  /// A whole number from 1 on. Without it zero would pass for "not given".
  Option* positive();
  /// Offered by shell completion; other values are accepted too.
  Option* suggest(std::vector<std::string> values);
  /// Of options that take several values: how many at a time (unlimited otherwise).
  Option* expected(int least, int most);
  /// Leaves the option out of help and completion.
  Option* hide();

  const std::string& names() const { return names_; }
  const std::vector<std::string>& short_names() const { return short_names_; }
  const std::vector<std::string>& long_names() const { return long_names_; }
  bool is_positional() const { return !positional_.empty(); }
  bool is_flag() const { return flag_; }
  bool is_required() const { return required_; }
  bool is_hidden() const { return hidden_; }
  const OptionTarget& target() const { return target_; }
  const std::string& description() const { return description_; }
  const std::string& group_name() const { return group_; }
  const std::optional<Range>& range() const { return range_; }
  const std::optional<std::pair<int, int>>& expected_count() const { return expected_; }
  const std::vector<std::string>& values() const { return values_; }
  /// What a shell may offer: the values, or those suggested.
  const std::vector<std::string>& completions() const {
    return values_.empty() ? suggestions_ : values_;
  }

  /// "-j, --json" or "SIZE"; a positional with a type name is shown as that.
  std::string label() const;
  /// The placeholder for the value in help: "N", "FILE"; empty for flags and positionals.
  std::string value_name() const;
  /// The description with the range or the values that are accepted.
  std::string meaning() const;

 private:
  friend class CommandTree;

  std::string names_, positional_;
  std::vector<std::string> short_names_, long_names_;
  OptionTarget target_;
  std::string description_, type_name_, group_ = "Options";
  bool flag_ = false, required_ = false, hidden_ = false;
  std::optional<Range> range_;
  std::optional<std::pair<int, int>> expected_;
  std::vector<std::string> values_, suggestions_;
};

class Command {
 public:
  Command(std::string name, CommandText text, std::function<void(Session&)> run, Command* parent);

  /// Options that take several values take one at a time, so that a positional may follow.
  Option* add_option(const std::string& names, OptionTarget target, std::string description);
  template <class T>
  Option* add_option(const std::string& names, T& value, std::string description) {
    return add_option(names, OptionTarget(&value), std::move(description));
  }
  Option* add_flag(const std::string& names, bool& value, std::string description);
  /// Leaves the command out of help and completion.
  void hide() { hidden_ = true; }

  const std::string& name() const { return name_; }
  const CommandText& text() const { return text_; }
  const Command* parent() const { return parent_; }
  /// "fathom shape list".
  std::string path() const;
  void run(Session& session) const;

  /// In order of definition, positionals first; --help leads the rest.
  std::vector<const Option*> options() const;
  std::vector<const Option*> shown_options() const;
  std::vector<const Command*> subcommands() const;                // those that are shown
  const Command* find_subcommand(const std::string& name) const;  // shown or not
  const std::vector<std::unique_ptr<Command>>& all_subcommands() const { return subcommands_; }

 private:
  friend class CommandTree;

  std::string name_;
  CommandText text_;
  std::function<void(Session&)> run_;
  Command* parent_;
  bool hidden_ = false;
  std::vector<std::unique_ptr<Option>> options_;
  std::vector<std::unique_ptr<Command>> subcommands_;
};

}  // namespace fathom
