#pragma once
// The protocol between a RecordServer and its cursors on a socket.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

enum class RequestKind : uint32_t { kOpen, kFirst, kLast, kSeek, kSeekAtLeast, kStream };

// Followed by `bytes` of text: a key, or for kOpen the backend, the path as it was given and the
// absolute path, separated by zeros. Each request gets one answer; kStream gets the records after
// the current one without end, until the next request.
struct RequestHeader {
  RequestKind what;
  uint32_t number;  // counts requests; answers repeat it
  uint64_t every;   // kStream: every how manieth record comes with its value
  uint64_t bytes;
};

enum class ReplyKind : uint32_t { kRecord, kNotFound, kError };

// Followed by the key and the value, or by the text of an error.
struct ReplyHeader {
  ReplyKind what;
  uint32_t number;  // of the request
  uint32_t code;    // of an error
  uint32_t key_bytes;
  uint64_t value_bytes;
  uint32_t has_value;
  uint32_t wrapped;  // the database began again with this record
};

// One end of a connection; closes the socket. Used by one thread at a time, except Shutdown.
class RecordConnection {
 public:
  explicit RecordConnection(int socket);
  ~RecordConnection();
  RecordConnection(const RecordConnection&) = delete;
  RecordConnection& operator=(const RecordConnection&) = delete;

  // Ends the calls of both ends.
  void Shutdown() const;

  // Put collects bytes, which Flush sends. Flush returns false if the other end has closed the
  // connection.
  void Put(const void* data, size_t bytes);
  void Put(std::string_view text) { Put(text.data(), text.size()); }
  size_t waiting() const { return output_.size(); }
  bool Flush();

  enum class Result { kDone, kEnded, kSilent };
  // Waits for all bytes. Returns kSilent if none came for `patience`; a negative patience waits for
  // ever.
  Result Get(void* to, size_t bytes, std::chrono::milliseconds patience);
  // Whether Get has something to read, or the other end has closed the connection.
  bool HasInput() const;

 private:
  Result Receive(char* to, size_t most, std::chrono::milliseconds patience, size_t* received);

  int socket_;
  std::string output_;
  std::vector<char> input_;
  size_t begin_ = 0, end_ = 0;  // what was received and not taken
};

// A socket that listens under the server's name, or is connected to it; -1 with errno.
int ListenAsServer(const std::string& name);
int ConnectToServer(const std::string& name);
// Accepts the next connection of a process of this user on a listening socket; -1 after a shutdown.
int AcceptOwn(int listening);

}  // namespace trainer
