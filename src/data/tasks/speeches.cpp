// Classification of real text: passages of the default corpus in bytes, and a query token at the
// end; only it has a target.
//
//   era            context - 1 bytes of one speech; from which of four eras is it: before 1850, to
//                  1899, to 1949, later? All are equally likely.
//   same-speaker   (context - 2) / 2 bytes of one speech, a separator, as many of another; are they
//                  by the same speaker (1) or by two whose speeches lie at most 8 years apart (0)?
//
// Held-out examples come from speeches that training never reads (speech_library.h). Group: the
// label. Tokens: 0 to 255 bytes, 256 the query token, 257 the separator.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/counts.h"
#include "data/tasks/generators.h"
#include "data/tasks/speech_library.h"

namespace fathom::data {
namespace {

constexpr TokenId kAsk = 256;
constexpr TokenId kBetween = 257;
constexpr int kYearsApart = 8;

using SpeechList = std::vector<const Speech*>;

class SpeechTask : public Task {
 public:
  SpeechTask(TaskSpec spec, std::int64_t context, std::shared_ptr<const SpeechLibrary> library)
      : Task(std::move(spec), context), library_(std::move(library)) {}

 protected:
  SpeechList list(ExampleUse use) const {
    SpeechList chosen;
    for (const Speech& speech : library_->speeches) {
      const bool held_out = use == ExampleUse::held_out;
      if (speech.held_out == held_out) chosen.push_back(&speech);
    }
    return chosen;
  }
  static const Speech& pick(Draws& draws, const SpeechList& from) {
    return *from[as_size(draws.below(std::ssize(from)))];
  }
  /// A passage from anywhere in the speech; shorter ones than asked for stay padded.
  static void copy_passage(Draws& draws, const Speech& speech, std::span<TokenId> place) {
    const std::int64_t spare = std::ssize(speech.text) - std::ssize(place);
    const std::size_t start = spare > 0 ? as_size(draws.below(spare + 1)) : 0;
    for (std::size_t i = 0; i < std::min(place.size(), speech.text.size()); ++i) {
      place[i] = static_cast<unsigned char>(speech.text[start + i]);
    }
  }

 private:
  TokenId padding() const override { return ' '; }

  std::shared_ptr<const SpeechLibrary> library_;
};

class Era : public SpeechTask {
 public:
  Era(TaskSpec spec, std::int64_t context, std::shared_ptr<const SpeechLibrary> library)
      : SpeechTask(std::move(spec), context, std::move(library)) {
    for (const ExampleUse use : {ExampleUse::training, ExampleUse::held_out}) {
      for (const Speech* speech : list(use)) by_era(use)[era_of(*speech)].push_back(speech);
    }
  }
  std::int64_t vocabulary() const override { return kAsk + 1; }
  std::string group_name() const override { return "era"; }

 private:
  using Eras = std::array<SpeechList, kEraEnds.size() + 1>;
  Eras& by_era(ExampleUse use) { return use == ExampleUse::training ? training_ : held_out_; }

  std::int64_t make(Draws& draws, ExampleUse use, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const auto era = draws.below(std::ssize(kEraEnds) + 1);
    const Eras& eras = use == ExampleUse::training ? training_ : held_out_;
    copy_passage(draws, pick(draws, eras[as_size(era)]), inputs.first(inputs.size() - 1));
    inputs.back() = kAsk;
    targets.back() = static_cast<TokenId>(era);
    return era;
  }

  Eras training_, held_out_;
};

class SameSpeaker : public SpeechTask {
 public:
  SameSpeaker(TaskSpec spec, std::int64_t context, std::shared_ptr<const SpeechLibrary> library)
      : SpeechTask(std::move(spec), context, std::move(library)) {
    training_ = pairs(list(ExampleUse::training));
    held_out_ = pairs(list(ExampleUse::held_out));
  }
  std::int64_t vocabulary() const override { return kBetween + 1; }
  std::string group_name() const override { return "same"; }

 private:
  /// A speech, others of its speaker, and others of the time.
  struct Pairing {
    const Speech* speech;
    SpeechList same, other;
  };

  static std::vector<Pairing> pairs(const SpeechList& speeches) {
    std::vector<Pairing> pairings;
    for (const Speech* speech : speeches) {
      Pairing pairing{speech, {}, {}};
      for (const Speech* each : speeches) {
        const bool near = std::abs(each->year - speech->year) <= kYearsApart;
        if (each == speech || !near) continue;
        (each->speaker == speech->speaker ? pairing.same : pairing.other).push_back(each);
      }
      if (!pairing.same.empty() && !pairing.other.empty()) pairings.push_back(std::move(pairing));
    }
    return pairings;
  }

  std::int64_t make(Draws& draws, ExampleUse use, std::span<TokenId> inputs,
                    std::span<TokenId> targets) const override {
    const std::vector<Pairing>& from = use == ExampleUse::training ? training_ : held_out_;
    const Pairing& pairing = from[as_size(draws.below(std::ssize(from)))];
    const bool same = draws.below(2) == 1;
    const std::size_t half = (inputs.size() - 2) / 2;
    copy_passage(draws, *pairing.speech, inputs.first(half));
    inputs[half] = kBetween;
    copy_passage(draws, pick(draws, same ? pairing.same : pairing.other),
                 inputs.subspan(half + 1, half));
    inputs.back() = kAsk;
    targets.back() = same ? 1 : 0;
    return targets.back();
  }

  std::vector<Pairing> training_, held_out_;
};

/// The spec names the text it was made for: a different text is a different task.
std::shared_ptr<const SpeechLibrary> speeches_of(TaskSpec& spec, std::int64_t context) {
  require_context(spec, context, 16);
  auto library = default_speeches();
  const std::string hash = library->hash.hex();
  if (spec.text.empty()) spec.text = hash;
  require_task(spec.text == hash,
               fmt::format("task {} was made for the speeches {}, those installed are {}; leave "
                           "'text' out to take them",
                           name_of(spec.kind), spec.text, hash));
  return library;
}

}  // namespace

std::unique_ptr<const Task> make_era(TaskSpec spec, std::int64_t context) {
  auto library = speeches_of(spec, context);
  require_every_era(*library);
  return std::make_unique<Era>(std::move(spec), context, std::move(library));
}

std::unique_ptr<const Task> make_same_speaker(TaskSpec spec, std::int64_t context) {
  auto library = speeches_of(spec, context);
  return std::make_unique<SameSpeaker>(std::move(spec), context, std::move(library));
}

}  // namespace fathom::data
