#include "trainer/base/text/json_reader.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cmath>

namespace trainer {

std::optional<JsonObject> ParseJsonObject(const std::string& text) {
  JsonObject json;
  if (!google::protobuf::util::JsonStringToMessage(text, &json).ok()) return std::nullopt;
  return json;
}

const JsonElement* JsonField(const JsonObject& json, const std::string& name) {
  const auto found = json.fields().find(name);
  return found == json.fields().end() ? nullptr : &found->second;
}

double JsonNumber(const JsonObject& json, const std::string& name, double fallback) {
  const JsonElement* const value = JsonField(json, name);
  return value != nullptr && value->has_number_value() ? value->number_value() : fallback;
}

int64_t JsonInteger(const JsonElement& value) {
  constexpr double kMost = 9007199254740992;  // 2^53, above which a double has gaps
  const double number = value.number_value();
  return std::isnan(number) ? 0 : std::llround(std::clamp(number, -kMost, kMost));
}

int64_t JsonInteger(const JsonObject& json, const std::string& name, int64_t fallback) {
  const JsonElement* const value = JsonField(json, name);
  return value != nullptr && value->has_number_value() ? JsonInteger(*value) : fallback;
}

std::string JsonText(const JsonObject& json, const std::string& name) {
  const JsonElement* const value = JsonField(json, name);
  return value == nullptr ? "" : value->string_value();
}

bool JsonFlag(const JsonObject& json, const std::string& name) {
  const JsonElement* const value = JsonField(json, name);
  return value != nullptr && value->bool_value();
}

std::vector<std::string> JsonTexts(const JsonObject& json, const std::string& name) {
  std::vector<std::string> texts;
  const JsonElement* const list = JsonField(json, name);
  if (list == nullptr) return texts;
  for (const JsonElement& text : list->list_value().values()) texts.push_back(text.string_value());
  return texts;
}

std::vector<JsonObject> JsonObjects(const JsonObject& json, const std::string& name) {
  std::vector<JsonObject> objects;
  const JsonElement* const list = JsonField(json, name);
  if (list == nullptr) return objects;
  for (const JsonElement& item : list->list_value().values()) {
    objects.push_back(item.struct_value());
  }
  return objects;
}

}  // namespace trainer
