// Parses the header without the JSON reader in base, which needs about thirty times the memory of
// the text. A header from an untrusted file may have many megabytes.

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <utility>

#include "safetensors.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"
#include "trainer/base/text/utf8.h"

namespace trainer {
namespace {

constexpr std::pair<const char*, uint64_t> kDtypeBytes[] = {
    {"F32", 4},  {"F16", 2}, {"BF16", 2},    {"F64", 8},     {"I64", 8},    {"U64", 8},
    {"I32", 4},  {"U32", 4}, {"I16", 2},     {"U16", 2},     {"I8", 1},     {"U8", 1},
    {"BOOL", 1}, {"C64", 8}, {"F8_E5M2", 1}, {"F8_E4M3", 1}, {"F8_E8M0", 1}};

// Appends the UTF-8 bytes of a character that is not a surrogate.
void AppendUtf8(uint32_t code, std::string* to) {
  if (code < 0x80) {
    *to += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;  // bytes after the first
  *to += static_cast<char>((0xff00 >> (more + 1) & 0xff) | code >> (6 * more));
  for (int i = more; i-- > 0;) *to += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
}

// Parses the two levels of objects that a header has.
class SafetensorsParser {
 public:
  SafetensorsParser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  SafetensorsHeader Parse() {
    SafetensorsHeader header;
    ParseMembers([&](std::string name) {
      if (name == kSafetensorsMetadata) {
        ParseMembers([&](std::string key) { header.metadata[std::move(key)] = ParseString(); });
      } else {
        header.tensors.push_back(ParseTensor(std::move(name)));
      }
    });
    SkipBlanks();
    if (at_ != text_.size()) Fail("there is text after its end");
    return header;
  }

 private:
  // Throws an error that names the place in the header.
  [[noreturn]] void Fail(const std::string& why) const {
    throw Error(
        ErrorCode::kData, {path_},
        Join("the header of this safetensors file is damaged at its byte ", at_, ": ", why));
  }

  void SkipBlanks() { at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size()); }

  // Skips blanks and `c`. Returns false, and skips only the blanks, if another character follows.
  bool Accept(char c) {
    SkipBlanks();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void Expect(char c) {
    if (!Accept(c)) Fail(Join("'", c, "' is missing"));
  }

  // Parses {"key": value, ...}. `parse` gets each key and parses its value.
  template <class Parse>
  void ParseMembers(const Parse& parse) {
    std::set<std::string> keys;
    Expect('{');
    if (Accept('}')) return;
    do {
      std::string key = ParseString();
      if (!keys.insert(key).second) Fail(Join("it has '", EscapeControl(key), "' twice"));
      Expect(':');
      parse(std::move(key));
    } while (Accept(','));
    Expect('}');
  }

  std::string ParseString() {
    Expect('"');
    std::string text;
    while (true) {
      if (at_ == text_.size()) Fail("a string does not end");
      const char c = text_[at_++];
      if (c == '"') break;
      if (static_cast<unsigned char>(c) < 0x20) Fail("a string has a control character");
      if (c == '\\') {
        ParseEscape(&text);
      } else {
        text += c;
      }
    }
    if (!IsUtf8(text)) Fail("a string is not UTF-8");
    return text;
  }

  // Parses what follows a backslash.
  void ParseEscape(std::string* text) {
    constexpr std::string_view kNames = "\"\\/bfnrt", kCharacters = "\"\\/\b\f\n\r\t";
    const char c = at_ < text_.size() ? text_[at_++] : '\0';
    if (const size_t index = kNames.find(c); index != std::string_view::npos && c != '\0') {
      *text += kCharacters[index];
      return;
    }
    if (c != 'u') Fail("a string has an unknown escape");
    uint32_t code = ParseHex();
    if (code >= 0xd800 && code < 0xdc00 && text_.substr(at_, 2) == "\\u") {
      at_ += 2;
      const uint32_t low = ParseHex();
      if (low < 0xdc00 || low > 0xdfff) Fail("a string has half a character");
      code = 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
    }
    if (code >= 0xd800 && code < 0xe000) Fail("a string has half a character");
    AppendUtf8(code, text);
  }

  uint32_t ParseHex() {
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    uint32_t code = 0;
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, 16);
    if (error != std::errc() || stop - digits.data() != 4) Fail("an escape has no four digits");
    at_ += 4;
    return code;
  }

  // Parses [1, 2, 3]: whole numbers without a sign.
  std::vector<uint64_t> ParseNumbers() {
    std::vector<uint64_t> numbers;
    Expect('[');
    if (Accept(']')) return numbers;
    do {
      SkipBlanks();
      uint64_t& number = numbers.emplace_back();
      const char* const begin = text_.data() + at_;
      const auto [stop, error] = std::from_chars(begin, text_.data() + text_.size(), number);
      if (error != std::errc()) Fail("a whole number is missing or too large");
      at_ += static_cast<size_t>(stop - begin);
    } while (Accept(','));
    Expect(']');
    return numbers;
  }

  SafeTensor ParseTensor(std::string name) {
    SafeTensor tensor;
    tensor.name = std::move(name);
    std::vector<uint64_t> shape, offsets;
    int fields = 0;
    ParseMembers([&](const std::string& key) {
      ++fields;
      if (key == "dtype") {
        tensor.dtype = ParseString();
      } else if (key == "shape") {
        shape = ParseNumbers();
      } else if (key == "data_offsets") {
        offsets = ParseNumbers();
      } else {
        Fail(Join("a tensor has the unknown field '", EscapeControl(key), "'"));
      }
    });
    if (fields != 3 || offsets.size() != 2) {
      Fail(Join("tensor '", EscapeControl(tensor.name),
                "' needs dtype, shape and two data_offsets"));
    }
    for (const uint64_t dim : shape) {
      if (dim > std::numeric_limits<int64_t>::max()) Fail("a shape is too large");
      tensor.dims.push_back(static_cast<int64_t>(dim));
    }
    tensor.begin = offsets[0];
    tensor.end = offsets[1];
    return tensor;
  }

  std::string_view text_;
  const std::string& path_;
  size_t at_ = 0;
};

// Sets `bytes` to the size of a tensor whose numbers have `size` bytes, at most 8. Returns false
// for a shape that is too large, also if it has zeros, so that no product of its lengths overflows.
bool CountTensorBytes(const SafeTensor& tensor, uint64_t size, uint64_t* bytes) {
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max() / 8;
  uint64_t count = 1;
  for (const int64_t dim : tensor.dims) {
    const uint64_t factor = std::max<uint64_t>(static_cast<uint64_t>(dim), 1);
    if (factor > kMost / count) return false;
    count *= factor;
  }
  *bytes = std::ranges::count(tensor.dims, 0) > 0 ? 0 : count * size;
  return true;
}

// Throws unless the tensor's type is known and its shape agrees with its offsets.
void CheckTensor(const SafeTensor& tensor, uint64_t data_bytes, const std::string& path) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kData, {path}, Join("tensor '", EscapeControl(tensor.name), "' ", why));
  };
  const auto type = std::ranges::find_if(
      kDtypeBytes, [&](const auto& known) { return tensor.dtype == known.first; });
  if (type == std::end(kDtypeBytes)) {
    fail(Join("has numbers of the unknown type '", EscapeControl(tensor.dtype), "'"));
  }
  if (tensor.begin > tensor.end || tensor.end > data_bytes) {
    fail(Join("has the bytes from ", tensor.begin, " to ", tensor.end, ", but the file has ",
              data_bytes, " bytes of numbers: it is truncated or damaged"));
  }
  uint64_t bytes = 0;
  if (!CountTensorBytes(tensor, type->second, &bytes) || bytes != tensor.end - tensor.begin) {
    fail(Join("has ", tensor.end - tensor.begin, " bytes, which do not agree with its shape and ",
              tensor.dtype, ": the file is damaged"));
  }
}

}  // namespace

SafetensorsHeader ParseSafetensorsHeader(std::string_view text, uint64_t data_bytes,
                                         const std::string& path) {
  SafetensorsHeader header = SafetensorsParser(text, path).Parse();
  std::ranges::stable_sort(header.tensors, [](const SafeTensor& a, const SafeTensor& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  uint64_t used = 0;
  for (const SafeTensor& tensor : header.tensors) {
    CheckTensor(tensor, data_bytes, path);
    if (tensor.begin != used) {
      throw Error(ErrorCode::kData, {path},
                  Join("tensor '", EscapeControl(tensor.name), "' begins at byte ", tensor.begin,
                       tensor.begin < used ? ", inside the tensor before it, which ends at byte "
                                           : ", but the tensor before it ends at byte ",
                       used, ": the file is damaged"));
    }
    used = tensor.end;
  }
  if (used == data_bytes) return header;
  throw Error(ErrorCode::kData, {path},
              Join("the file has ", data_bytes, " bytes of numbers, but its tensors only ", used,
                   ": it is damaged"));
}

}  // namespace trainer
