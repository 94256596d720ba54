// Fathom's own runs and model folders as checkpoints, so that they are probed like all others.
#pragma once

#include <filesystem>

#include "pretrained/checkpoint.h"

namespace fathom::probe {

/// A run, a model folder, or whatever pretrained/checkpoint.h opens. ConfigError for runs whose
/// layers are not attention and then feed-forward with softmax and a residual stream.
pretrained::Checkpoint open_model(const std::filesystem::path& path);

}  // namespace fathom::probe
