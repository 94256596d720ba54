// Notices a run that has gone wrong: a loss or gradient that is not finite, or a running mean of
// the loss far above where training began.
//
//   mean += 0.1 (loss - mean);   diverged when mean > 1.5 first + 1
#pragma once

#include <string>

#include "train/trainer.h"

namespace fathom::train {

class DivergenceWatch {
 public:
  /// The reason, or "" while all is well.
  std::string look(const StepResult& result);

  /// For checkpoints: a resumed run keeps watching with the same mean.
  std::string save() const;
  void load(const std::string& text);

 private:
  double first_ = 0, mean_ = 0;
};

}  // namespace fathom::train
