// Which tensors of a Hugging Face layout make up which parameter of Fathom.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/hf_layout.h"

namespace fathom::model {

/// One foreign tensor that fills rows [first_row, first_row + rows) of a parameter.
struct HfPiece {
  std::string name;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  bool transposed = false;  // stored [in, out], as GPT-2's Conv1D does
};

/// A parameter of Fathom, [rows, cols], and the pieces that hold it.
struct HfParameter {
  std::string name;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  bool vector = false;  // one-dimensional in the foreign file
  std::vector<HfPiece> pieces;
};

/// Every parameter of the model in the layout, in the order files list them.
std::vector<HfParameter> hf_parameters(const ModelSpec& spec, HfFormat format);

}  // namespace fathom::model
