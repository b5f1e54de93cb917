#include "trainer/base/own_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace trainer {
namespace {

constexpr size_t kLongest = 4096;

// What a handler may read: fixed memory, valid while g_set.
std::array<char, kLongest> g_path, g_mark;
size_t g_mark_bytes = 0;
std::atomic<bool> g_set{false};

bool IsOwn() {
  const int fd = open(g_path.data(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  std::array<char, kLongest> content;
  const ssize_t got = read(fd, content.data(), content.size());
  close(fd);
  return got == static_cast<ssize_t>(g_mark_bytes) &&
         std::memcmp(content.data(), g_mark.data(), g_mark_bytes) == 0;
}

}  // namespace

void RememberOwnFile(const std::string& path, const std::string& mark) {
  g_set = false;
  if (path.size() >= kLongest || mark.size() >= kLongest) return;
  std::memcpy(g_path.data(), path.c_str(), path.size() + 1);
  std::memcpy(g_mark.data(), mark.data(), mark.size());
  g_mark_bytes = mark.size();
  g_set = true;
}

void ForgetOwnFile(const std::string& path) {
  if (g_set && path == g_path.data()) g_set = false;
}

void RemoveOwnFile() {
  const int before = errno;
  if (g_set.exchange(false) && IsOwn()) unlink(g_path.data());
  errno = before;
}

}  // namespace trainer
