// fathom data: corpora to token files, and a look at them.
#include <fmt/format.h>

#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "core/counts.h"
#include "core/error.h"
#include "core/threads.h"
#include "core/units.h"
#include "core/utf8.h"
#include "data/batch_sampler.h"
#include "data/named_corpora.h"
#include "data/prepare.h"
#include "data/token_set.h"
#include "terminal/progress.h"
#include "terminal/table.h"

namespace fathom {
namespace {

using namespace data;

struct PrepareOptions {
  std::string corpus, output, documents = "auto", separator, text_field, valid = "5%", test = "5%";
  std::string valid_from, test_from, tokenizer = "bpe", tokenizer_from;
  std::string vocabulary = "2000", sample = "32M";
  std::uint64_t seed = 0;
  unsigned threads = 0;
  bool json = false;
};

/// A share in [0, 1); parse_fraction refuses zero, which here means "no such split".
double parse_share(const std::string& text, const char* what) {
  return text == "0" || text == "0%" ? 0 : parse_fraction(text, what);
}

PrepareRequest to_request(const PrepareOptions& options) {
  PrepareRequest request;
  request.output = options.output;
  request.split = {parse_share(options.valid, "--valid"), parse_share(options.test, "--test"),
                   options.seed};
  request.sources.push_back({resolve_corpus(options.corpus), {}, ""});
  const auto add_held_out = [&](const std::string& name, Split split, double& share) {
    if (name.empty()) return;
    request.sources.push_back({resolve_corpus(name), split, ""});
    share = 0;
  };
  add_held_out(options.valid_from, Split::valid, request.split.valid);
  add_held_out(options.test_from, Split::test, request.split.test);
  request.documents.kind = parse_enum<DocumentKind>(options.documents, "document rule");
  request.documents.text_field = options.text_field;
  if (!options.separator.empty()) {
    request.documents.kind = DocumentKind::separator;
    request.documents.separator = options.separator;
  }
  request.tokenizer = {options.tokenizer, as_size(parse_whole(options.vocabulary, "--vocab")),
                       as_size(parse_whole(options.sample, "--tokenizer-sample"))};
  if (!options.tokenizer_from.empty()) request.tokenizer_from = options.tokenizer_from;
  request.threads = threads_or_all(options.threads);
  return request;
}

Json split_json(const TokenFileInfo& info) {
  return {{"tokens", info.count},
          {"documents", info.documents},
          {"text_bytes", info.text_bytes},
          {"bytes_per_token", number_or_null(bytes_per_token(info))},
          {"hash", info.content.hex()}};
}

std::string splits_table(const Session& session, const BySplit<TokenFileInfo>& splits) {
  Table table({{"split"},
               {"documents", Align::right},
               {"text", Align::right},
               {"tokens", Align::right},
               {"bytes/token", Align::right},
               {"hash"}});
  for (const Split split : kSplits) {
    const TokenFileInfo& info = splits[split];
    table.add_row({to_string(split), format_whole(static_cast<std::int64_t>(info.documents)),
                   format_bytes(as_double(info.text_bytes)),
                   format_whole(static_cast<std::int64_t>(info.count)),
                   info.count > 0 ? fmt::format("{:.3f}", bytes_per_token(info)) : "-",
                   info.content.hex().substr(0, 12)});
  }
  return table.render(session.terminal);
}

void mention_empty_splits(Session& session, const SplitRule& rule, const PrepareReport& report) {
  std::uint64_t documents = 0;
  for (const TokenFileInfo& info : report.splits) documents += info.documents;
  for (const Split split : {Split::valid, Split::test}) {
    const double share = split == Split::valid ? rule.valid : rule.test;
    if (share == 0 || report.splits[split].count > 0) continue;
    const std::int64_t needed = documents_for_share(share);
    session.err << fmt::format(
        "fathom: no text in the {} split: {} {}, none fell into it{}\n", to_string(split),
        format_whole(as_signed(documents)), documents == 1 ? "document" : "documents",
        as_signed(documents) < needed
            ? fmt::format("; about {} would be enough; --documents lines or paragraphs makes more",
                          needed)
            : " (equal documents stay together)");
  }
}

void run_prepare(Session& session, const PrepareOptions& options) {
  const PrepareRequest request = to_request(options);
  PrepareReport report;
  {
    ProgressLine line(session.err, is_live_error_stream(session.err));
    std::string shown;
    report = prepare(request, [&](const std::string& stage, double fraction, std::uint64_t bytes) {
      if (stage != shown) line.clear();  // a new stage is drawn at once
      shown = stage;
      line.update(bytes > 0 ? stage + "  " + format_bytes(as_double(bytes)) : stage, fraction);
    });
  }
  double text_bytes = 0;
  for (const TokenFileInfo& info : report.splits) text_bytes += as_double(info.text_bytes);
  const double speed = text_bytes / std::max(report.seconds_encode, 1e-9);
  mention_empty_splits(session, request.split, report);
  if (options.json) {
    Json document = json_document("data_prepare");
    document["output"] = request.output.string();
    document["hash"] = report.hash.hex();
    document["tokenizer"] = {{"vocabulary", report.vocabulary}, {"hash", report.tokenizer.hex()}};
    for (const Split split : kSplits) {
      document["splits"][to_string(split)] = split_json(report.splits[split]);
    }
    document["seconds"] = {{"tokenizer", report.seconds_tokenizer},
                           {"encode", report.seconds_encode}};
    document["encode_bytes_per_second"] = speed;
    return print_json(session, document);
  }
  session.out << fmt::format("{}  {}  vocabulary {}\n\n",
                             session.terminal.accent("fathom data prepare"),
                             request.output.string(), report.vocabulary)
              << splits_table(session, report.splits)
              << fmt::format("\n  tokenizer {}, tokens {} ({}/s)\n",
                             format_seconds(report.seconds_tokenizer),
                             format_seconds(report.seconds_encode), format_bytes(speed));
}

struct InfoOptions {
  std::string folder;
  bool verify = false;
  bool json = false;
};

void run_info(Session& session, const InfoOptions& options) {
  const TokenSet set(options.folder);
  if (options.verify) set.verify();
  const Tokenizer& tokenizer = set.tokenizer();
  const TokenSetOrigin& origin = set.origin();
  if (options.json) {
    Json document = json_document("data_info");
    document["hash"] = set.hash().hex();
    document["verified"] = options.verify;
    document["sources"] = Json::array();
    for (const std::string& source : origin.sources) {
      document["sources"].push_back(replace_invalid_utf8(source));
    }
    document["documents"] = origin.documents;
    document["split_rule"] = {
        {"valid", origin.split.valid}, {"test", origin.split.test}, {"seed", origin.split.seed}};
    document["tokenizer"] = {{"kind", tokenizer.kind()},
                             {"vocabulary", tokenizer.vocabulary()},
                             {"end_of_document", tokenizer.end_of_document()},
                             {"hash", tokenizer.hash().hex()}};
    for (const Split split : kSplits) {
      document["splits"][to_string(split)] = split_json(set.file(split).info());
    }
    return print_json(session, document);
  }
  session.out << fmt::format("{}  {}\n\n", session.terminal.accent("fathom data info"),
                             options.folder)
              << splits_table(session, set.infos());
  session.out << fmt::format("\n  tokenizer  {}, vocabulary {}, end of document {}, hash {}\n",
                             tokenizer.kind(), tokenizer.vocabulary(), tokenizer.end_of_document(),
                             tokenizer.hash().hex().substr(0, 12));
  for (const std::string& source : origin.sources) {
    session.out << fmt::format("  source     {}\n", replace_invalid_utf8(source));
  }
  session.out << fmt::format("  documents  {}; valid {}, test {}, seed {}\n  hash       {}{}\n",
                             origin.documents, origin.split.valid, origin.split.test,
                             origin.split.seed, set.hash().hex(),
                             options.verify ? "  (all tokens read and verified)" : "");
}

struct SampleOptions {
  std::string folder, split = "train";
  std::uint64_t tokens = 64, count = 3, seed = 0;
  bool pieces = false;
  bool json = false;
};

/// The ids of a window with a bar between tokens, or as plain text.
std::string window_text(const Tokenizer& tokenizer, std::span<const TokenId> ids, bool pieces) {
  std::string text;
  for (const TokenId id : ids) {
    if (pieces && !text.empty()) text += "│";
    text += id == tokenizer.end_of_document() ? "[end]\n" : tokenizer.bytes_of(id);
  }
  return replace_invalid_utf8(text);
}

void run_sample(Session& session, const SampleOptions& options) {
  const TokenSet set(options.folder);
  const auto split = parse_enum<Split>(options.split, "--split");
  const TokenFile& file = set.file(split);
  const BatchSampler sampler(file.size(), {options.tokens, 1, options.seed}, file.name());
  Json document = json_document("data_sample");
  document["split"] = options.split;
  document["samples"] = Json::array();
  std::vector<TokenId> ids(options.tokens);
  for (std::uint64_t i = 0; i < options.count; ++i) {
    const std::uint64_t position = sampler.position(i, 0);
    file.copy(position, ids);
    const std::string text = window_text(set.tokenizer(), ids, options.pieces && !options.json);
    if (options.json) {
      document["samples"].push_back({{"position", position}, {"ids", ids}, {"text", text}});
      continue;
    }
    session.out << session.terminal.accent(fmt::format("{} token {}", options.split, position))
                << "\n"
                << session.terminal.plain(text) << (text.ends_with('\n') ? "\n" : "\n\n");
  }
  if (options.json) print_json(session, document);
}

void add_prepare_options(CommandTree& tree, Command& command, PrepareOptions& options) {
  command
      .add_option("CORPUS,--corpus", options.corpus,
                  "A file, a folder, - for standard input, or sotu")
      ->required();
  command.add_option("-o,--output", options.output, "Folder to write")
      ->required()
      ->type_name("DIR");
  tree.restrict(command
                    .add_option("--tokenizer", options.tokenizer,
                                "How to split text into tokens (default bpe)")
                    ->type_name("KIND"),
                tokenizer_kinds());
  command.add_option("--vocab", options.vocabulary, "Vocabulary of a bpe tokenizer (default 2000)")
      ->type_name("N");
  command
      .add_option("--tokenizer-sample", options.sample,
                  "Maximum bytes of training text that bpe learns from (default 32M)")
      ->type_name("N");
  command
      .add_option("--tokenizer-from", options.tokenizer_from,
                  "Use the tokenizer of another prepared corpus")
      ->type_name("DIR");
  tree.restrict(
      command
          .add_option("--documents", options.documents,
                      "What a document is (default auto: a line of JSONL; a file of a "
                      "folder; else an article after '= Title ='; else a block of 16 KiB)")
          ->type_name("RULE"),
      {"auto", "file", "titles", "paragraphs", "lines", "blocks", "jsonl"});
  command
      .add_option("--document-separator", options.separator,
                  "A line equal to this text ends a document and is dropped")
      ->type_name("LINE");
  command
      .add_option("--text-field", options.text_field,
                  "JSONL: the field that holds the text (default text)")
      ->type_name("NAME");
  command.add_option("--valid", options.valid, "Share of documents for validation (default 5%)")
      ->type_name("SHARE");
  command.add_option("--test", options.test, "Share of documents for testing (default 5%)")
      ->type_name("SHARE");
  command.add_option("--valid-from", options.valid_from, "Take validation text from here instead")
      ->type_name("CORPUS");
  command.add_option("--test-from", options.test_from, "Take test text from here instead")
      ->type_name("CORPUS");
  command.add_option("--seed", options.seed, "Seed of the split (default 0)")->type_name("N");
  command.add_option("--threads", options.threads, "Encoding threads (default all cores)")
      ->type_name("N")
      ->positive();
  command.add_flag("--json", options.json, "Print JSON");
}

void add_prepare(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<PrepareOptions>();
  Command& command = tree.add(
      parent, "prepare",
      {"Turn a corpus into token files",
       "Reads plain text or JSONL, also compressed (.gz, .xz or .zst, recognised by content), "
       "splits it by document into train, valid and test, and writes memory-mapped token files. "
       "Inputs may be larger than memory. The same text and options give the same files on any "
       "machine.",
       {{"data prepare sotu -o tokens/", "the default corpus, bpe with a vocabulary of 2000"},
        {"data prepare wiki.txt.zst -o tokens/ --vocab 8K --valid 1% --test 1%",
         "a compressed file, articles split at '= Title =' lines"},
        {"data prepare dump.jsonl.gz -o tokens/ --text-field body", "a document per line of JSON"},
        {"data prepare books/ -o tokens/ --tokenizer bytes", "a folder, one document per file"},
        {"data prepare - -o tokens/ --document-separator '<|end|>' < dump.txt",
         "a stream, documents ended by a line"}}},
      [options](Session& session) { run_prepare(session, *options); });
  add_prepare_options(tree, command, *options);
}

void add_info(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<InfoOptions>();
  Command& command =
      tree.add(parent, "info",
               {"Show what a prepared corpus holds",
                "",
                {{"data info tokens/", "tokens, documents and bytes per token of every split"},
                 {"data info tokens/ --verify", "read everything and check the hashes"}}},
               [options](Session& session) { run_info(session, *options); });
  command.add_option("DIR", options->folder, "A folder made by 'fathom data prepare'")->required();
  command.add_flag("--verify", options->verify, "Read all tokens and compare their hashes");
  command.add_flag("--json", options->json, "Print JSON");
}

void add_sample(CommandTree& tree, Command& parent) {
  auto options = std::make_shared<SampleOptions>();
  Command& command = tree.add(
      parent, "sample",
      {"Print windows of tokens as text, as training reads them",
       "",
       {{"data sample tokens/", "three windows of 64 tokens"},
        {"data sample tokens/ --split valid --tokens 200 --pieces", "show where tokens end"}}},
      [options](Session& session) { run_sample(session, *options); });
  command.add_option("DIR", options->folder, "A folder made by 'fathom data prepare'")->required();
  tree.restrict(command.add_option("--split", options->split, "Which split (default train)"),
                list_names<Split>());
  command.add_option("--tokens", options->tokens, "Tokens per window (default 64)")
      ->type_name("N")
      ->check(Range{1, 1 << 20});
  command.add_option("--count", options->count, "Windows (default 3)")
      ->type_name("N")
      ->check(Range{1, 1 << 20});
  command.add_option("--seed", options->seed, "The sampler's seed (default 0)")->type_name("N");
  command.add_flag("--pieces", options->pieces, "Put a bar between tokens");
  command.add_flag("--json", options->json, "Print JSON");
}

}  // namespace

void add_data_command(CommandTree& tree) {
  Command& command = tree.add(tree.root(), "data",
                              {"Prepare and inspect corpora",
                               "",
                               {{"data prepare sotu -o tokens/", "tokens of the default corpus"},
                                {"data info tokens/", "what they hold"},
                                {"data sample tokens/", "what training reads"}}},
                              nullptr);
  add_prepare(tree, command);
  add_info(tree, command);
  add_sample(tree, command);
}

}  // namespace fathom
