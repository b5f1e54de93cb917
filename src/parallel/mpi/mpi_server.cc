#include "mpi/mpi_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace trainer {
namespace {

// Returns whether a connection to an address such as "1234.0;tcp4://127.0.0.1:44523" is refused.
bool IsRefused(const std::string& address) {
  constexpr char kScheme[] = "tcp4://";
  const size_t scheme = address.find(kScheme), port = address.rfind(':');
  if (scheme == std::string::npos || port <= scheme + 4) return false;
  const size_t begin = scheme + sizeof kScheme - 1;
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::atoi(address.c_str() + port + 1)));
  if (inet_pton(AF_INET, address.substr(begin, port - begin).c_str(), &to.sin_addr) != 1) {
    return false;
  }
  const int connecting = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (connecting < 0) return false;
  const bool refused =
      connect(connecting, reinterpret_cast<const sockaddr*>(&to), sizeof to) != 0 &&
      errno == ECONNREFUSED;
  close(connecting);
  return refused;
}

}  // namespace

// Checks both, because a container may lack the folder although it can reach the server. It
// connects to the server only if the folder is missing.
bool IsMpiServerGone(const std::function<const char*(const char*)>& get) {
  const char* const folder = get("PMIX_SERVER_TMPDIR");
  const char* const address = get("PMIX_SERVER_URI2");
  if (folder == nullptr || address == nullptr) return false;
  return access(folder, F_OK) != 0 && errno == ENOENT && IsRefused(address);
}

}  // namespace trainer
