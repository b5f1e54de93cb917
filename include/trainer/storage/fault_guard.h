#pragma once
// Guards reads of memory-mapped databases. LMDB trusts its file, so a damaged page makes it read
// outside the map (SIGSEGV). The system raises SIGBUS if it cannot read a page, because the file
// was truncated, or its disk or file server fails.

#include <setjmp.h>

#include <csignal>
#include <cstddef>
#include <string>
#include <string_view>

#include "trainer/base/error/error.h"

namespace trainer {

enum class MapFault {
  kNone,
  kDamaged,     // SIGSEGV
  kCutShort,    // SIGBUS beyond the current end of the file
  kUnreadable,  // any other SIGBUS
};

// Throws the error for a fault in the database `path`: kIo for kUnreadable, else kData.
[[noreturn]] void ThrowMapFault(const std::string& path, MapFault fault);

// Handles SIGSEGV and SIGBUS from now on, for all threads. A fault inside a TryMapped ends that
// call. Any other fault in a MappedRange, or while a FaultContext lives on the thread, calls `end`
// with a line "error: <database>: ..."; `end` must end the process with the code, and may call only
// what a signal handler may. A SIGBUS elsewhere does the same, with the name of the mapped file. A
// SIGSEGV elsewhere keeps its previous action. Call it once.
using EndOnFault = void (*)(const char* line, size_t bytes, ErrorCode code);
void InstallFaultHandler(EndOnFault end);

// Registers a map of a database's file, `bytes` from `start`, for its lifetime: faults of any code
// that reads its records then name the database, `path`. Any thread. `fd` is the file's descriptor,
// which must stay open: the handler asks it for the size of the file.
class MappedRange {
 public:
  MappedRange(const std::string& path, const void* start, size_t bytes, int fd);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  struct Slot* slot_;
};

// One guarded call or context of a thread. Each thread has its own; they nest.
struct FaultFrame {
  sigjmp_buf jump;
  bool jumps = false;
  const char* text = nullptr;  // names the database, if this frame does not jump
  volatile MapFault fault = MapFault::kNone;
  FaultFrame* outer = nullptr;

  FaultFrame();
  ~FaultFrame();
  FaultFrame(const FaultFrame&) = delete;
  FaultFrame& operator=(const FaultFrame&) = delete;
};

// While it lives, a fault on this thread is reported for this database. It guards calls that may
// not be interrupted halfway. `name`: for messages, without control bytes; must outlive it.
class FaultContext {
 public:
  explicit FaultContext(const std::string& name) { frame_.text = name.c_str(); }

 private:
  FaultFrame frame_;
};

// Runs `call`. Returns kNone, or the fault that ended it. A fault ends the call without unwinding,
// so `call` must not hold a lock or an object with a destructor. Exceptions pass through.
template <class Call>
[[gnu::noinline]] MapFault TryMapped(const Call& call) {
  FaultFrame frame;
  if (sigsetjmp(frame.jump, 0) != 0) return frame.fault;
  frame.jumps = true;
  call();
  return MapFault::kNone;
}

// Reads one byte of each page of a mapped value of the database `path`, so that the thread that
// reads records in order waits for the disk, and decoding does not. Throws as ThrowMapFault does.
// LMDB stores a small value on the page of its key, which was already read.
inline void TouchPages(const std::string& path, std::string_view value) {
  constexpr size_t kPage = 4096, kBesideKey = 1024;
  if (value.size() <= kBesideKey) return;
  const MapFault fault = TryMapped([&] {
    for (size_t at = 0; at < value.size(); at += kPage) {
      static_cast<void>(*static_cast<const volatile char*>(value.data() + at));
    }
  });
  if (fault != MapFault::kNone) ThrowMapFault(path, fault);
}

}  // namespace trainer
