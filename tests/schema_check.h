// Holds documents against a schema of web/schema.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace fathom::report {

class SchemaFile {
 public:
  explicit SchemaFile(const std::string& name);

  const nlohmann::json& text() const { return text_; }

  /// Complaints with their places; none when the document is valid.
  std::vector<std::string> complaints(const nlohmann::json& document) const;

  /// Properties of the schema that the document does not hold anywhere.
  std::set<std::string> not_in(const nlohmann::json& document) const;

 private:
  void visit(const nlohmann::json& part, const nlohmann::json& value, const std::string& name,
             std::set<std::string>& missing) const;

  nlohmann::json text_;
};

}  // namespace fathom::report
