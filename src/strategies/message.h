#pragma once
// Writes and reads the requests and replies of remote calls: values, then floats or bytes.

#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/ranks/rpc.h"
#include "trainer/base/text/text.h"

namespace trainer {

// Writes a message. The size of each value is a multiple of a float's, so floats after it are
// aligned.
class MessageWriter {
 public:
  // Appends a value as it is in memory.
  template <class T>
  MessageWriter& Put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) % sizeof(float) == 0);
    const size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(&bytes_[at], &value, sizeof value);
    return *this;
  }
  // Appends room for floats and returns it; valid until the next call.
  std::span<float> Floats(size_t count) {
    return {reinterpret_cast<float*>(Room(count * sizeof(float))), count};
  }
  // Appends room for bytes and returns it; valid until the next call.
  std::byte* Room(size_t bytes) {
    const size_t at = bytes_.size();
    bytes_.resize(at + bytes);
    return bytes_.data() + at;
  }
  // Returns the message and leaves the writer empty.
  Rpc::Bytes Take() { return std::move(bytes_); }

 private:
  Rpc::Bytes bytes_;
};

// Reads a message, which must outlive the reader.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  // Reads the next value. Throws kProtocol if the message is too short for it.
  template <class T>
  T Get() {
    if (bytes_.size() < sizeof(T)) {
      throw Error(ErrorCode::kProtocol,
                  Join("a message of another rank has only ", bytes_.size(), " bytes where ",
                       sizeof(T), " must follow; start the same program on all nodes"));
    }
    T value;
    std::memcpy(&value, bytes_.data(), sizeof value);
    bytes_ = bytes_.subspan(sizeof value);
    return value;
  }
  // Returns all bytes that have not been read yet.
  std::span<const std::byte> Rest() const { return bytes_; }
  // Returns all that has not been read yet, as floats.
  std::span<const float> Floats() const {
    return {reinterpret_cast<const float*>(bytes_.data()), bytes_.size() / sizeof(float)};
  }

 private:
  std::span<const std::byte> bytes_;
};

// Calls use(begin, end) for ranges of floats that each fit into one message.
template <class Use>
void VisitMessages(size_t count, const Use& use) {
  constexpr size_t kMost = size_t{1} << 22;
  for (size_t begin = 0; begin < count; begin += kMost) {
    use(begin, begin + kMost < count ? begin + kMost : count);
  }
}

}  // namespace trainer
