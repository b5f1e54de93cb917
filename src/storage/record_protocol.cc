#include "record_protocol.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace trainer {
namespace {

constexpr size_t kInput = 1 << 18;
constexpr int kWishedBuffer = 4 << 20;  // bytes that are read ahead; the system may allow less

// An abstract name: no file, no rights to set, nothing to remove.
socklen_t AddressOf(const std::string& name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  const size_t length = std::min(name.size(), sizeof address->sun_path - 1);
  std::memcpy(address->sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

int CloseFailed(int socket) {
  const int reason = errno;
  close(socket);
  errno = reason;
  return -1;
}

bool IsOwn(int socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

}  // namespace

RecordConnection::RecordConnection(int socket) : socket_(socket), input_(kInput) {
  setsockopt(socket_, SOL_SOCKET, SO_SNDBUF, &kWishedBuffer, sizeof kWishedBuffer);
}

RecordConnection::~RecordConnection() { close(socket_); }

void RecordConnection::Shutdown() const { shutdown(socket_, SHUT_RDWR); }

void RecordConnection::Put(const void* data, size_t bytes) {
  output_.append(static_cast<const char*>(data), bytes);
}

bool RecordConnection::Flush() {
  size_t sent = 0;
  while (sent < output_.size()) {
    const ssize_t bytes = send(socket_, output_.data() + sent, output_.size() - sent, MSG_NOSIGNAL);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return false;
    sent += static_cast<size_t>(bytes);
  }
  output_.clear();
  return true;
}

RecordConnection::Result RecordConnection::Get(void* to, size_t bytes,
                                               std::chrono::milliseconds patience) {
  char* at = static_cast<char*>(to);
  while (bytes > 0) {
    if (begin_ == end_ && bytes >= input_.size()) {  // too large for the buffer
      size_t received = 0;
      const Result result = Receive(at, bytes, patience, &received);
      if (result != Result::kDone) return result;
      at += received;
      bytes -= received;
      continue;
    }
    if (begin_ == end_) {
      begin_ = end_ = 0;
      const Result result = Receive(input_.data(), input_.size(), patience, &end_);
      if (result != Result::kDone) return result;
    }
    const size_t part = std::min(bytes, end_ - begin_);
    std::memcpy(at, input_.data() + begin_, part);
    begin_ += part;
    at += part;
    bytes -= part;
  }
  return Result::kDone;
}

RecordConnection::Result RecordConnection::Receive(char* to, size_t most,
                                                   std::chrono::milliseconds patience,
                                                   size_t* received) {
  for (;;) {
    pollfd poll_for{socket_, POLLIN, 0};
    const int ready = poll(&poll_for, 1, static_cast<int>(patience.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) return Result::kSilent;
    const ssize_t bytes = recv(socket_, to, most, 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return Result::kEnded;
    *received = static_cast<size_t>(bytes);
    return Result::kDone;
  }
}

bool RecordConnection::HasInput() const {
  if (begin_ < end_) return true;
  pollfd poll_for{socket_, POLLIN, 0};
  return poll(&poll_for, 1, 0) != 0;
}

int ListenAsServer(const std::string& name) {
  const int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (listening < 0) return -1;
  sockaddr_un address;
  const socklen_t length = AddressOf(name, &address);
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (bind(listening, any, length) != 0 || listen(listening, SOMAXCONN) != 0) {
    return CloseFailed(listening);
  }
  return listening;
}

int ConnectToServer(const std::string& name) {
  const int connected = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connected < 0) return -1;
  sockaddr_un address;
  const socklen_t length = AddressOf(name, &address);
  while (connect(connected, reinterpret_cast<const sockaddr*>(&address), length) != 0) {
    if (errno != EINTR) return CloseFailed(connected);
  }
  if (!IsOwn(connected)) {
    errno = EPERM;
    return CloseFailed(connected);
  }
  return connected;
}

int AcceptOwn(int listening) {
  for (;;) {
    const int connected = accept4(listening, nullptr, nullptr, SOCK_CLOEXEC);
    if (connected >= 0 && IsOwn(connected)) return connected;
    if (connected >= 0) {
      close(connected);
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return -1;
    }
  }
}

}  // namespace trainer
