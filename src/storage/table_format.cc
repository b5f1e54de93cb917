#include "trainer/storage/table_format.h"

#include <cmath>
#include <optional>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/atomic_file.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr uint64_t kMostFormatBytes = uint64_t{64} << 20;
constexpr std::pair<MissingValue, const char*> kMissingNames[] = {{MissingValue::kRefuse, "refuse"},
                                                                  {MissingValue::kMean, "mean"},
                                                                  {MissingValue::kZero, "zero"},
                                                                  {MissingValue::kSkip, "skip"}};

Json ToJson(const std::vector<TableColumn>& columns) {
  Json list = Json::Array();
  for (const TableColumn& column : columns) {
    Json one = Json::Object().Set("name", column.name);
    if (column.is_categorical) {
      Json categories = Json::Array();
      for (const std::string& category : column.categories) categories.Push(category);
      one.Set("categories", std::move(categories));
    } else {
      one.Set("subtract", column.subtract)
          .Set("multiply", column.multiply)
          .Set("fill", column.fill);
    }
    list.Push(std::move(one));
  }
  return list;
}

// Returns the elements of an array of the object; none if it is not there.
std::vector<JsonElement> ElementsOf(const JsonObject& json, const std::string& name) {
  const JsonElement* const list = JsonField(json, name);
  if (list == nullptr || !list->has_list_value()) return {};
  return {list->list_value().values().begin(), list->list_value().values().end()};
}

std::vector<TableColumn> ColumnsOf(const JsonObject& json, const std::string& name) {
  std::vector<TableColumn> columns;
  for (const JsonElement& element : ElementsOf(json, name)) {
    const JsonObject& one = element.struct_value();
    TableColumn column{.name = JsonText(one, "name"),
                       .is_categorical = JsonField(one, "categories") != nullptr,
                       .subtract = JsonNumber(one, "subtract"),
                       .multiply = JsonNumber(one, "multiply", 1),
                       .fill = JsonNumber(one, "fill"),
                       .categories = {}};
    for (const JsonElement& category : ElementsOf(one, "categories")) {
      column.categories.push_back(category.string_value());
    }
    columns.push_back(std::move(column));
  }
  return columns;
}

}  // namespace

int64_t TableFormat::InputCount() const {
  int64_t count = 0;
  for (const TableColumn& column : inputs) {
    count += column.is_categorical ? static_cast<int64_t>(column.categories.size()) : 1;
  }
  return count;
}

std::string TableFormatPath(const std::string& set) {
  if (set.ends_with(".json")) return set;
  return set.substr(0, set.find_last_not_of('/') + 1) + ".columns.json";
}

void WriteTableFormat(const std::string& path, const TableFormat& format) {
  const char* missing = "";
  for (const auto& [value, name] : kMissingNames) {
    if (value == format.missing) missing = name;
  }
  Json ignored = Json::Array();
  for (const std::string& name : format.ignored) ignored.Push(name);
  WriteWhole(path, Json::Object()
                       .Set("separator", std::string(1, format.separator))
                       .Set("header", format.has_header)
                       .Set("missing", missing)
                       .Set("inputs", ToJson(format.inputs))
                       .Set("labels", ToJson(format.labels))
                       .Set("ignored", std::move(ignored))
                       .ToString());
}

TableFormat ReadTableFormat(const std::string& set) {
  const std::string path = TableFormatPath(set);
  if (IsMissing(path)) {
    throw Error(ErrorCode::kNoInput, {path},
                Join("this file is missing, which 'trainer dataset csv' writes next to a set; '",
                     set, "' is not such a set, or was moved without it"));
  }
  const std::optional<JsonObject> json = ParseJsonObject(ReadFile(path, kMostFormatBytes));
  TableFormat format;
  if (json) {
    const std::string separator = JsonText(*json, "separator"),
                      missing = JsonText(*json, "missing");
    if (!separator.empty()) format.separator = separator[0];
    const JsonElement* const header = JsonField(*json, "header");
    format.has_header = header == nullptr || header->bool_value();
    for (const auto& [value, name] : kMissingNames) {
      if (missing == name) format.missing = value;
    }
    format.inputs = ColumnsOf(*json, "inputs");
    format.labels = ColumnsOf(*json, "labels");
    for (const JsonElement& name : ElementsOf(*json, "ignored")) {
      format.ignored.push_back(name.string_value());
    }
  }
  if (!format.inputs.empty()) return format;
  throw Error(ErrorCode::kData, {path},
              "the file does not describe the columns of a table; make the set again with 'trainer "
              "dataset csv'");
}

char ParseSeparator(const std::string& text) {
  if (text == "tab" || text == "\\t") return '\t';
  if (text == "space") return ' ';
  const bool fits = text.size() == 1 && static_cast<unsigned char>(text[0]) < 0x80 &&
                    text.find_first_of("\"\r\n.-") == std::string::npos;
  if (fits) return text[0];
  throw Error(ErrorCode::kUsage,
              Join("--separator=", EscapeControl(text),
                   ": give one character, such as ',' or ';', or tab, or space"));
}

}  // namespace trainer
