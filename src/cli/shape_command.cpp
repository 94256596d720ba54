// fathom shape: every count of one shape, its place among the laws; and the catalogue.
#include <fmt/format.h>

#include <filesystem>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/shape_report.h"
#include "core/error.h"
#include "core/units.h"
#include "shape/catalogue.h"
#include "shape/hf_config.h"
#include "terminal/table.h"

namespace fathom {
namespace {

struct Options {
  std::string what, vocab, context, tokens = "65536", hardware = "h200", conventions;
  ShapeRequest request;
  bool untied = false, json = false;
};

bool is_config_path(const std::string& text) {
  return text.ends_with(".json") || std::filesystem::exists(text);
}

/// Options that make no sense beside a name or a file, which say all of it themselves.
bool shape_options_given(const Options& o) {
  return o.request.heads || o.request.kv_heads || o.request.head_size || o.request.ffn ||
         o.request.gated || o.untied || !o.vocab.empty() || !o.conventions.empty();
}

ShapeSubject find_subject(const Options& o) {
  ShapeSubject subject;
  if (looks_like_depth_by_width(o.what)) {
    ShapeRequest request = o.request;
    const ShapeRequest size = parse_depth_by_width(o.what);
    request.layers = size.layers;
    request.width = size.width;
    request.tied = !o.untied;
    request.conventions = o.conventions;
    if (!o.vocab.empty()) request.vocab = parse_whole(o.vocab, "--vocab");
    if (!o.context.empty()) request.context = parse_whole(o.context, "--context");
    for (const std::int64_t value :
         {request.heads, request.kv_heads, request.head_size, request.ffn}) {
      if (value < 0)
        throw ConfigError("heads, kv heads, head size and ffn must be greater than zero");
    }
    subject.shape = complete(request);
    subject.name = depth_by_width(subject.shape);
    return subject;
  }
  if (shape_options_given(o)) {
    throw ConfigError("--heads, --ffn, --vocab and their like go with LAYERSxWIDTH only");
  }
  if (is_config_path(o.what)) {
    const HfModel model = read_hf_config(o.what);
    subject.shape = model.shape;
    subject.name = fmt::format("{} ({})", o.what, model.model_type);
  } else {
    const CatalogueEntry& entry = find_published(o.what);
    if (entry.kind != "decoder" && entry.kind != "encoder") {
      throw ConfigError(
          fmt::format("{} is a {}; Fathom counts dense stacks only", entry.name, entry.kind));
    }
    subject.shape = entry.shape;
    subject.name = entry.name;
    subject.published = &entry;
  }
  if (!o.context.empty()) subject.shape.context = parse_whole(o.context, "--context");
  validate(subject.shape);
  return subject;
}

void add_list_command(CommandTree& tree, CLI::App& parent) {
  struct ListOptions {
    std::vector<std::string> words;
    bool json = false;
  };
  auto options = std::make_shared<ListOptions>();
  CLI::App& list = tree.add(parent, "list",
                            {"Published shapes",
                             "",
                             {{"shape list", "all of them"},
                              {"shape list qwen", "those whose name, maker or kind match"}}},
                            [options](Session& session) {
                              print_catalogue(session, search_catalogue(join(options->words, " ")),
                                              options->json);
                            });
  list.add_option("WORD", options->words, "Words to look for");
  list.add_flag("--json", options->json, "Print JSON");
}

}  // namespace

void add_shape_command(CommandTree& tree) {
  auto options = std::make_shared<Options>();
  CLI::App& command = tree.add(
      tree.root(), "shape",
      {"Every count of one shape, and its place among the laws",
       "Counts parameters exactly (biases, norms, gated or plain feed-forward, grouped-query "
       "heads, "
       "tied or untied, learned positions), FLOPs, memory, KV cache and modelled times, and says "
       "how "
       "far the shape lies from each law.",
       {{"shape 96x12288 --heads 96", "GPT-3's shape from its numbers"},
        {"shape Llama-3-8B", "a published model"},
        {"shape ./config.json --json", "a Hugging Face config"},
        {"shape list qwen", "look for published shapes"}}},
      [options](Session& session) {
        if (options->what.empty()) {
          throw ConfigError(
              "say which shape: LAYERSxWIDTH, a config.json, a published name, or 'list'");
        }
        const std::int64_t tokens = parse_whole(options->tokens, "--step-tokens");
        const ShapeReport report =
            make_shape_report(find_subject(*options), find_hardware(options->hardware), tokens);
        options->json ? print_shape_json(session, report) : print_shape_text(session, report);
      });
  Options& o = *options;
  command.add_option("SHAPE", o.what, "LAYERSxWIDTH, a config.json, or a published name");
  command.add_option("--heads", o.request.heads, "Attention heads")->type_name("H");
  command.add_option("--kv-heads", o.request.kv_heads, "Key-value heads (default: heads)")
      ->type_name("G");
  command.add_option("--head-size", o.request.head_size, "Head size (default: width / heads)")
      ->type_name("K");
  command.add_option("--ffn", o.request.ffn, "Feed-forward width (default 4·width, gated 8/3)")
      ->type_name("F");
  command.add_flag("--gated", o.request.gated, "Gated feed-forward (three matrices)");
  command.add_option("--vocab", o.vocab, "Vocabulary (default 50304)")->type_name("V");
  command.add_option("--context", o.context, "Context length (default 2048)")->type_name("T");
  command.add_flag("--untied", o.untied, "Separate output matrix");
  command
      .add_option("--conventions", o.conventions,
                  "Norms, biases, positions as in a family: gpt2, llama, qwen2, …")
      ->type_name("NAME");
  command.add_option("--hardware", o.hardware, "Profile for times, or a .toml file (default h200)")
      ->type_name("HW");
  command.add_option("--step-tokens", o.tokens, "Tokens a step and device (default 65536)")
      ->type_name("N");
  command.add_flag("--json", o.json, "Print JSON");
  add_list_command(tree, command);
}

}  // namespace fathom
