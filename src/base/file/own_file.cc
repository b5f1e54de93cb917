#include "trainer/base/file/own_file.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <mutex>

namespace trainer {
namespace {

constexpr size_t kLongest = 4096;

// An entry in fixed memory, which a signal handler may read. It is valid while `set`.
struct Slot {
  std::array<char, kLongest> path, mark;
  size_t mark_bytes;
  pid_t owner;  // a forked child has the table too
  std::atomic<bool> set;
};
std::array<Slot, 16> g_slots;

std::atomic<bool> g_ending{false};
std::atomic<int> g_creations{0};  // running OwnFileCreations of all threads
constinit thread_local bool creates = false;

// Returns the mutex that guards changes of the table. RemoveOwnFiles does not lock it, because it
// runs in a signal handler.
std::mutex& SlotMutex() {
  static auto* const mutex = new std::mutex;  // outlives every file
  return *mutex;
}

// Returns whether this process, rather than the one it was forked from, remembered the file, and
// the file's content still is the mark, if there is one. Async-signal-safe.
bool IsOwn(const Slot& slot) {
  if (slot.owner != getpid()) return false;
  if (slot.mark_bytes == 0) return true;
  const int fd = open(slot.path.data(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return false;
  std::array<char, kLongest> content;
  const ssize_t got = read(fd, content.data(), content.size());
  close(fd);
  return got == static_cast<ssize_t>(slot.mark_bytes) &&
         std::memcmp(content.data(), slot.mark.data(), slot.mark_bytes) == 0;
}

// Returns the slot of `path`, or null. The caller holds SlotMutex.
Slot* FindSlot(const std::string& path) {
  for (Slot& slot : g_slots) {
    if (slot.set && path == slot.path.data()) return &slot;
  }
  return nullptr;
}

// Returns a free slot, or null if all are taken. The caller holds SlotMutex.
Slot* FindUnusedSlot() {
  for (Slot& slot : g_slots) {
    if (!slot.set) return &slot;
  }
  return nullptr;
}

}  // namespace

void RememberOwnFile(const std::string& path, const std::string& mark) {
  if (path.size() >= kLongest || mark.size() >= kLongest) return;
  const std::lock_guard lock(SlotMutex());
  Slot* slot = FindSlot(path);
  if (slot == nullptr) slot = FindUnusedSlot();
  if (slot == nullptr) return;
  slot->set = false;
  std::memcpy(slot->path.data(), path.c_str(), path.size() + 1);
  std::memcpy(slot->mark.data(), mark.data(), mark.size());
  slot->mark_bytes = mark.size();
  slot->owner = getpid();
  slot->set = true;
}

void ForgetOwnFile(const std::string& path) {
  const std::lock_guard lock(SlotMutex());
  if (Slot* slot = FindSlot(path)) slot->set = false;
}

// This thread counts itself before it reads g_ending, and RemoveOwnFiles sets g_ending before it
// reads the count, so that one of them sees the other.
OwnFileCreation::OwnFileCreation(const std::string& path) {
  creates = true;
  ++g_creations;
  if (g_ending) {
    --g_creations;
    for (;;) pause();
  }
  RememberOwnFile(path);
}

OwnFileCreation::~OwnFileCreation() {
  --g_creations;
  creates = false;
}

void RemoveOwnFiles() {
  const int before = errno;
  g_ending = true;
  // The wait is limited because a disk may hang; a file that is being created may then stay.
  constexpr int kMostMs = 1000;
  const int own = creates ? 1 : 0;  // the handler interrupted it
  for (int ms = 0; g_creations > own && ms < kMostMs; ++ms) poll(nullptr, 0, 1);
  for (Slot& slot : g_slots) {
    if (slot.set.exchange(false) && IsOwn(slot)) unlink(slot.path.data());
  }
  errno = before;
}

}  // namespace trainer
