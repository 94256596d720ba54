#include "model/model_spec.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "scratch_folder.h"

namespace fathom::model {
namespace {

TEST(ModelSpec, ADropoutThatIsOneInSinglePrecisionIsRefused) {
  ModelSpec spec;
  spec.dropout = 0.999;
  validate(spec);
  spec.dropout = 1 - 1e-12;
  EXPECT_EQ(error_of<ConfigError>([&] { validate(spec); }), "model: dropout must lie in [0, 1)");
}

}  // namespace
}  // namespace fathom::model
