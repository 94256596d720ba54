// The law a study found, as a file and as a Law the planner can use.
//
// The file (JSON, schema "fathom.law.v1") holds the exponential law (of the surface where it
// determines one, else through the crossings), the joint law with its bootstrap replicates, and the
// ranges of the runs. The optimum is the joint law's least loss where there is one, else the
// exponential law's crossing. Its interval is 95 % of the replicates, or two standard errors.
// Beyond the runs' sizes, tokens and depths every answer is extrapolated and says so; a law that
// its runs hardly determine has objections, and the planner does not plan with it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "fits/study_fit.h"
#include "laws/levine.h"

namespace fathom::fits {

/// The name under which a study's folder keeps its law.
inline constexpr const char* kLawFile = "law.json";

struct StudyLawData {
  std::string source;  // where it came from, for messages
  std::size_t runs = 0;
  Interval params;
  Interval layers;
  double block_coefficient = 12;
  TokenRule token_rule;
  std::optional<Interval> tokens;  // of the runs; files of older versions lack it
  std::optional<laws::LevineFit> exponential;
  std::optional<JointFit> joint;
};

StudyLawData study_law_data(const StudyFit& fit);
/// The file's text; ConfigError when there is no law to save.
std::string study_law_text(const StudyLawData& data);
/// DataError when the text is not such a file.
StudyLawData parse_study_law(const std::string& text, const std::string& origin);

class StudyLaw : public laws::Law {
 public:
  explicit StudyLaw(StudyLawData data);
  const laws::LawInfo& info() const override { return info_; }
  /// At the study's own training length.
  laws::Optimum optimum(const laws::Budget& budget) const override;
  laws::Optimum optimum_after(const laws::Budget& budget, double tokens) const override;
  std::optional<double> loss(double layers, double width, double parameters,
                             double tokens) const override;
  /// Its optimum spans more than a factor of four, an exponent may be zero, its runs were more than
  /// ten times shorter or longer, or its coefficients have no run to spare.
  std::vector<std::string> objections(const laws::Budget& budget, double tokens) const override;

 private:
  double own_count(double layers, double width) const;

  StudyLawData data_;
  laws::LawInfo info_;
};

/// From a law file, or from the one in a study's folder.
laws::LawPointer load_study_law(const std::filesystem::path& path);

}  // namespace fathom::fits
