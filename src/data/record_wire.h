#pragma once
// What a RecordHost and its cursors say to each other through a socket.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace trainer {

enum class HostRequest : uint32_t { kOpen, kFirst, kLast, kSeek, kSeekAtLeast, kStream };

// Followed by `bytes` of text: a key, or for kOpen the backend, the path as it was given and the
// path from the root, with zeros between. Each is answered by one answer; kStream by the records
// after the current one without end, until the next request.
struct RequestHead {
  HostRequest what;
  uint32_t number;  // counts requests; answers repeat it
  uint64_t every;   // kStream: every how manieth record comes with its value
  uint64_t bytes;
};

enum class HostAnswer : uint32_t { kRecord, kNotFound, kError };

// Followed by the key and the value; of an error: nothing, and its text.
struct AnswerHead {
  HostAnswer what;
  uint32_t number;  // of the request
  uint32_t code;    // of an error
  uint32_t key_bytes;
  uint64_t value_bytes;
  uint32_t has_value;
  uint32_t wrapped;  // the database began again with this record
};

// One end of a connection; closes the socket. Used by one thread at a time, but for Shutdown.
class RecordWire {
 public:
  explicit RecordWire(int socket);
  ~RecordWire();
  RecordWire(const RecordWire&) = delete;
  RecordWire& operator=(const RecordWire&) = delete;

  // Ends the calls of both ends.
  void Shutdown() const;

  // What is put is sent with the next Flush. False when the other end is gone.
  void Put(const void* data, size_t bytes);
  void Put(std::string_view text) { Put(text.data(), text.size()); }
  size_t waiting() const { return output_.size(); }
  bool Flush();

  enum class Result { kDone, kEnded, kSilent };
  // Waits for all bytes; kSilent when for `patience` none came. Negative: without end.
  Result Get(void* to, size_t bytes, std::chrono::milliseconds patience);
  // Whether there is something to get, or the other end is gone.
  bool HasInput() const;

 private:
  Result Receive(char* to, size_t most, std::chrono::milliseconds patience, size_t* received);

  int socket_;
  std::string output_;
  std::vector<char> input_;
  size_t begin_ = 0, end_ = 0;  // what was received and not taken
};

// A socket that listens under the host's name, or is connected to it; -1 with errno.
int ListenAsHost(const std::string& name);
int ConnectToHost(const std::string& name);
// Of a socket that listens: the next connection of a process of this user; -1 when it was shut
// down.
int AcceptOwn(int listening);

}  // namespace trainer
