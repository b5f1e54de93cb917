#include "tar/tar_labels.h"

#include <cmath>
#include <cstdint>
#include <optional>

#include "numpy/npy_header.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/json_reader.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::optional<float> NumberIn(const JsonElement& value) {
  if (value.has_bool_value()) return value.bool_value() ? 1.0f : 0.0f;
  if (!value.has_number_value()) return std::nullopt;
  const auto number = static_cast<float>(value.number_value());
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

// Returns nothing unless the value is a number or a list of at least one number.
std::vector<float> NumbersIn(const JsonElement& value) {
  if (const std::optional<float> number = NumberIn(value)) return {*number};
  std::vector<float> numbers;
  for (const JsonElement& item : value.list_value().values()) {
    const std::optional<float> number = NumberIn(item);
    if (!number) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

}  // namespace

std::vector<float> JsonLabels(const std::string& text, const std::string& file,
                              const std::string& name) {
  const auto fail = [&](const char* what) {
    throw Error(ErrorCode::kData, {file},
                Join(EscapeControl(name), " ", what,
                     "; labels must be a number or a list of numbers, or the member 'label' of an "
                     "object must be that"));
  };
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool is_object = first != std::string::npos && text[first] == '{';
  // The reader reads objects.
  const std::optional<JsonObject> json =
      ParseJsonObject(is_object ? text : "{\"label\":" + text + "}");
  if (!json) {
    if (is_object) return {};
    fail("is not a JSON file");
  }
  const JsonElement* const value = JsonField(*json, "label");
  if (value == nullptr) return {};
  std::vector<float> numbers = NumbersIn(*value);
  if (numbers.empty()) fail("has a label that is not a number");
  return numbers;
}

std::vector<float> NpyLabels(std::string_view bytes, const std::string& file,
                             const std::string& name) {
  const auto fail = [&](const std::string& what) {
    throw Error(ErrorCode::kData, {file}, Join(EscapeControl(name), " ", what));
  };
  const NpyHeader header = ParseNpyHeader(bytes, file, name);
  if (header.fortran_order && header.dims.size() > 1) {
    fail("has its numbers in Fortran's order; save it with numpy.ascontiguousarray");
  }
  bytes.remove_prefix(static_cast<size_t>(header.data_offset));
  if (header.count < 1 ||
      static_cast<uint64_t>(header.count) * static_cast<uint64_t>(header.bytes) != bytes.size()) {
    fail(Join("has ", bytes.size(), " bytes for ", header.count, " numbers of ", header.bytes,
              header.bytes == 1 ? " byte" : " bytes"));
  }
  std::vector<float> numbers(static_cast<size_t>(header.count));
  ConvertNpyElements(header, bytes.data(), header.count, numbers.data());
  for (const float number : numbers) {
    if (!std::isfinite(number)) fail("has a label that is not finite");
  }
  return numbers;
}

}  // namespace trainer
