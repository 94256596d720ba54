// fathom shape: every count of one shape, its place among the laws; and the catalogue.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/shape_view.h"
#include "core/error.h"
#include "core/units.h"
#include "shape/catalogue.h"
#include "shape/find_shape.h"
#include "terminal/table.h"

namespace fathom {
namespace {

struct ShapeOptions {
  std::string what, vocab, context, hardware = kDefaultHardware, conventions;
  std::string tokens = std::to_string(kDefaultStepTokens);
  ShapeRequest request;
  std::int64_t batch = 1;
  bool untied = false, json = false;
};

ShapeRequest make_request(const ShapeOptions& o) {
  ShapeRequest request = o.request;
  request.tied = !o.untied;
  request.conventions = o.conventions;
  if (!o.vocab.empty()) request.vocab = parse_whole(o.vocab, "--vocab");
  if (!o.context.empty()) request.context = parse_whole(o.context, "--context");
  return request;
}

void add_list_command(CommandTree& tree, Command& parent) {
  struct ListOptions {
    std::vector<std::string> words;
    bool json = false;
  };
  auto options = std::make_shared<ListOptions>();
  Command& list = tree.add(parent, "list",
                           {"Published shapes",
                            "",
                            {{"shape list", "all of them"},
                             {"shape list qwen", "those whose name, maker or kind match"}}},
                           [options](Session& session) {
                             print_catalogue(session, search_catalogue(join(options->words, " ")),
                                             options->json);
                           });
  list.add_option("WORD", options->words, "Words to search for");
  list.add_flag("--json", options->json, "Print JSON");
}

void add_size_options(Command& command, ShapeOptions& o) {
  command.add_option("--heads", o.request.heads, "Attention heads")->type_name("H")->positive();
  command.add_option("--kv-heads", o.request.kv_heads, "Key-value heads (default: heads)")
      ->type_name("G")
      ->positive();
  command.add_option("--head-size", o.request.head_size, "Head size (default: width / heads)")
      ->type_name("K")
      ->positive();
  command.add_option("--ffn", o.request.ffn, "Feed-forward width (default 4·width, gated 8/3)")
      ->type_name("F")
      ->positive();
  command.add_flag("--gated", o.request.gated, "Gated feed-forward (three matrices)");
  command.add_option("--vocab", o.vocab, fmt::format("Vocabulary (default {})", kDefaultVocab))
      ->type_name("V");
  command
      .add_option("--context", o.context,
                  fmt::format("Context length (default {})", kDefaultContext))
      ->type_name("T");
  command.add_flag("--untied", o.untied, "Separate output matrix");
  command
      .add_option("--conventions", o.conventions,
                  "Norms, biases, positions as in a family: gpt2, llama, qwen2, …")
      ->type_name("NAME");
}

/// What memory and times are counted for.
void add_cost_options(Command& command, ShapeOptions& o) {
  command.add_option("--batch", o.batch, "Sequences whose KV cache is counted (default 1)")
      ->type_name("B")
      ->check({1, 1e9});
  command
      .add_option("--hardware", o.hardware,
                  fmt::format("Profile for times, or a .toml file (default {})", kDefaultHardware))
      ->type_name("HW")
      ->suggest(hardware_names());
  command
      .add_option("--step-tokens", o.tokens,
                  fmt::format("Tokens per step and device (default {})", kDefaultStepTokens))
      ->type_name("N");
}

}  // namespace

void add_shape_command(CommandTree& tree) {
  auto options = std::make_shared<ShapeOptions>();
  Command& command = tree.add(
      tree.root(), "shape",
      {"Every count of one shape, and its place among the laws",
       "Counts parameters exactly (biases, norms, gated or plain feed-forward, grouped-query "
       "heads, experts in total and active per token, latent attention, tied or untied, learned "
       "positions), FLOPs, memory, KV cache and modelled times, and says how far the shape lies "
       "from each law. Options given with a name or a config change that shape: what if?",
       {{"shape 96x12288 --heads 96", "GPT-3's shape from its numbers"},
        {"shape Llama-3-8B", "a published model; hub ids work too"},
        {"shape Llama-3-8B --vocab 32000", "what if its vocabulary were smaller"},
        {"shape DeepSeek-V3", "a mixture of experts: total and active"},
        {"shape ./config.json --json", "a Hugging Face config"},
        {"shape list qwen", "search the published shapes"}}},
      [options](Session& session) {
        if (options->what.empty()) {
          throw ConfigError(
              "give a shape: LAYERSxWIDTH, a config.json, a published name, or 'list'");
        }
        const std::int64_t tokens = parse_whole(options->tokens, "--step-tokens");
        const planner::ShapeReport report =
            planner::report_shape(find_shape(options->what, make_request(*options)),
                                  find_hardware(options->hardware), tokens, options->batch);
        options->json ? print_shape_json(session, report) : print_shape_text(session, report);
      });
  command.add_option("SHAPE", options->what, "LAYERSxWIDTH, a config.json, or a published name")
      ->suggest(published_names());
  add_size_options(command, *options);
  add_cost_options(command, *options);
  command.add_flag("--json", options->json, "Print JSON");
  add_list_command(tree, command);
}

}  // namespace fathom
