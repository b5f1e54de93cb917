#pragma once
// Reads JSON files that the program wrote earlier.

#include <google/protobuf/struct.pb.h>

#include <optional>
#include <string>

namespace trainer {

using JsonObject = google::protobuf::Struct;
using JsonElement = google::protobuf::Value;

// Returns the object, or nothing if `text` is not one JSON object.
std::optional<JsonObject> ParseJsonObject(const std::string& text);

// Returns a member of the object, or null if it is missing.
const JsonElement* JsonField(const JsonObject& json, const std::string& name);
// Returns a member that is a number, or `fallback` if it is missing or has another type.
double JsonNumber(const JsonObject& json, const std::string& name, double fallback = 0);
// Returns a member that is a string, or "" if it is missing or has another type.
std::string JsonText(const JsonObject& json, const std::string& name);

}  // namespace trainer
