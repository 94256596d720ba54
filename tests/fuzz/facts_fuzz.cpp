// Any bytes either read as the small JSON files of a study, its corpus and its runs (corpus.json,
// tokenizer.json, failed.json) or throw an error of one line.
#include "data/token_set.h"
#include "fuzz_input.h"
#include "scratch_folder.h"
#include "study/run_state.h"
#include "study/token_store.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fathom;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static const ScratchFolder folder;
  for (const char* name : {"corpus.json", "tokenizer.json", "runs/0/failed.json"}) {
    folder.write(name, text);
  }
  const study::StudyFolder study(folder.path());
  read_or_refuse([&] { study::read_corpus_facts(study); });
  read_or_refuse([&] { study::read_run_state(study.run("0")); });
  read_or_refuse([&] { data::TokenSet tokens(folder.path()); });
  read_or_refuse([&] { data::load_tokenizer(folder.path())->encode("some text"); });
  return 0;
}
