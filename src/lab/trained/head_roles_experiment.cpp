#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/counts.h"
#include "lab/frame/options.h"
#include "lab/trained/task_heads.h"
#include "lab/trained/trained_experiments.h"
#include "lab/trained/training_part.h"
#include "probe/head_distances.h"
#include "probe/own_run.h"
#include "probe/probe.h"

namespace fathom::lab {
namespace {

constexpr double kPrevious = 0.5;  // mean attention to the token before

std::vector<train::RunSpec> role_specs(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
    const int steps = setup.quick ? 400 : 4000;
    specs.push_back(lab_run_spec(
        setup,
        fmt::format("[data]\ntokens = \"sotu\"\neval_tokens = {}\n"
                    "[model]\nlayers = {}\nwidth = {}\nheads = {}\ncontext = {}\n"
                    "activation = \"gelu_tanh\"\ninit_std = 0.04\n"
                    "[train]\nsteps = {}\nbatch = {}\nlearning_rate = {}\nwarmup = {}\n"
                    "floor = 0.0\nseed = {}\ncheckpoint_every = {}\n",
                    setup.quick ? 20000 : 400000, setup.quick ? 3 : 6, setup.quick ? 64 : 128,
                    setup.quick ? 4 : 8, setup.quick ? 128 : 256, steps, setup.quick ? 16 : 64,
                    setup.quick ? 3e-3 : 1e-3, steps / 10, seed, steps / 2)));
  }
  return specs;
}

/// Brackets stand in for syntax: which bracket closes which is known.
std::vector<train::RunSpec> bracket_specs(const Setup& setup) {
  std::vector<train::RunSpec> specs;
  for (std::size_t seed = 1; seed <= setup.size("seeds"); ++seed) {
    const int steps = setup.quick ? 300 : 4000;
    specs.push_back(lab_run_spec(
        setup, fmt::format("[data]\ntask = \"dyck\"\nsymbols = 4\neval_tokens = {}\n"
                           "[model]\nlayers = {}\nwidth = {}\nheads = 4\ncontext = 64\n"
                           "init_std = 0.06\n"
                           "[train]\nsteps = {}\nbatch = {}\nlearning_rate = 1e-3\nwarmup = {}\n"
                           "schedule = \"linear\"\nfloor = 0.0\nweight_decay = 0.01\nseed = {}\n"
                           "checkpoint_every = {}\n",
                           setup.quick ? 6400 : 64000, setup.quick ? 2 : 4, setup.quick ? 32 : 64,
                           steps, setup.quick ? 16 : 64, steps / 10, seed, steps / 2)));
  }
  return specs;
}

/// What the probe says about every head of a trained run.
void read_heads(const Setup& setup, const std::filesystem::path& run, Json& result) {
  pretrained::Weights weights(probe::open_model(run), 1u << 30);
  probe::TextRequest request;
  request.text = (setup.folder / "tokens").string();
  request.window = weights.layout().context;
  request.most_tokens = setup.quick ? 4096 : 32768;
  const probe::ProbeText text =
      probe::read_probe_text(request, weights.tokenizer(), weights.tokenizer_note());
  probe::ProbeOptions options;
  options.fixed_tokens = true;
  options.curves = options.lens = false;
  const probe::ProbeResult probed = probe::probe_model(weights, text, "run", options);
  result["heads"] = Json::array();
  for (const probe::HeadResult& head : probed.heads) {
    result["heads"].push_back({{"layer", head.layer},
                               {"head", head.head},
                               {"role", name_of(head.role)},
                               {"previous", head.scores.previous},
                               {"sink", head.scores.sink},
                               {"local", head.scores.local},
                               {"broad", head.scores.broad},
                               {"induction", head.scores.induction},
                               {"duplicate", head.scores.duplicate},
                               {"contribution", head.contribution},
                               {"removal", head.removal ? head.removal->mean : NAN}});
  }
  const probe::HeadDistances distances = probe::measure_head_distances(
      weights, std::span(text.windows).first(std::min<std::size_t>(8, text.windows.size())));
  result["distance_within"] = distances.within_layers;
  result["distance_between"] = distances.between_layers;
}

/// Means of one layer's heads in one run.
struct LayerMeans {
  double previous = 0, sink = 0, local = 0, broad = 0, induction = 0, duplicate = 0,
         contribution = 0, removal = 0, heads = 0;
  std::map<std::string, int> roles;

  void add(const Json& head) {
    previous += head.at("previous").get<double>();
    sink += head.at("sink").get<double>();
    local += head.at("local").get<double>();
    broad += head.at("broad").get<double>();
    induction += head.at("induction").get<double>();
    duplicate += head.at("duplicate").get<double>();
    contribution += head.at("contribution").get<double>();
    removal += head.at("removal").is_null() ? NAN : head.at("removal").get<double>();
    ++heads;
    ++roles[head.at("role").get<std::string>()];
  }
  std::string role_list() const {
    std::string list;
    for (const auto& [role, count] : roles) {
      list += fmt::format("{}{} {}", list.empty() ? "" : ", ", count, role);
    }
    return list;
  }
};

std::vector<LayerMeans> layers_of(const std::vector<TrainedRun>& runs) {
  std::vector<LayerMeans> layers(as_size(runs.front().layers()));
  for (const TrainedRun& run : runs) {
    for (const Json& head : run.result.at("heads")) {
      layers.at(head.at("layer").get<std::size_t>()).add(head);
    }
  }
  return layers;
}

ExhibitTable role_table(const std::vector<LayerMeans>& layers) {
  ExhibitTable table{"Heads by layer: means over heads and seeds",
                     {"layer", "token before", "first token", "last 8", "evenness", "induction",
                      "duplicate", "writes", "loss without a head", "roles"},
                     {}};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const LayerMeans& layer = layers[l];
    const auto mean = [&](double sum) { return fmt::format("{:.3f}", sum / layer.heads); };
    table.rows.push_back({std::to_string(l + 1), mean(layer.previous), mean(layer.sink),
                          mean(layer.local), mean(layer.broad), mean(layer.induction),
                          mean(layer.duplicate), mean(layer.contribution),
                          fmt::format("{:+.4f}", layer.removal / layer.heads), layer.role_list()});
  }
  return table;
}

ExhibitChart role_chart(const std::vector<LayerMeans>& layers) {
  ExhibitChart chart{"What heads attend to, by layer",
                     "layer",
                     "mean attention",
                     false,
                     false,
                     {{"token before", {}}, {"first token", {}}, {"last 8 tokens", {}}}};
  for (std::size_t l = 0; l < layers.size(); ++l) {
    const double x = as_double(l + 1);
    chart.series[0].dots.push_back({x, layers[l].previous / layers[l].heads});
    chart.series[1].dots.push_back({x, layers[l].sink / layers[l].heads});
    chart.series[2].dots.push_back({x, layers[l].local / layers[l].heads});
  }
  return chart;
}

/// Largest score, and mean layer of the heads above kPrevious as a share of the depth.
struct PreviousHeads {
  double best = 0, place = NAN;
};

PreviousHeads previous_heads(const TrainedRun& run) {
  PreviousHeads found;
  double sum = 0;
  double count = 0;
  for (const Json& head : run.result.at("heads")) {
    const double score = head.at("previous").get<double>();
    found.best = std::max(found.best, score);
    if (score <= kPrevious) continue;
    sum += head.at("layer").get<double>() / as_double(run.layers() - 1);
    ++count;
  }
  if (count > 0) found.place = sum / count;
  return found;
}

/// Largest share of any head of a run, minus that of the best fixed distance.
double bracket_gain(const TrainedRun& run) {
  double best = 0;
  for (const Json& layer : run.result.at("brackets")) {
    for (const Json& share : layer) best = std::max(best, share.get<double>());
  }
  return best - run.number("bracket_offset");
}

ExhibitTable bracket_table(const std::vector<TrainedRun>& runs) {
  ExhibitTable table{
      "Dyck brackets: closing brackets, in percent, from which the best head of a "
      "layer looks most at the bracket that opened them",
      {"seed", "accuracy of the model", "best fixed distance"},
      {}};
  for (std::int64_t layer = 1; layer <= runs.front().layers(); ++layer) {
    table.columns.push_back(fmt::format("layer {}", layer));
  }
  for (const TrainedRun& run : runs) {
    std::vector<std::string> row{std::to_string(run.spec.seed), percent(run.number("accuracy")),
                                 percent(run.number("bracket_offset"))};
    for (const Json& layer : run.result.at("brackets")) {
      const auto shares = layer.get<std::vector<double>>();
      row.push_back(percent(*std::max_element(shares.begin(), shares.end())));
    }
    table.rows.push_back(std::move(row));
  }
  return table;
}

Conclusion conclude_roles(const Setup& setup, const std::vector<Json>& results) {
  const std::vector<train::RunSpec> specs = role_specs(setup);
  const auto middle_result = results.begin() + std::ssize(specs);
  const auto runs = trained_runs(specs, {results.begin(), middle_result});
  const auto bracket_runs = trained_runs(bracket_specs(setup), {middle_result, results.end()});
  double brackets = INFINITY;
  for (const TrainedRun& run : bracket_runs) brackets = std::min(brackets, bracket_gain(run));
  double best = INFINITY;
  double place = 0;
  double sink = INFINITY;
  double nearer = INFINITY;
  for (const TrainedRun& run : runs) {
    const PreviousHeads previous = previous_heads(run);
    best = std::min(best, previous.best);
    place = std::isnan(previous.place) ? NAN : std::max(place, previous.place);
    const std::vector<LayerMeans> layers = layers_of({run});
    const LayerMeans& middle = layers[layers.size() / 2];
    sink = std::min(sink, (middle.sink - layers.front().sink) / middle.heads);
    nearer = std::min(nearer, run.number("distance_between") / run.number("distance_within"));
  }
  Conclusion conclusion;
  const auto value = [&](double number) {
    return setup.quick || std::isnan(number) ? std::nullopt : std::optional(number);
  };
  conclusion.measures = {{"previous", value(best)},
                         {"low", value(place)},
                         {"sink", value(sink)},
                         {"alike", value(nearer)},
                         {"brackets", value(brackets)}};
  const std::vector<LayerMeans> layers = layers_of(runs);
  conclusion.tables = {role_table(layers), bracket_table(bracket_runs)};
  conclusion.charts.push_back(role_chart(layers));
  if (setup.quick) {
    conclusion.notes.emplace_back(
        "three layers trained for a minute are no model to judge the claim by: --quick shows the "
        "measurements");
  }
  conclusion.notes.emplace_back(
      "definitions of the scores: src/probe/heads.h; a causal head has no next token, and "
      "windows begin anywhere in the text");
  conclusion.notes.push_back(training_note(setup, runs));
  return conclusion;
}

std::vector<Part> role_parts(const Setup& setup) {
  std::vector<Part> parts = training_parts(setup, role_specs(setup), {"heads v1", read_heads});
  for (Part& part :
       training_parts(setup, bracket_specs(setup), {"bracket heads v1", read_bracket_heads})) {
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace

Experiment head_roles_experiment() {
  return {"heads-by-layer", {seeds_option(3, 1)}, role_parts, conclude_roles};
}

}  // namespace fathom::lab
