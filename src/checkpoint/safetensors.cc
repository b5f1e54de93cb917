#include "safetensors.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <utility>

#include "checksum_bytes.h"
#include "trainer/base/error/error.h"
#include "trainer/base/random/crc32c.h"
#include "trainer/base/text/json.h"
#include "trainer/base/text/text.h"
#include "trainer/tensor/dtype.h"

namespace trainer {
namespace {

// The file is little-endian, and numbers are copied between it and memory unchanged.
static_assert(std::endian::native == std::endian::little);

constexpr size_t kLengthBytes = 8;
constexpr size_t kAlignment = 8;  // alignment of the numbers in the file
constexpr char kChecksumKey[] = "trainer.crc32c";
constexpr std::string_view kChecksumText = "\"trainer.crc32c\": \"";  // as this program writes it
constexpr size_t kChecksumDigits = 8;

std::string HexDigits(uint32_t crc) {
  char digits[kChecksumDigits + 1];
  std::snprintf(digits, sizeof digits, "%08x", crc);
  return digits;
}

// Returns the length and the header of a file with these tensors. The checksum in it is zeros.
std::string SafetensorsHead(std::span<const NamedTensor> tensors) {
  Json json = Json::Object().Set(
      kSafetensorsMetadata, Json::Object().Set("format", "pt").Set(kChecksumKey, HexDigits(0)));
  size_t begin = 0;
  for (const NamedTensor& tensor : tensors) {
    Json shape = Json::Array();
    for (const int64_t dim : tensor.dims) shape.Push(dim);
    const size_t end = begin + tensor.values.size_bytes();
    json.Set(tensor.name, Json::Object()
                              .Set("dtype", "F32")
                              .Set("shape", std::move(shape))
                              .Set("data_offsets", Json::Array().Push(begin).Push(end)));
    begin = end;
  }
  std::string text = json.ToLine();
  text.pop_back();  // removes the newline
  text.append((kAlignment - text.size() % kAlignment) % kAlignment, ' ');
  return LittleEndian(text.size(), kLengthBytes) + text;
}

// Reads the numbers in pieces of type T and converts them.
template <class T, class Convert>
void ReadConverted(const std::function<void(uint64_t, size_t, void*)>& read, std::span<float> to,
                   const Convert& convert) {
  constexpr size_t kPiece = 1 << 16;
  std::vector<T> piece(std::min(kPiece, to.size()));
  for (size_t i = 0; i < to.size(); i += kPiece) {
    const size_t count = std::min(kPiece, to.size() - i);
    read(i * sizeof(T), count * sizeof(T), piece.data());
    for (size_t j = 0; j < count; ++j) to[i + j] = convert(piece[j]);
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path) : file_(path) {
  const auto fail = [&](const std::string& why) {
    throw Error(ErrorCode::kData, {path}, Join("this is not a safetensors file: ", why));
  };
  std::string text(kLengthBytes, '\0');
  if (file_.Read(0, kLengthBytes, text.data()) != kLengthBytes) {
    fail(Join("it has only ", file_.bytes(), " bytes"));
  }
  const uint64_t length = FromLittleEndian(text);
  if (length > file_.bytes() - kLengthBytes) {
    fail(Join("its header would have ", length, " bytes, but the file has ", file_.bytes(),
              ": it is truncated, damaged, or of another format"));
  }
  if (length > kMostHeaderBytes) {
    fail(Join("its header would have ", length, " bytes; at most ", kMostHeaderBytes, " are read"));
  }
  text.resize(length);
  text.resize(file_.Read(kLengthBytes, length, text.data()));
  data_at_ = kLengthBytes + length;
  header_ = ParseSafetensorsHeader(text, file_.bytes() - data_at_, path);
  VerifyChecksum(std::move(text));
}

void SafetensorsFile::VerifyChecksum(std::string text) const {
  const size_t at = text.find(kChecksumText);
  const auto stated = header_.metadata.find(kChecksumKey);
  if (stated == header_.metadata.end() || at == std::string::npos) return;
  text.replace(std::min(at + kChecksumText.size(), text.size()), kChecksumDigits, HexDigits(0));
  const std::string head = LittleEndian(data_at_ - kLengthBytes, kLengthBytes) + text;
  uint32_t crc = Crc32c(head.data(), head.size());
  std::string piece;
  for (uint64_t i = data_at_; i < file_.bytes(); i += piece.size()) {
    piece.resize(std::min<uint64_t>(file_.bytes() - i, 1 << 20));
    piece.resize(file_.Read(i, piece.size(), piece.data()));
    if (piece.empty()) break;  // the file was truncated meanwhile
    crc = Crc32c(piece.data(), piece.size(), crc);
  }
  if (HexDigits(crc) == stated->second) return;
  ThrowDamaged(file_.path(),
               "its checksum does not match: the file was changed or damaged after it was written");
}

void SafetensorsFile::Read(const SafeTensor& tensor, std::span<float> to) const {
  const auto read = [&](uint64_t at, size_t bytes, void* into) {
    if (file_.Read(data_at_ + tensor.begin + at, bytes, into) == bytes) return;
    throw Error(ErrorCode::kIo, {file_.path()}, "the file became shorter while it was read");
  };
  if (tensor.dtype == "F32") return read(0, to.size_bytes(), to.data());
  if (tensor.dtype == "F16") {
    return ReadConverted<Float16>(read, to, [](Float16 x) { return Load(x); });
  }
  if (tensor.dtype == "BF16") {
    return ReadConverted<BFloat16>(read, to, [](BFloat16 x) { return Load(x); });
  }
  if (tensor.dtype == "F64") {
    return ReadConverted<double>(read, to, [](double x) { return static_cast<float>(x); });
  }
  throw Error(ErrorCode::kData, {file_.path()},
              Join("tensor '", EscapeControl(tensor.name), "' has numbers of type ", tensor.dtype,
                   ", but weights must be F32, F16, BF16 or F64"));
}

void EmitSafetensors(std::span<const NamedTensor> tensors,
                     const std::function<void(const void* data, size_t bytes)>& sink) {
  std::string head = SafetensorsHead(tensors);
  uint32_t crc = Crc32c(head.data(), head.size());
  for (const NamedTensor& tensor : tensors) {
    crc = Crc32c(tensor.values.data(), tensor.values.size_bytes(), crc);
  }
  head.replace(head.find(kChecksumText) + kChecksumText.size(), kChecksumDigits, HexDigits(crc));
  sink(head.data(), head.size());
  for (const NamedTensor& tensor : tensors) {
    sink(tensor.values.data(), tensor.values.size_bytes());
  }
}

}  // namespace trainer
