#include "cli/command.h"

#include <fmt/format.h>

#include <cmath>

#include "cli/command_line.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom {
namespace {

std::string default_value_name(const OptionTarget& target) {
  if (std::holds_alternative<double*>(target)) return "X";
  const bool text = std::holds_alternative<std::string*>(target) ||
                    std::holds_alternative<std::vector<std::string>*>(target);
  return text ? "VALUE" : "N";
}

/// 1,048,576 or 0.5.
std::string number_text(double value) {
  return value == std::floor(value) ? format_whole(static_cast<std::int64_t>(value))
                                    : fmt::format("{:g}", value);
}

}  // namespace

Option::Option(const std::string& names, OptionTarget target, std::string description, bool flag)
    : names_(names), target_(target), description_(std::move(description)), flag_(flag) {
  for (const std::string& name : split(names, ',')) {
    if (name.starts_with("--")) {
      long_names_.push_back(name.substr(2));
    } else if (name.starts_with("-")) {
      short_names_.push_back(name.substr(1));
    } else {
      positional_ = name;
    }
  }
}

Option* Option::type_name(std::string name) {
  type_name_ = std::move(name);
  return this;
}

Option* Option::group(std::string name) {
  group_ = std::move(name);
  return this;
}

Option* Option::required() {
  required_ = true;
  return this;
}

Option* Option::check(Range range) {
  range_ = range;
  return this;
}

Option* Option::positive() {
  return check(Range{1, HUGE_VAL});
}

Option* Option::suggest(std::vector<std::string> values) {
  suggestions_ = std::move(values);
  return this;
}

Option* Option::expected(int least, int most) {
  expected_ = {least, most};
  return this;
}

Option* Option::hide() {
  hidden_ = true;
  return this;
}

std::string Option::label() const {
  if (is_positional()) return type_name_.empty() ? positional_ : type_name_;
  std::vector<std::string> names;
  for (const std::string& name : short_names_) names.push_back("-" + name);
  for (const std::string& name : long_names_) names.push_back("--" + name);
  return join(names, ", ");
}

std::string Option::value_name() const {
  if (flag_ || is_positional()) return "";
  if (!type_name_.empty()) return type_name_;
  return values_.empty() ? default_value_name(target_) : "NAME";
}

std::string Option::meaning() const {
  std::string allowed = join(values_, " | ");
  if (range_ && range_->has_top()) {
    allowed = fmt::format("{} to {}", number_text(range_->low), number_text(range_->high));
  }
  if (allowed.empty()) return description_;
  // "Windows (default 3)" takes them inside the parentheses.
  if (!description_.ends_with(')')) return fmt::format("{} ({})", description_, allowed);
  return fmt::format("{}; {})", description_.substr(0, description_.size() - 1), allowed);
}

Command::Command(std::string name, CommandText text, std::function<void(Session&)> run,
                 Command* parent)
    : name_(std::move(name)), text_(std::move(text)), run_(std::move(run)), parent_(parent) {}

Option* Command::add_option(const std::string& names, OptionTarget target,
                            std::string description) {
  options_.push_back(
      std::make_unique<Option>(names, target, std::move(description), /*flag=*/false));
  return options_.back().get();
}

Option* Command::add_flag(const std::string& names, bool& value, std::string description) {
  options_.push_back(
      std::make_unique<Option>(names, OptionTarget(&value), std::move(description), /*flag=*/true));
  return options_.back().get();
}

std::string Command::path() const {
  return parent_ == nullptr ? name_ : parent_->path() + " " + name_;
}

void Command::run(Session& session) const {
  if (run_) {
    run_(session);
  } else {
    session.out << render_help(*this, session.terminal);
  }
}

std::vector<const Option*> Command::options() const {
  std::vector<const Option*> positionals, others;
  for (const auto& option : options_) {
    (option->is_positional() ? positionals : others).push_back(option.get());
  }
  positionals.insert(positionals.end(), others.begin(), others.end());
  return positionals;
}

std::vector<const Option*> Command::shown_options() const {
  std::vector<const Option*> shown = options();
  std::erase_if(shown, [](const Option* option) { return option->is_hidden(); });
  return shown;
}

std::vector<const Command*> Command::subcommands() const {
  std::vector<const Command*> shown;
  for (const auto& command : subcommands_) {
    if (!command->hidden_) shown.push_back(command.get());
  }
  return shown;
}

const Command* Command::find_subcommand(const std::string& name) const {
  for (const auto& command : subcommands_) {
    if (command->name() == name) return command.get();
  }
  return nullptr;
}

}  // namespace fathom
