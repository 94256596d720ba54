#include <fmt/format.h>

#include "core/error.h"
#include "core/hash.h"
#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/hard_attention/hard_attention_experiments.h"
#include "lab/hard_attention/position_types.h"
#include "lab/hard_attention/regular_expression.h"
#include "lab/hard_attention/syntactic_monoid.h"

namespace fathom::lab {
namespace {

constexpr int kDepthVersion = 1;
constexpr std::size_t kStairs = 5;
constexpr std::size_t kStairLength = 9;

/// One language in one logic.
struct Question {
  std::string name;
  Dfa dfa;
  std::size_t length = 0;
  Logic logic = Logic::since;
  std::size_t stair = 0;  // k of STAIR_k
};

/// Least depth of STAIR_k: k with since, 1 + ceil((k - 1)/2) with both.
std::size_t stair_depth(std::size_t k, Logic logic) {
  return logic == Logic::since ? k : 1 + k / 2;
}

Dfa dfa_of(const Setup& setup) {
  const std::string expression = setup.text("regex");
  const std::string file = setup.text("dfa");
  if (expression.empty() == file.empty()) {
    throw ConfigError(
        "name one language: --regex EXPRESSION, where () is the empty word, or --dfa FILE");
  }
  if (!file.empty()) {
    if (!setup.text("alphabet").empty()) {
      throw ConfigError("--alphabet goes with --regex; a DFA file names its own");
    }
    return minimal(read_dfa(file));
  }
  return compile_expression(expression, setup.text("alphabet"));
}

std::vector<Question> questions(const Setup& setup) {
  std::vector<Question> list;
  if (setup.own) {
    const std::string name = setup.text("regex").empty() ? setup.text("dfa") : setup.text("regex");
    list.push_back({name, dfa_of(setup), setup.size("length"),
                    parse_enum<Logic>(setup.text("logic"), "--logic"), 0});
    return list;
  }
  for (std::size_t k = 1; k <= kStairs; ++k) {
    const Dfa dfa = compile_expression(stair_expression(k), "abc");
    for (const Logic logic : {Logic::since, Logic::since_until}) {
      list.push_back({fmt::format("STAIR_{}", k), dfa,
                      setup.quick ? kStairLength - 1 : kStairLength, logic, k});
    }
  }
  return list;
}

/// Identifies the automaton by its content: equal languages have equal minimal automata.
std::string fingerprint(const Dfa& dfa) {
  std::string text = dfa.alphabet + fmt::format(" {} ", dfa.start);
  for (const bool accepts : dfa.accepts) text += accepts ? '1' : '0';
  for (const std::uint32_t next : dfa.next) text += fmt::format(" {}", next);
  return hash_bytes(text).hex();
}

Json answer(const Question& question, const Ticker& tick) {
  const LanguageDepth found = language_depth(question.dfa, question.length, question.logic, tick);
  const SyntacticMonoid monoid = syntactic_monoid(question.dfa, [&] { tick(1); });
  Json json;
  json["depths"] = Json::array();
  for (const auto& depth : found.depths) json["depths"].push_back(depth ? Json(*depth) : Json());
  json["star_free"] = monoid.star_free ? Json(*monoid.star_free) : Json();
  json["monoid_size"] = monoid.complete ? Json(monoid.size) : Json();
  if (!monoid.complete) json["monoid_more_than"] = monoid.size;
  json["states"] = question.dfa.states();
  json["witness"] = nullptr;
  if (found.witness) {
    json["witness"] = {{"in", found.witness->in},
                       {"out", found.witness->out},
                       {"depth", found.witness->depth},
                       {"rechecked", is_proof(question.dfa, *found.witness, question.logic)}};
  }
  json["classes"] = found.classes;
  return json;
}

std::vector<Part> plan_depths(const Setup& setup) {
  std::vector<Part> parts;
  for (const Question& question : questions(setup)) {
    const TypeCost cost = type_cost(question.dfa.letters(), question.length, question.logic);
    check_cost(setup,
               fmt::format("{} words of up to {} letters", format_significant(cost.words, 3),
                           question.length),
               cost.seconds, cost.bytes, false);
    parts.push_back(
        {fmt::format("depth v{} {} length={} {}", kDepthVersion, fingerprint(question.dfa),
                     question.length, to_string(question.logic)),
         cost.seconds, [question](const Ticker& tick) { return answer(question, tick); }});
  }
  return parts;
}

std::string depth_text(const Json& depth) {
  return depth.is_null() ? fmt::format("> {}", kMaxDepth) : depth.dump();
}

/// The witness as a proof in words.
std::string witness_text(const Json& witness) {
  if (witness.is_null()) return "-";
  const auto quoted = [](const std::string& word) { return word.empty() ? "(empty)" : word; };
  return fmt::format("{} in, {} out at depth {}", quoted(witness["in"]), quoted(witness["out"]),
                     witness["depth"].get<std::size_t>());
}

/// Lengths at which the least depth changes.
ExhibitTable depths_by_length(const Json& found) {
  ExhibitTable table{"Least depth by length of the words", {"up to length", "depth"}, {}};
  const Json& depths = found.at("depths");
  for (std::size_t n = 0; n < depths.size(); ++n) {
    if (n > 0 && depths[n] == depths[n - 1]) {
      table.rows.back()[0] = std::to_string(n + 1);
    } else {
      table.rows.push_back({std::to_string(n + 1), depth_text(depths[n])});
    }
  }
  return table;
}

/// Least depth of STAIR_k by k, a line for each logic.
ExhibitChart stair_chart(const std::vector<Question>& list, const std::vector<Json>& results) {
  ExhibitChart chart{"Least depth of STAIR_k", "k", "depth", false, false, {}};
  for (const Logic logic : {Logic::since, Logic::since_until}) {
    ChartSeries series{to_string(logic), {}};
    for (std::size_t i = 0; i < list.size(); ++i) {
      const Json& depth = results[i].at("depths").back();
      if (list[i].logic != logic || depth.is_null()) continue;
      series.dots.push_back({static_cast<double>(list[i].stair), depth.get<double>()});
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

Conclusion conclude_depths(const Setup& setup, const std::vector<Json>& results) {
  const std::vector<Question> list = questions(setup);
  Conclusion conclusion;
  ExhibitTable table{
      "Least depth on all words up to the length",
      {"language", "logic", "length", "depth", "star-free", "monoid", "why not less"},
      {}};
  std::size_t unchecked = 0;
  std::size_t wrong_since = 0;
  std::size_t wrong_both = 0;
  conclusion.data["languages"] = Json::array();
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Question& question = list[i];
    const Json& found = results[i];
    const Json& depth = found.at("depths").back();
    if (!found.at("witness").is_null() && !found["witness"]["rechecked"].get<bool>()) ++unchecked;
    if (question.stair != 0) {
      const bool right = depth == stair_depth(question.stair, question.logic);
      (question.logic == Logic::since ? wrong_since : wrong_both) += right ? 0 : 1;
    }
    Json entry{{"language", question.name},
               {"alphabet", question.dfa.alphabet},
               {"length", question.length},
               {"logic", to_string(question.logic)}};
    entry.update(found);
    conclusion.data["languages"].push_back(std::move(entry));
    const Json& star_free = found.at("star_free");
    table.rows.push_back({question.name, to_string(question.logic), std::to_string(question.length),
                          depth_text(depth),
                          star_free.is_null()     ? "?"
                          : star_free.get<bool>() ? "yes"
                                                  : "no",
                          found.at("monoid_size").is_null()
                              ? fmt::format("> {}", found["monoid_more_than"].get<std::size_t>())
                              : found["monoid_size"].dump(),
                          witness_text(found.at("witness"))});
  }
  conclusion.tables.push_back(std::move(table));
  if (setup.own) {
    if (unchecked > 0) throw InternalError("a colliding pair that does not pass the second look");
    for (const auto& [key, value] : results.front().items()) conclusion.data[key] = value;
    conclusion.tables.push_back(depths_by_length(results.front()));
  } else {
    conclusion.measures = {{"since", static_cast<double>(wrong_since)},
                           {"since-until", static_cast<double>(wrong_both)}};
    conclusion.charts.push_back(stair_chart(list, results));
    conclusion.measures.push_back({"proofs", static_cast<double>(unchecked)});
  }
  conclusion.notes.push_back(
      "a pair that collides proves that the depth below is not enough, at any width; that the "
      "depth given is enough was checked on all words up to the length and on no others");
  return conclusion;
}

}  // namespace

Experiment hard_attention_experiment() {
  return {
      "hard-attention",
      {text_option("regex", "", "EXPRESSION",
                   "A language: letters, ( ) | * + ? {m,n} . [ab] [a-c] [^ab], \\* for a letter "
                   "that is a sign; () is the empty word, [] no word at all"),
       text_option("dfa", "", "FILE",
                   "A language: a TOML file with alphabet, start, accept and a table of "
                   "transitions, e.g. q0 = { a = \"q1\", b = \"q0\" }"),
       text_option("alphabet", "", "LETTERS",
                   "Letters of the words (default: those of the expression)"),
       integer_option("length", 9, "N", "All words up to this length", 1, 1000),
       text_option("logic", "since", "NAME",
                   "since: attention to the left only; since-until: to both sides",
                   list_names<Logic>())},
      plan_depths,
      conclude_depths};
}

}  // namespace fathom::lab
