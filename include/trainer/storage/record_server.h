#pragma once
// LevelDB lets one process open a database at a time. If several ranks of a host read the same
// database, the first of them opens it and sends its records to the others through a local socket.

#include <memory>
#include <string>

namespace trainer {

// Serves the processes of this host and user that call ReadFromServer with its name. Each of their
// cursors has a thread here, which reads ahead until the socket's buffer is full.
class RecordServer {
 public:
  // Listens under `name`, which no other run on this host may use. The name is no file, and the
  // system frees it when the process ends in any way. Throws kIo.
  explicit RecordServer(const std::string& name);
  // Closes the connections: cursors of other processes then throw kPeerLost.
  ~RecordServer();
  RecordServer(const RecordServer&) = delete;
  RecordServer& operator=(const RecordServer&) = delete;

 private:
  class Listener;
  std::unique_ptr<Listener> listener_;
};

}  // namespace trainer
