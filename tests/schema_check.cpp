#include "schema_check.h"

#include <fstream>
#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace fathom::report {
namespace {

using Names = std::set<std::string>;

void collect(const nlohmann::json& schema, const std::string& name, Names& missing) {
  if (schema.contains("properties")) {
    for (const auto& [key, field] : schema["properties"].items()) {
      missing.insert(name + "." + key);
    }
  }
  if (!schema.contains("definitions")) return;
  for (const auto& [key, definition] : schema["definitions"].items()) {
    collect(definition, key, missing);
  }
}

}  // namespace

SchemaFile::SchemaFile(const std::string& name)
    : text_(nlohmann::json::parse(std::ifstream(FATHOM_SOURCE_DIR "/web/schema/" + name))) {}

std::vector<std::string> SchemaFile::complaints(const nlohmann::json& document) const {
  const valijson::adapters::NlohmannJsonAdapter adapter(text_);
  valijson::Schema schema;
  valijson::SchemaParser().populateSchema(adapter, schema);
  valijson::ValidationResults results;
  const valijson::adapters::NlohmannJsonAdapter target(document);
  valijson::Validator(valijson::Validator::kStrongTypes).validate(schema, target, &results);
  std::vector<std::string> all;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    std::string place;
    for (const std::string& part : error.context) place += part;
    all.push_back(place + ": " + error.description);
  }
  return all;
}

std::set<std::string> SchemaFile::not_in(const nlohmann::json& document) const {
  std::set<std::string> missing;
  collect(text_, "document", missing);
  visit(text_, document, "document", missing);
  return missing;
}

void SchemaFile::visit(const nlohmann::json& part, const nlohmann::json& value,
                       const std::string& name, Names& missing) const {
  if (part.contains("$ref")) {
    const std::string target = part["$ref"].get<std::string>();
    const std::string definition = target.substr(target.rfind('/') + 1);
    return visit(text_.at("definitions").at(definition), value, definition, missing);
  }
  if (part.contains("oneOf") && !value.is_null()) {
    for (const nlohmann::json& choice : part["oneOf"]) visit(choice, value, name, missing);
  }
  if (value.is_array() && part.contains("items")) {
    for (const nlohmann::json& item : value) visit(part["items"], item, name, missing);
  }
  if (!value.is_object()) return;
  for (const auto& [key, field] : value.items()) {
    const bool listed = part.contains("properties") && part["properties"].contains(key);
    missing.erase(name + "." + key);
    if (listed) {
      visit(part["properties"][key], field, key, missing);
    } else if (part.contains("additionalProperties")) {
      visit(part["additionalProperties"], field, key, missing);
    }
  }
}

}  // namespace fathom::report
