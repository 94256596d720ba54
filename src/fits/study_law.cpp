#include "fits/study_law.h"

#include <fmt/format.h>

#include <cmath>

#include "core/counts.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_file.h"
#include "core/json_reader.h"
#include "core/json_text.h"
#include "core/text.h"
#include "core/units.h"

namespace fathom::fits {
namespace {

constexpr const char* kSchema = "fathom.law.v1";

/// Most replicates kept in a file: percentiles of an optimum need no more.
constexpr std::size_t kKeptReplicates = 100;

nlohmann::ordered_json to_json(const JointFit& joint) {
  const auto list = [](const Eigen::VectorXd& values) {
    return std::vector<double>(values.begin(), values.end());
  };
  nlohmann::ordered_json json;
  json["form"] = joint.form.name();
  json["terms"] = joint.form.terms();
  json["interaction"] = joint.form.interaction;
  json["coefficients"] = list(joint.coefficients);
  json["runs"] = joint.runs;
  json["independent"] = joint.independent;
  json["mean_error"] = joint.mean_error;
  json["holdout_error"] =
      joint.holdout_error ? nlohmann::ordered_json(*joint.holdout_error) : nullptr;
  json["replicates"] = nlohmann::ordered_json::array();
  for (std::size_t r = 0; r < std::min(kKeptReplicates, joint.replicates.size()); ++r) {
    json["replicates"].push_back(list(joint.replicates[r]));
  }
  return json;
}

Eigen::VectorXd to_vector(const JsonReader& json, int size) {
  std::vector<double> values;
  for (const JsonReader& item : json.items()) values.push_back(item.number());
  if (values.size() != as_size(size)) {
    json.fail(fmt::format("has {} coefficients where the form has {}", values.size(), size));
  }
  return Eigen::Map<const Eigen::VectorXd>(values.data(), size);
}

JointFit to_joint(const JsonReader& json) {
  JointFit joint;
  joint.form = {false, false, false, false, json.at("interaction").boolean()};
  for (const JsonReader& term : json.at("terms").items()) {
    const std::string name = term.text();
    bool* place = name == "w"   ? &joint.form.width
                  : name == "L" ? &joint.form.depth
                  : name == "P" ? &joint.form.params
                  : name == "T" ? &joint.form.tokens
                                : nullptr;
    if (place == nullptr) term.fail(fmt::format("is an unknown term '{}'", printable(name)));
    *place = true;
  }
  if (joint.form.interaction && !joint.form.tokens) {
    json.at("interaction").fail("has no tokens to interact with");
  }
  joint.coefficients = to_vector(json.at("coefficients"), joint.form.size());
  joint.runs = json.at("runs").count();
  joint.independent = json.at("independent").count();
  joint.mean_error = json.at("mean_error").number();
  for (const JsonReader& replicate : json.at("replicates").items()) {
    joint.replicates.push_back(to_vector(replicate, joint.form.size()));
  }
  return joint;
}

Interval to_interval(const JsonReader& json) {
  return {json.at(0).number(), json.at(1).number()};
}

StudyLawData to_study_law(const JsonReader& json) {
  if (const std::string schema = json.at("schema").text(); schema != kSchema) {
    json.at("schema").fail(
        fmt::format("is '{}', this version reads {}", printable(schema), kSchema));
  }
  StudyLawData data;
  data.runs = json.at("runs").count();
  data.params = to_interval(json.at("params"));
  data.layers = to_interval(json.at("layers"));
  data.block_coefficient = json.at("block_coefficient").number();
  const JsonReader tokens = json.at("tokens");
  data.token_rule = {tokens.at("count").number(), tokens.at("per_parameter").boolean()};
  if (const auto range = tokens.find("range")) data.tokens = to_interval(*range);
  if (const auto law = json.find("exponential")) {
    data.exponential =
        laws::LevineFit{law->at("a").number(), law->at("b").number(), law->at("a_error").number(),
                        law->at("b_error").number(), law->at("correlation").number()};
  }
  if (const auto joint = json.find("joint")) data.joint = to_joint(*joint);
  if (!data.exponential && !data.joint) json.fail("it holds no law");
  return data;
}

std::string describe_claim(const StudyLawData& data) {
  std::string text;
  if (data.joint) text = fmt::format("loss in {}", data.joint->form.name());
  if (data.exponential) {
    text += fmt::format("{}ln d = {:.3f} + {:.4f}·L", text.empty() ? "" : "; ", data.exponential->a,
                        data.exponential->b);
  }
  return text;
}

/// The exponents of depth and width whose 95 % interval reaches zero.
std::vector<std::string> doubtful_exponents(const StudyLawData& data) {
  std::vector<std::string> names;
  if (!data.joint) {
    if (data.exponential->b <= 2 * data.exponential->b_error) names.emplace_back("width in depth");
    return names;
  }
  const std::vector<std::string> terms = data.joint->form.terms();
  for (int term = 0; term < static_cast<int>(terms.size()); ++term) {
    const std::string& name = terms[as_size(term)];
    if (name != "w" && name != "L") continue;
    const Interval range =
        replicate_interval(*data.joint, [&](const JointLaw& law) { return law.exponent(term); });
    if (data.joint->replicates.empty() || !(range.low > 0)) {
      names.emplace_back(name == "w" ? "width" : "depth");
    }
  }
  return names;
}

}  // namespace

StudyLawData study_law_data(const StudyFit& fit) {
  StudyLawData data;
  data.runs = fit.runs;
  data.params = fit.params;
  data.layers = fit.layers;
  data.block_coefficient = fit.block_coefficient;
  data.token_rule = fit.token_rule;
  data.tokens = fit.tokens;
  if (fit.surface && fit.surface->fixes_law()) {
    const LawConstants& law = fit.surface->law;
    data.exponential = laws::LevineFit{law.a, law.b, law.a_error, law.b_error, law.correlation};
  } else if (fit.law) {
    data.exponential = laws::LevineFit{fit.law->a, fit.law->b, fit.law->a_error, fit.law->b_error,
                                       fit.law->correlation};
  }
  data.joint = fit.joint;
  return data;
}

std::string study_law_text(const StudyLawData& data) {
  if (!data.exponential && !data.joint) {
    throw ConfigError("these runs fix no law, so there is none to save; see the warnings");
  }
  nlohmann::ordered_json json;
  json["schema"] = kSchema;
  json["runs"] = data.runs;
  json["params"] = {data.params.low, data.params.high};
  json["layers"] = {data.layers.low, data.layers.high};
  json["block_coefficient"] = data.block_coefficient;
  json["tokens"] = {{"count", data.token_rule.count},
                    {"per_parameter", data.token_rule.per_parameter}};
  if (data.tokens) json["tokens"]["range"] = {data.tokens->low, data.tokens->high};
  json["exponential"] = nullptr;
  if (data.exponential) {
    json["exponential"] = {{"a", data.exponential->a},
                           {"b", data.exponential->b},
                           {"a_error", data.exponential->a_error},
                           {"b_error", data.exponential->b_error},
                           {"correlation", data.exponential->correlation}};
  }
  json["joint"] = data.joint ? to_json(*data.joint) : nlohmann::ordered_json(nullptr);
  return json_file_text(std::move(json), 1);
}

StudyLawData parse_study_law(const std::string& text, const std::string& origin) {
  const nlohmann::json json = parse_json(text, origin);
  try {
    StudyLawData data = to_study_law(JsonReader(json, text, origin));
    data.source = origin;
    return data;
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}; 'fathom study fit --save' writes law files", error.what()));
  }
}

StudyLaw::StudyLaw(StudyLawData data) : data_(std::move(data)) {
  info_.name = "study:" + data_.source;
  info_.title = "This study";
  info_.source = fmt::format("{} ({} runs)", data_.source, data_.runs);
  info_.claim = describe_claim(data_);
  info_.parameters = data_.params;
  info_.layers = data_.layers;
  info_.tokens = data_.tokens.value_or(
      Interval{data_.token_rule.at(data_.params.low), data_.token_rule.at(data_.params.high)});
  info_.interval_meaning = data_.joint ? "95 % of the bootstrap" : "two standard errors of a and b";
}

laws::Optimum StudyLaw::optimum(const laws::Budget& budget) const {
  return optimum_after(budget, data_.token_rule.at(budget.parameters()));
}

laws::Optimum StudyLaw::optimum_after(const laws::Budget& budget, double tokens) const {
  if (!data_.joint) {
    const laws::Optimum crossing = laws::LevineLaw(*data_.exponential).optimum(budget);
    const double half = crossing.layers_interval->high - crossing.layers;
    return {crossing.layers, crossing.width,
            Interval{std::max(laws::kMinLayers, crossing.layers - 2 * half),
                     crossing.layers + 2 * half}};
  }
  const auto best = [&](const JointLaw& law) {
    return std::log(laws::least_loss_depth(budget, [&](double layers, double width) {
      return law.loss(layers, width, own_count(layers, width), tokens);
    }));
  };
  const double layers = std::exp(best(data_.joint->law()));
  laws::Optimum optimum{layers, budget.width_at(layers), std::nullopt};
  if (!data_.joint->replicates.empty()) {
    const Interval range = replicate_interval(*data_.joint, best);
    if (std::isfinite(range.high)) {
      optimum.layers_interval = Interval{std::exp(range.low), std::exp(range.high)};
    }
  }
  return optimum;
}

/// Parameters in the runs' own count, whatever the budget counts.
double StudyLaw::own_count(double layers, double width) const {
  return data_.block_coefficient * layers * width * width;
}

std::optional<double> StudyLaw::loss(double layers, double width, double, double tokens) const {
  if (!data_.joint) return std::nullopt;
  return data_.joint->law().loss(layers, width, own_count(layers, width), tokens);
}

std::vector<std::string> StudyLaw::objections(const laws::Budget& budget, double tokens) const {
  constexpr double kWidestOptimum = 4;
  constexpr double kFarthestTokens = 10;
  std::vector<std::string> reasons;
  const laws::Optimum best = optimum_after(budget, tokens);
  if (!best.layers_interval) {
    reasons.emplace_back("its best depth has no bounds");
  } else if (best.layers_interval->high > kWidestOptimum * best.layers_interval->low) {
    reasons.push_back(fmt::format("its best depth is known only to {} to {} layers",
                                  format_significant(best.layers_interval->low, 2),
                                  format_significant(best.layers_interval->high, 2)));
  }
  for (const std::string& name : doubtful_exponents(data_)) {
    reasons.push_back(fmt::format("its exponent of {} may be zero", name));
  }
  if (data_.joint && data_.joint->independent <= as_size(data_.joint->form.size())) {
    reasons.push_back(fmt::format("it has {} independent runs for {} coefficients",
                                  data_.joint->independent, data_.joint->form.size()));
  }
  const Interval& trained = *info_.tokens;
  const double times = tokens > trained.high ? tokens / trained.high : trained.low / tokens;
  if (times > kFarthestTokens) {
    reasons.push_back(fmt::format("its runs had {} tokens, {} times {} than this plan",
                                  format_count(tokens > trained.high ? trained.high : trained.low),
                                  format_significant(times, 2),
                                  tokens > trained.high ? "fewer" : "more"));
  }
  return reasons;
}

laws::LawPointer load_study_law(const std::filesystem::path& path) {
  const std::filesystem::path file = std::filesystem::is_directory(path) ? path / kLawFile : path;
  if (!std::filesystem::exists(file)) {
    throw DataError(fmt::format("there is no law file {}; write one with 'fathom study fit --save'",
                                file.string()));
  }
  return std::make_shared<StudyLaw>(parse_study_law(read_text_file(file), file.string()));
}

}  // namespace fathom::fits
