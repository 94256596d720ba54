// What `fathom shape` shows.
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "laws/law.h"
#include "shape/catalogue.h"
#include "shape/flops.h"
#include "shape/hardware.h"
#include "shape/memory.h"
#include "shape/parameters.h"
#include "shape/timing.h"

namespace fathom {

struct ShapeSubject {
  std::string name;
  Shape shape;
  const CatalogueEntry* published = nullptr;
};

/// Where a law would have put the depth at this shape's own 12 L d^2.
struct LawPlace {
  laws::LawInfo info;
  laws::Optimum optimum;
  double layers_deeper;  // of the shape than the law
  laws::Evidence evidence;
};

struct ShapeReport {
  ShapeSubject subject;
  ParameterCount parameters;
  FlopCount flops;
  TrainingMemory memory;
  double kv_bytes_per_token;
  StepTime step;
  DecodeTime decode;
  Hardware hardware;
  std::int64_t step_tokens;
  double transition_width;  // Levine's, at this depth
  std::vector<LawPlace> places;
  std::vector<const CatalogueEntry*> neighbours;
};

ShapeReport make_shape_report(ShapeSubject subject, const Hardware& hardware,
                              std::int64_t step_tokens);
void print_shape_text(Session& session, const ShapeReport& report);
void print_shape_json(Session& session, const ShapeReport& report);
void print_catalogue(Session& session, const std::vector<const CatalogueEntry*>& entries,
                     bool json);

}  // namespace fathom
