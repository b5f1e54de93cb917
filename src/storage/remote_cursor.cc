#include "trainer/storage/remote_cursor.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <system_error>
#include <thread>

#include "record_protocol.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// A server that ended reports the reason itself, or the rank that finds it dead does. This time
// lets it be first.
constexpr std::chrono::seconds kHostedCursorTurn{4};

struct Host {
  std::string name;
  std::chrono::milliseconds patience{0};
};

Host& TheHost() {
  static Host host;
  return host;
}

int Connect(const std::string& path) {
  const int socket = ConnectToServer(TheHost().name);
  if (socket >= 0) return socket;
  const int reason = errno;
  std::this_thread::sleep_for(kHostedCursorTurn);
  throw Error(ErrorCode::kPeerLost, {path},
              Join("cannot reach the rank that reads this database for all ranks of this machine: ",
                   std::generic_category().message(reason)));
}

// While it streams, the server is ahead of this cursor: the records wait in the socket until they
// are read.
class RemoteCursor final : public Cursor {
 public:
  RemoteCursor(const std::string& backend, const std::string& path)
      : Cursor(path), wire_(Connect(path)), patience_(TheHost().patience) {
    Move(RequestKind::kOpen, backend + '\0' + path + '\0' + AbsolutePath(path));
  }

  std::string_view Key() const override { return key_; }
  std::string_view Value() const override {
    if (!has_value_) FetchValue();
    return value_;
  }

  void SetStride(uint64_t count) override {
    every_ = std::max<uint64_t>(1, count);
    streams_ = knows_position_ = false;
  }

  void SeekFirst() override { Move(RequestKind::kFirst, {}); }
  void SeekLast() override { Move(RequestKind::kLast, {}); }
  bool Seek(std::string_view key) override { return Move(RequestKind::kSeek, key); }
  bool SeekAtLeast(std::string_view key) override { return Move(RequestKind::kSeekAtLeast, key); }

  bool Next() override {
    if (!streams_) {
      if (!knows_position_) FetchValue();
      Ask(RequestKind::kStream, {});
      streams_ = true;
    }
    const ReplyHeader head = Receive();
    TakeKey(head, &key_);
    TakeValue(head);
    return head.wrapped != 0;
  }

 private:
  void Ask(RequestKind what, std::string_view text) const {
    const RequestHeader head{what, ++number_, every_, text.size()};
    wire_.Put(&head, sizeof head);
    wire_.Put(text);
    streams_ = knows_position_ = false;
    if (!wire_.Flush()) FailEnded();
  }

  // Whether there is such a record; without one this cursor stays, and the host's is elsewhere.
  bool Move(RequestKind what, std::string_view text) {
    Ask(what, text);
    const ReplyHeader head = Receive();
    if (head.what == ReplyKind::kNotFound) return false;
    TakeKey(head, &key_);
    TakeValue(head);
    knows_position_ = true;
    return true;
  }

  // Leaves the key as it is: others may have a view of it.
  void FetchValue() const {
    Ask(RequestKind::kSeek, key_);
    const ReplyHeader head = Receive();
    if (head.what != ReplyKind::kRecord) {
      throw Error(ErrorCode::kIo, {path()},
                  Join("record ", QuoteKey(key_), " is no longer in the database"));
    }
    std::string same;
    TakeKey(head, &same);
    TakeValue(head);
    knows_position_ = true;
  }

  // The answer to the last request; what earlier ones still sent is passed over.
  ReplyHeader Receive() const {
    ReplyHeader head;
    for (;;) {
      Get(&head, sizeof head);
      if (head.number == number_) break;
      scratch_.resize(head.key_bytes + head.value_bytes);
      Get(scratch_.data(), scratch_.size());
    }
    if (head.what != ReplyKind::kError) return head;
    streams_ = knows_position_ = false;
    std::string text(head.value_bytes, '\0');
    Get(text.data(), text.size());
    throw Error(static_cast<ErrorCode>(head.code), text);
  }

  void TakeKey(const ReplyHeader& head, std::string* key) const {
    key->resize(head.key_bytes);
    Get(key->data(), key->size());
  }

  void TakeValue(const ReplyHeader& head) const {
    has_value_ = head.has_value != 0;
    value_.resize(head.value_bytes);
    Get(value_.data(), value_.size());
  }

  void Get(void* to, size_t bytes) const {
    const RecordConnection::Result result = wire_.Get(to, bytes, patience_);
    if (result == RecordConnection::Result::kDone) return;
    if (result == RecordConnection::Result::kEnded) FailEnded();
    throw Error(ErrorCode::kPeerLost, {path()},
                Join("the rank that reads this database for all ranks of this machine has been "
                     "silent for ",
                     std::chrono::duration_cast<std::chrono::seconds>(patience_).count(),
                     " s (--peer_timeout)"));
  }

  [[noreturn]] void FailEnded() const {
    std::this_thread::sleep_for(kHostedCursorTurn);
    throw Error(ErrorCode::kPeerLost, {path()},
                "the rank that read this database for all ranks of this machine has ended. Resume "
                "from the newest snapshot (--resume=auto)");
  }

  // A value is asked for when it is read, which changes no record that this cursor shows.
  mutable RecordConnection wire_;
  std::chrono::milliseconds patience_;
  uint64_t every_ = 1;
  mutable uint32_t number_ = 0;          // of the last request
  mutable bool streams_ = false;         // the host sends the records after this one
  mutable bool knows_position_ = false;  // the host's cursor is at this record
  mutable bool has_value_ = false;
  std::string key_;
  mutable std::string value_, scratch_;
};

}  // namespace

void ReadFromServer(const std::string& name, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds kMost{INT_MAX};  // what poll() takes
  TheHost() = {name, std::min(patience, kMost)};
}

bool HasRecordServer() { return !TheHost().name.empty(); }

std::unique_ptr<Cursor> OpenRemoteCursor(const std::string& backend, const std::string& path) {
  return std::make_unique<RemoteCursor>(backend, path);
}

}  // namespace trainer
