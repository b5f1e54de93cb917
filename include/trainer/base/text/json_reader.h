#pragma once
// Reads JSON files that the program wrote earlier.

#include <google/protobuf/struct.pb.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace trainer {

using JsonObject = google::protobuf::Struct;
using JsonElement = google::protobuf::Value;

// Returns the object, or nothing if `text` is not one JSON object.
std::optional<JsonObject> ParseJsonObject(const std::string& text);

// Returns a member of the object, or null if it is missing.
const JsonElement* JsonField(const JsonObject& json, const std::string& name);
// Returns a member that is a number, or `fallback` if it is missing or has another type.
double JsonNumber(const JsonObject& json, const std::string& name, double fallback = 0);
// Returns a number as a whole number from -2^53 to 2^53, the nearest one. Returns 0 if it has
// another type.
int64_t JsonInteger(const JsonElement& value);
// Returns a member in the same way, or `fallback` if it is missing or has another type.
int64_t JsonInteger(const JsonObject& json, const std::string& name, int64_t fallback = 0);
// Returns a member that is a string, or "" if it is missing or has another type.
std::string JsonText(const JsonObject& json, const std::string& name);
// Returns a member that is a boolean, or false if it is missing or has another type.
bool JsonFlag(const JsonObject& json, const std::string& name);
// Returns a member that is a list of strings; an empty list if it is missing or has another type.
std::vector<std::string> JsonTexts(const JsonObject& json, const std::string& name);
// Returns the objects in a list, or no objects if the field is missing.
std::vector<JsonObject> JsonObjects(const JsonObject& json, const std::string& name);

}  // namespace trainer
