#pragma once
// Writes messages in protobuf's wire format, field by field. TensorBoard defines the schema, and
// this program writes few of its fields.

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace trainer {

// The bytes of a message. Each of the public functions appends a field; fields have the order of
// the calls. Numbers are little endian, as on all machines that the program supports.
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
  // Appends a packed repeated field.
  ProtoBytes& Doubles(int field, std::span<const double> values) {
    static_assert(std::endian::native == std::endian::little);
    return Bytes(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
  }

  const std::string& text() const { return text_; }

 private:
  // Appends the number and the wire type of a field.
  void Tag(int field, int type) {
    Varint(static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(type));
  }
  // Appends a number in groups of 7 bits, the lowest first.
  void Varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_ += static_cast<char>(value | 0x80);
    text_ += static_cast<char>(value);
  }
  void Raw(const void* data, size_t bytes) { text_.append(static_cast<const char*>(data), bytes); }

  std::string text_;
};

}  // namespace trainer
