// fathom eval, generate, export and import: what can be done with a trained model.
#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "core/error.h"
#include "core/threads.h"
#include "core/units.h"
#include "data/token_set.h"
#include "model/units.h"
#include "pretrained/checkpoint.h"
#include "probe/drop.h"
#include "probe/inference.h"
#include "train/weights.h"

namespace fathom {
namespace {

using namespace train;
namespace fs = std::filesystem;

int thread_count(int asked) {
  return static_cast<int>(threads_or_all(static_cast<unsigned>(asked)));
}

struct EvalOptions {
  std::string model, corpus, split = "valid", tokens = "1M";
  int threads = 0;
  bool json = false;
};

constexpr std::uint64_t kLayerBytes = std::uint64_t{64} << 30;
constexpr std::int64_t kEvalWindow = 2048;

void print_loss(Session& session, const EvalOptions& o, const std::string& part, double loss,
                std::optional<double> bits_per_byte, std::uint64_t tokens) {
  if (o.json) {
    Json document = json_document("eval");
    document["split"] = part;
    document["tokens"] = tokens;
    document["loss"] = loss;
    document["bits_per_byte"] = number_or_null(bits_per_byte);
    print_json(session, document);
    return;
  }
  session.out << fmt::format(
      "{} of {}: {:.4f} nats per token{} ({} tokens)\n", part, o.corpus, loss,
      bits_per_byte ? fmt::format(", {:.4f} bits per byte", *bits_per_byte) : "",
      format_whole(static_cast<std::int64_t>(tokens)));
}

/// Evaluates a model made elsewhere on any text.
void run_foreign_eval(Session& session, const EvalOptions& o) {
  pretrained::Weights weights(pretrained::open_checkpoint(o.model), kLayerBytes);
  probe::TextRequest request;
  request.text = o.corpus;
  request.window = std::min(kEvalWindow, weights.layout().context);
  request.most_tokens = parse_whole(o.tokens, "--tokens");
  request.task = probe::task_of(weights.layout());
  const probe::ProbeText text =
      probe::read_probe_text(request, weights.tokenizer(), weights.tokenizer_note());
  const probe::TextLoss result =
      probe::evaluate_text(weights, text, static_cast<unsigned>(thread_count(o.threads)));
  const char* part = data::is_token_set(o.corpus) ? "valid" : "text";
  if (request.task == probe::Task::masked_token) part = "masked tokens";
  print_loss(session, o, part, result.loss.mean, result.bits_per_byte,
             static_cast<std::uint64_t>(result.tokens));
}

/// Prepared tokens go through the engine where it knows the model; all else is text.
bool is_foreign_eval(const EvalOptions& o) {
  return pretrained::is_checkpoint(o.model) &&
         (!fs::is_directory(o.model) || !data::is_token_set(o.corpus));
}

void run_eval(Session& session, const EvalOptions& o) {
  if (is_foreign_eval(o)) return run_foreign_eval(session, o);
  const data::Split split = parse_enum<data::Split>(o.split, "--split");
  const auto limit = static_cast<std::uint64_t>(parse_whole(o.tokens, "--tokens"));
  const Weights weights = load_weights(o.model);
  const data::TokenSet corpus(o.corpus);
  const WeightsEvaluation result =
      evaluate_weights(weights, corpus, split, limit, thread_count(o.threads));
  print_loss(session, o, o.split, result.loss, result.bits_per_byte, result.tokens);
}

struct GenerateOptions {
  std::string model, prompt;
  GenerationOptions generation;
  int threads = 0;
  bool json = false;
};

void run_generate(Session& session, GenerateOptions o) {
  o.generation.threads = thread_count(o.threads);
  std::string text;
  const auto emit = [&](std::string_view bytes) {
    if (!o.json) session.out << (text.empty() ? o.prompt : "") << bytes << std::flush;
    text += bytes;
  };
  if (pretrained::is_checkpoint(o.model)) {
    pretrained::Weights weights(pretrained::open_checkpoint(o.model), kLayerBytes);
    probe::generate_text(weights, o.prompt, o.generation, emit);
  } else {
    generate_text(load_weights(o.model), o.prompt, o.generation, emit);
  }
  if (!o.json) {
    session.out << "\n";
    return;
  }
  Json document = json_document("generate");
  document["prompt"] = o.prompt;
  document["text"] = text;
  document["tokens"] = o.generation.tokens;
  document["seed"] = o.generation.seed;
  session.out << document.dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
}

struct ExportOptions {
  std::string model, format, output;
  bool compact = false;
};

/// Removes neurons and heads that contribute nothing.
Weights compacted(Session& session, Weights weights) {
  const std::int64_t before = weights.parameter_count();
  model::CompactedModel smaller = model::compact(weights.spec, weights.parameters);
  std::int64_t heads = 0;
  std::int64_t neurons = 0;
  for (const model::UnitCount& count : smaller.counts) {
    (count.kind == model::UnitKind::head ? heads : neurons) += count.idle;
  }
  weights.spec = std::move(smaller.spec);
  weights.parameters = std::move(smaller.parameters);
  session.err << fmt::format(
      "{} neurons and {} heads contribute nothing: {} of {} parameters are left\n",
      format_whole(neurons), format_whole(heads), format_whole(weights.parameter_count()),
      format_whole(before));
  return weights;
}

/// Other people's checkpoints keep their own layout; Fathom's models are written in the one asked
/// for.
void run_export(Session& session, const ExportOptions& o) {
  if (o.compact) {
    const Weights weights = compacted(session, load_weights(o.model));
    if (o.format.empty()) {
      save_weights(weights, o.output);
    } else {
      export_weights(weights, parse_enum<model::HfFormat>(o.format, "--format"), o.output);
    }
  } else if (o.format.empty()) {
    if (!pretrained::is_checkpoint(o.model)) {
      throw ConfigError(fmt::format("{}: choose a layout with --format: {}", o.model,
                                    fmt::join(list_names<model::HfFormat>(), " or ")));
    }
    probe::write_pruned(o.model, {}, o.output);
  } else {
    export_weights(load_weights(o.model), parse_enum<model::HfFormat>(o.format, "--format"),
                   o.output);
  }
  session.err << fmt::format("wrote {}\n", o.output);
}

struct ImportOptions {
  std::string model, output;
  bool json = false;
};

void run_import(Session& session, const ImportOptions& o) {
  const Weights weights = load_weights(o.model);
  save_weights(weights, o.output);
  const std::int64_t parameters = weights.parameter_count();
  if (o.json) {
    Json document = json_document("import");
    document["folder"] = o.output;
    document["layers"] = weights.spec.layers;
    document["width"] = weights.spec.width;
    document["parameters"] = parameters;
    document["tokenizer"] = weights.tokenizer ? Json(weights.tokenizer->kind()) : Json(nullptr);
    print_json(session, document);
    return;
  }
  session.out << session.terminal.plain(
      fmt::format("{}: {} layers × {}, {} parameters, {}\n", o.output, weights.spec.layers,
                  weights.spec.width, format_whole(parameters),
                  weights.tokenizer ? weights.tokenizer->kind() + " tokenizer"
                                    : "no tokenizer (" + weights.tokenizer_note + ")"));
}

constexpr const char* kModelHelp =
    "A run's folder, an imported model, a Hugging Face folder, a .gguf or llama2.c .bin file";

}  // namespace

void add_eval_command(CommandTree& tree) {
  auto options = std::make_shared<EvalOptions>();
  EvalOptions& o = *options;
  Command& command = tree.add(
      tree.root(), "eval",
      {"Loss of a model on a prepared corpus",
       "Reads evenly spaced windows of a split and reports nats per token, and bits per byte of "
       "text, which compare across tokenizers.",
       {{"eval runs/small tokens/", "on the validation split"},
        {"eval ./llama tokens/ --split test --json", "a Hugging Face model, for a script"}}},
      [options](Session& session) { run_eval(session, *options); });
  command.add_option("MODEL", o.model, kModelHelp)->required();
  command.add_option("CORPUS", o.corpus, "A prepared corpus; for models from elsewhere any text")
      ->required();
  tree.restrict(command.add_option("--split", o.split, "Which split")->type_name("PART"),
                list_names<data::Split>());
  command.add_option("--tokens", o.tokens, "Read at most this many tokens (default 1M)")
      ->type_name("N");
  command.add_option("--threads", o.threads, "Threads (default: all cores)")
      ->type_name("N")
      ->positive();
  command.add_flag("--json", o.json, "Print JSON");
}

void add_generate_command(CommandTree& tree) {
  auto options = std::make_shared<GenerateOptions>();
  GenerateOptions& o = *options;
  Command& command =
      tree.add(tree.root(), "generate",
               {"Generate text from a model",
                "",
                {{"generate runs/small --prompt \"My fellow citizens\"", "continue this text"},
                 {"generate runs/small --prompt \"The\" --temperature 0 --tokens 50",
                  "the most likely text"}}},
               [options](Session& session) { run_generate(session, *options); });
  command.add_option("MODEL", o.model, kModelHelp)->required();
  command.add_option("--prompt", o.prompt, "Text to continue (default: the start of a document)")
      ->type_name("TEXT");
  command.add_option("--tokens", o.generation.tokens, "How many tokens (default 200)")
      ->type_name("N")
      ->positive();
  command
      .add_option("--temperature", o.generation.temperature,
                  "0: always the most likely token (default 0.8)")
      ->type_name("X");
  command
      .add_option("--top-k", o.generation.top_k,
                  "Sample from the k most likely tokens only (default all)")
      ->type_name("K")
      ->positive();
  command.add_option("--seed", o.generation.seed, "Seed (default 1)")->type_name("N");
  command.add_option("--threads", o.threads, "Threads (default: all cores)")
      ->type_name("N")
      ->positive();
  command.add_flag("--json", o.json, "Print JSON");
}

void add_export_command(CommandTree& tree) {
  auto options = std::make_shared<ExportOptions>();
  ExportOptions& o = *options;
  Command& command = tree.add(
      tree.root(), "export",
      {"Write a model for Hugging Face transformers",
       "Writes config.json and model.safetensors. Multipliers that the layout has no key for are "
       "folded into the weights, so the logits are the same. Without --format a .gguf or llama2.c "
       ".bin file, or a folder of any family, is written in its own layout, with its tokenizer. "
       "--compact removes what proximal steps (train.prox) have set to zero; without --format the "
       "smaller model is written in Fathom's own layout, which eval and generate read.",
       {{"export runs/small --format hf-gpt2 -o hf/",
         "AutoModelForCausalLM.from_pretrained(\"hf\")"},
        {"export tinyllama.gguf -o hf/", "a quantised file as a folder of f32 tensors"},
        {"export runs/sized --compact -o models/sized", "without its zero neurons and heads"}}},
      [options](Session& session) { run_export(session, *options); });
  command.add_option("MODEL", o.model, kModelHelp)->required();
  tree.restrict(
      command.add_option("--format", o.format, "Layout to write a run in")->type_name("FORMAT"),
      list_names<model::HfFormat>());
  command.add_flag("--compact", o.compact, "Remove neurons and heads that contribute nothing");
  command.add_option("-o,--output", o.output, "Folder to write")->required()->type_name("FOLDER");
}

void add_import_command(CommandTree& tree) {
  auto options = std::make_shared<ImportOptions>();
  ImportOptions& o = *options;
  Command& command = tree.add(
      tree.root(), "import",
      {"Import a Hugging Face model",
       "Reads config.json and safetensors (whole or sharded) of GPT-2 and LLaMA models and a "
       "SentencePiece tokenizer.model, and writes a model folder in Fathom's own layout.",
       {{"import ./gpt2 -o models/gpt2", "then: fathom eval models/gpt2 tokens/"}}},
      [options](Session& session) { run_import(session, *options); });
  command.add_option("MODEL", o.model, "A Hugging Face folder")->required();
  command.add_option("-o,--output", o.output, "Folder to write")->required()->type_name("FOLDER");
  command.add_flag("--json", o.json, "Print JSON");
}

}  // namespace fathom
