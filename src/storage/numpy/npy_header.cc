#include "numpy/npy_header.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "trainer/base/error/error.h"
#include "trainer/base/random/half.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);

[[noreturn]] void RefuseNpy(const std::string& path, const std::string& name,
                            const std::string& why) {
  throw Error(ErrorCode::kData, {path},
              Join(name.empty() ? "" : Join("array '", EscapeControl(name), "' "), why));
}

// Reads the Python dictionary of a header: {'descr': '<f4', 'fortran_order': False, 'shape': (3,)}.
class NpyDictionary {
 public:
  explicit NpyDictionary(std::string_view text) : text_(text) {}

  // Returns the text after "'key':", without leading blanks; "" without the key.
  std::string_view After(std::string_view key) const {
    for (const char quote : {'\'', '"'}) {
      const std::string quoted = quote + std::string(key) + quote;
      const size_t at = text_.find(quoted);
      if (at == std::string_view::npos) continue;
      const std::string_view rest = Trimmed(text_.substr(at + quoted.size()));
      if (rest.starts_with(':')) return Trimmed(rest.substr(1));
    }
    return "";
  }

  static std::string_view Trimmed(std::string_view text) {
    const size_t begin = text.find_first_not_of(" \t\n");
    return begin == std::string_view::npos ? "" : text.substr(begin);
  }

 private:
  std::string_view text_;
};

// Sets the element type from "<f4". Returns false if it is not a number.
bool ParseNpyType(std::string_view type, NpyHeader* header) {
  if (type.size() < 3) return false;
  const char order = type[0];
  header->big_endian = order == '>';
  header->kind = type[1];
  header->bytes = ParseNumber<int64_t>(type.substr(2)).value_or(0);
  if (std::string_view("<>|=").find(order) == std::string_view::npos) return false;
  const int64_t bytes = header->bytes;
  switch (header->kind) {
    case 'f':
      return bytes == 2 || bytes == 4 || bytes == 8;
    case 'i':
    case 'u':
      return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    case 'b':
      return bytes == 1;
    default:
      return false;
  }
}

// Sets the shape from "(2, 3), ...". Returns false if it is damaged or too large.
bool ParseNpyShape(std::string_view text, NpyHeader* header) {
  const size_t end = text.find(')');
  if (!text.starts_with('(') || end == std::string_view::npos) return false;
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 8;
  for (const std::string& word : SplitList(text.substr(1, end - 1))) {
    const std::optional<int64_t> dim = ParseNumber<int64_t>(word);
    if (!dim || *dim < 0) return false;
    if (*dim > 0 && header->count > kMost / *dim) return false;
    header->count *= *dim;
    header->dims.push_back(*dim);
  }
  return true;
}

template <class T>
void ConvertNpyAs(const NpyHeader& header, const char* from, int64_t count, float* to) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  for (int64_t i = 0; i < count; ++i) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    if (header.big_endian) std::ranges::reverse(bytes);
    to[i] = static_cast<float>(std::bit_cast<T>(std::bit_cast<Bits>(bytes)));
  }
}

// Converts 16-bit floating-point numbers.
void ConvertNpyHalves(const NpyHeader& header, const char* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) {
    char bytes[2];
    std::memcpy(bytes, from + 2 * i, sizeof bytes);
    if (header.big_endian) std::swap(bytes[0], bytes[1]);
    to[i] = FromHalf(std::bit_cast<uint16_t>(bytes));
  }
}

}  // namespace

NpyHeader ParseNpyHeader(std::string_view file, const std::string& path, const std::string& name) {
  const auto byte = [&](size_t at) {
    return static_cast<uint64_t>(static_cast<uint8_t>(file[at]));
  };
  if (!file.starts_with(kMagic) || file.size() < 10) {
    RefuseNpy(path, name, "is not in NumPy's .npy format; write it with numpy.save or numpy.savez");
  }
  const bool is_long = byte(6) > 1;  // the length of the header has 4 bytes
  const size_t begin = is_long ? 12 : 10;
  if (byte(6) < 1 || byte(6) > 3 || file.size() < begin) {
    RefuseNpy(path, name, Join("has version ", byte(6), " of NumPy's format, which is not known"));
  }
  const uint64_t length =
      byte(8) | byte(9) << 8 | (is_long ? byte(10) << 16 | byte(11) << 24 : uint64_t{0});
  if (length > kMostNpyHeaderBytes - begin || begin + length > file.size()) {
    RefuseNpy(path, name, "is truncated, or its header is damaged");
  }
  const NpyDictionary fields(file.substr(begin, length));
  NpyHeader header;
  header.data_offset = begin + length;
  const std::string_view type = fields.After("descr");
  const size_t quote = type.empty() ? 0 : type.find(type[0], 1);
  const bool is_text = type.starts_with('\'') || type.starts_with('"');
  const std::string_view word = type.substr(0, quote == std::string_view::npos ? 0 : quote);
  if (!is_text || !ParseNpyType(word.substr(std::min<size_t>(1, word.size())), &header)) {
    RefuseNpy(path, name,
              Join("has elements of the type ",
                   EscapeControl(is_text ? word.substr(std::min<size_t>(1, word.size()))
                                         : std::string_view("'record'")),
                   ", which are not numbers; convert it with array.astype('float32')"));
  }
  header.fortran_order = fields.After("fortran_order").starts_with("True");
  if (!ParseNpyShape(fields.After("shape"), &header)) {
    RefuseNpy(path, name, "has a header whose shape is damaged");
  }
  return header;
}

std::string NpyHeaderText(std::string_view type, std::span<const int64_t> dims) {
  std::string shape;
  for (const int64_t dim : dims) shape += Join(dim, dims.size() == 1 ? "," : ", ");
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  std::string text =
      Join("{'descr': '", type, "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr size_t kPrefix = 10, kAlignment = 64;
  text.append((kAlignment - (kPrefix + text.size() + 1) % kAlignment) % kAlignment, ' ');
  text += '\n';
  const char length[] = {static_cast<char>(text.size() & 0xff),
                         static_cast<char>(text.size() >> 8 & 0xff)};
  return std::string(kMagic) + std::string("\x01\x00", 2) + std::string(length, 2) + text;
}

void ConvertNpyElements(const NpyHeader& header, const char* from, int64_t count, float* to) {
  const auto as = [&]<class T>(T) { ConvertNpyAs<T>(header, from, count, to); };
  const bool is_signed = header.kind == 'i';
  switch (header.bytes) {
    case 1:
      return is_signed ? as(int8_t{}) : as(uint8_t{});
    case 2:
      if (header.kind == 'f') return ConvertNpyHalves(header, from, count, to);
      return is_signed ? as(int16_t{}) : as(uint16_t{});
    case 4:
      if (header.kind == 'f') return as(float{});
      return is_signed ? as(int32_t{}) : as(uint32_t{});
    default:
      if (header.kind == 'f') return as(double{});
      return is_signed ? as(int64_t{}) : as(uint64_t{});
  }
}

}  // namespace trainer
