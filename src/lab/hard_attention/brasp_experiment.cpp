#include <fmt/format.h>

#include <cmath>

#include "core/text.h"
#include "core/units.h"
#include "lab/frame/options.h"
#include "lab/hard_attention/brasp.h"
#include "lab/hard_attention/hard_attention_experiments.h"
#include "lab/hard_attention/hard_network.h"

namespace fathom::lab {
namespace {

constexpr int kBraspVersion = 1;
/// A word of ten letters through the interpreter and the network of STAIR_5, measured.
constexpr double kSecondsPerWord = 1.5e-4;

/// Whether a word has k a's in a row once its c's are deleted: the definition itself.
bool in_stair(const std::string& word, std::size_t k) {
  std::size_t run = 0;
  for (const char c : word) {
    if (c == 'c') continue;
    run = c == 'a' ? run + 1 : 0;
    if (run >= k) return true;
  }
  return false;
}

/// The r-th word of a length over {a, b, c}.
std::string word_of(std::size_t length, std::size_t r) {
  std::string word(length, 'a');
  for (std::size_t i = length; i-- > 0; r /= 3) word[i] = static_cast<char>('a' + r % 3);
  return word;
}

Json check_stair(std::size_t k, std::size_t length, const Ticker& tick) {
  const BraspProgram program = stair_program(k);
  const HardNetwork network = compile_program(program);
  std::size_t words = 0;
  std::size_t program_errors = 0;
  std::size_t network_errors = 0;
  std::size_t count = 1;
  for (std::size_t l = 0; l <= length; ++l, count *= 3) {
    for (std::size_t r = 0; r < count; ++r, ++words) {
      const std::string word = word_of(l, r);
      const bool truth = in_stair(word, k);
      program_errors += run_program(program, word) != truth ? 1 : 0;
      network_errors += network.run(word) != (truth ? 1 : 0) ? 1 : 0;
      if (words % 1000 == 0) {
        tick(static_cast<double>(words) / std::pow(3.0, static_cast<double>(length)) / 1.5);
      }
    }
  }
  return {{"k", k},
          {"depth", program.depth()},
          {"layers", network.layers.size()},
          {"width", network.width()},
          {"weights", network.weights()},
          {"words", words},
          {"program_errors", program_errors},
          {"network_errors", network_errors},
          {"program", program.text()}};
}

std::vector<Part> plan_brasp(const Setup& setup) {
  const std::size_t length = setup.size("length");
  const double words = 1.5 * std::pow(3.0, static_cast<double>(length));
  const auto most = static_cast<double>(setup.size("stairs"));
  check_cost(setup,
             fmt::format("{} words of up to {} letters", format_significant(words, 3), length),
             words * most * most / 5 * kSecondsPerWord, 0);
  std::vector<Part> parts;
  for (std::size_t k = 1; k <= setup.size("stairs"); ++k) {
    parts.push_back({fmt::format("brasp v{} k={} length={}", kBraspVersion, k, length),
                     static_cast<double>(k),
                     [k, length](const Ticker& tick) { return check_stair(k, length, tick); }});
  }
  return parts;
}

/// The statements of a program, one a row.
ExhibitTable program_table(const Json& found) {
  ExhibitTable table{fmt::format("The program of STAIR_{}", found.at("k").get<std::size_t>()),
                     {"vector", "is"},
                     {}};
  for (const std::string& line : split(found.at("program").get<std::string>(), '\n')) {
    const std::size_t equals = line.find(" = ");
    if (equals == std::string::npos) continue;
    table.rows.push_back({line.substr(0, equals), line.substr(equals + 3)});
  }
  return table;
}

Conclusion conclude_brasp(const Setup&, const std::vector<Json>& results) {
  Conclusion conclusion;
  ExhibitTable table{"Programs and networks against the definition",
                     {"language", "program depth", "layers", "width", "weights not 0", "words",
                      "program errors", "network errors"},
                     {}};
  double program_errors = 0;
  double network_errors = 0;
  double deeper = 0;
  conclusion.data["stairs"] = Json::array();
  for (const Json& found : results) {
    program_errors += found.at("program_errors").get<double>();
    network_errors += found.at("network_errors").get<double>();
    deeper += found.at("depth") != found.at("k") || found.at("layers") != found.at("k") ? 1 : 0;
    conclusion.data["stairs"].push_back(found);
    table.rows.push_back({fmt::format("STAIR_{}", found["k"].get<std::size_t>()),
                          found["depth"].dump(), found["layers"].dump(), found["width"].dump(),
                          found["weights"].dump(), format_whole(found["words"].get<std::int64_t>()),
                          found["program_errors"].dump(), found["network_errors"].dump()});
  }
  conclusion.tables.push_back(std::move(table));
  conclusion.measures = {
      {"program", program_errors}, {"network", network_errors}, {"depth", deeper}};
  conclusion.tables.push_back(program_table(results.back()));
  return conclusion;
}

}  // namespace

Experiment brasp_experiment() {
  Option length = integer_option("length", 10, "N", "All words up to this length", 1, 20);
  length.quick = 8;
  return {"b-rasp",
          {integer_option("stairs", 5, "K", "STAIR_1 to STAIR_K", 1, 8), length},
          plan_brasp,
          conclude_brasp};
}

}  // namespace fathom::lab
