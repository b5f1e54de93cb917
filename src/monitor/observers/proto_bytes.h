#pragma once
// Messages in protobuf's wire format, field by field, for files whose schema is somebody else's and
// of which few fields are used.

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace trainer {

// The bytes of a message. Fields stand in the order of the calls; numbers are little endian, as
// this program's machines are.
class ProtoBytes {
 public:
  ProtoBytes& Int(int field, int64_t value) {
    Tag(field, 0);
    Varint(static_cast<uint64_t>(value));
    return *this;
  }
  ProtoBytes& Double(int field, double value) {
    Tag(field, 1);
    Raw(&value, sizeof value);
    return *this;
  }
  ProtoBytes& Float(int field, float value) {
    Tag(field, 5);
    Raw(&value, sizeof value);
    return *this;
  }
  ProtoBytes& Bytes(int field, std::string_view bytes) {
    Tag(field, 2);
    Varint(bytes.size());
    text_ += bytes;
    return *this;
  }
  ProtoBytes& Message(int field, const ProtoBytes& message) { return Bytes(field, message.text_); }
  // A packed field.
  ProtoBytes& Doubles(int field, std::span<const double> values) {
    static_assert(std::endian::native == std::endian::little);
    return Bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

  const std::string& text() const { return text_; }

 private:
  void Tag(int field, int type) {
    Varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type));
  }
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  void Raw(const void* data, size_t bytes) { text_.append(static_cast<const char*>(data), bytes); }

  std::string text_;
};

}  // namespace trainer
