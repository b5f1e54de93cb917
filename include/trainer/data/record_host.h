#pragma once
// LevelDB lets one process open a database at a time. Where several ranks of a machine read one,
// the first of them opens it for all and hands its records on through a local socket.

#include <chrono>
#include <memory>
#include <string>

namespace trainer {

// Serves the processes of this machine and user that call ReadThroughHost with its name. Each
// cursor of theirs has a thread here, which reads ahead as far as the socket's buffer holds.
class RecordHost {
 public:
  // Listens under `name`, which no other run of this machine may have; it names no file and is free
  // again when the process ends, however it ends. Throws kIo.
  explicit RecordHost(const std::string& name);
  // Ends what is still read through it: the others then get kPeerLost.
  ~RecordHost();
  RecordHost(const RecordHost&) = delete;
  RecordHost& operator=(const RecordHost&) = delete;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

// From here on OpenCursor opens databases that take one process at a time through the host of this
// name; with "" by itself, as at first. Their cursors also throw kPeerLost: when the host has
// ended, or was silent for `patience`. Before threads that read.
void ReadThroughHost(const std::string& name, std::chrono::milliseconds patience);

}  // namespace trainer
