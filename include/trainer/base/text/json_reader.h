#pragma once
// Reads JSON files that the program wrote earlier.

#include <google/protobuf/struct.pb.h>

#include <optional>
#include <string>

namespace trainer {

using JsonObject = google::protobuf::Struct;
using JsonElement = google::protobuf::Value;

// Empty if `text` is not one JSON object.
std::optional<JsonObject> ParseJsonObject(const std::string& text);

// A member of the object. Null if it is missing.
const JsonElement* JsonField(const JsonObject& json, const std::string& name);
// A member that is a number. `fallback` if it is missing or has another type.
double JsonNumber(const JsonObject& json, const std::string& name, double fallback = 0);
// A member that is a string. "" if it is missing or has another type.
std::string JsonText(const JsonObject& json, const std::string& name);

}  // namespace trainer
