#include "trainer/storage/record_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <list>
#include <system_error>
#include <thread>

#include "record_protocol.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/cursor.h"
#include "trainer/storage/format.h"

namespace trainer {
namespace {

// One cursor that another process uses.
class Connection {
 public:
  explicit Connection(int socket) : wire_(socket), thread_([this] { Serve(); }) {}
  ~Connection() {
    wire_.Shutdown();
    thread_.join();
  }

  bool ended() const { return ended_; }

 private:
  static constexpr size_t kFlushAt = 1 << 16;  // bytes of keys

  void Serve() {
    constexpr std::chrono::milliseconds kForEver{-1};
    const auto get = [&](void* to, size_t bytes) {
      return wire_.Get(to, bytes, kForEver) == RecordConnection::Result::kDone;
    };
    RequestHeader request;
    std::string text;
    while (get(&request, sizeof request)) {
      text.resize(request.bytes);
      if (!get(text.data(), text.size()) || !Answer(request, text)) break;
    }
    cursor_.reset();  // the database is closed when its last reader has ended
    wire_.Shutdown();
    ended_ = true;
  }

  // Returns false if the other end has closed the connection.
  bool Answer(const RequestHeader& request, const std::string& text) {
    number_ = request.number;
    try {
      switch (request.what) {
        case RequestKind::kOpen:
          Open(text);
          return Send(true);
        case RequestKind::kFirst:
          cursor_->SeekFirst();
          return Send(true);
        case RequestKind::kLast:
          cursor_->SeekLast();
          return Send(true);
        case RequestKind::kSeek:
          return Send(cursor_->Seek(text));
        case RequestKind::kSeekAtLeast:
          return Send(cursor_->SeekAtLeast(text));
        case RequestKind::kStream:
          return Stream(request.every);
      }
      return false;
    } catch (const Error& error) {
      return SendError(error.code(), error.what());
    } catch (const std::exception& error) {
      return SendError(ErrorCode::kInternal, error.what());
    }
  }

  // Uses the path that the other process was given, which messages then name, if it is the same
  // folder here.
  void Open(const std::string& text) {
    const size_t first = text.find('\0'), second = text.find('\0', first + 1);
    const std::string given = text.substr(first + 1, second - first - 1);
    const std::string absolute = text.substr(second + 1);
    const Format* const format = FindFormat(text.substr(0, first));
    if (format == nullptr) throw Error(ErrorCode::kInternal, "a rank asks for an unknown format");
    cursor_ = format->open(AbsolutePath(given) == absolute ? given : absolute);
  }

  bool Send(bool found) {
    if (found) {
      PutRecord(false, true);
    } else {
      const ReplyHeader head{ReplyKind::kNotFound, number_, 0, 0, 0, 0, 0};
      wire_.Put(&head, sizeof head);
    }
    return wire_.Flush();
  }

  bool Stream(uint64_t every) {
    for (uint64_t i = 1;; ++i) {
      const bool wrapped = cursor_->Next();
      const bool with_value = i % every == 0;
      PutRecord(wrapped, with_value);
      if (!with_value && wire_.waiting() < kFlushAt) continue;
      if (!wire_.Flush()) return false;
      if (wire_.HasInput()) return true;  // another request
    }
  }

  void PutRecord(bool wrapped, bool with_value) {
    const std::string_view key = cursor_->Key();
    const std::string_view value = with_value ? cursor_->Value() : std::string_view();
    const ReplyHeader head{
        ReplyKind::kRecord, number_,    0,      static_cast<uint32_t>(key.size()),
        value.size(),       with_value, wrapped};
    wire_.Put(&head, sizeof head);
    wire_.Put(key);
    wire_.Put(value);
  }

  bool SendError(ErrorCode code, std::string_view text) {
    const ReplyHeader head{
        ReplyKind::kError, number_, static_cast<uint32_t>(code), 0, text.size(), 1, 0};
    wire_.Put(&head, sizeof head);
    wire_.Put(text);
    return wire_.Flush();
  }

  RecordConnection wire_;
  std::unique_ptr<Cursor> cursor_;
  uint32_t number_ = 0;  // of the request
  std::atomic<bool> ended_{false};
  std::thread thread_;  // last: it uses the members above
};

}  // namespace

class RecordServer::Listener {
 public:
  explicit Listener(int socket) : socket_(socket), thread_([this] { Accept(); }) {}
  ~Listener() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }

 private:
  void Accept() {
    for (int socket; (socket = AcceptOwn(socket_)) >= 0;) {
      connections_.remove_if([](const Connection& connection) { return connection.ended(); });
      connections_.emplace_back(socket);
    }
  }

  int socket_;
  std::list<Connection> connections_;
  std::thread thread_;  // last
};

RecordServer::RecordServer(const std::string& name) {
  const int socket = ListenAsServer(name);
  if (socket < 0) {
    throw Error(
        ErrorCode::kIo,
        Join("cannot create the socket that shares one database among the ranks of this machine: ",
             std::generic_category().message(errno)));
  }
  listener_ = std::make_unique<Listener>(socket);
}

RecordServer::~RecordServer() = default;

}  // namespace trainer
