#pragma once
// Guards reads of memory-mapped databases. LMDB trusts its file: a damaged page leads it outside
// the map (SIGSEGV). The system raises SIGBUS if it cannot read a page: the file was truncated, or
// its disk or file server fails.

#include <setjmp.h>

#include <csignal>
#include <cstddef>
#include <string>

#include "trainer/base/error/error.h"

namespace trainer {

enum class MapFault {
  kNone,
  kDamaged,     // SIGSEGV
  kCutShort,    // SIGBUS beyond the present end of the file
  kUnreadable,  // any other SIGBUS
};

// Throws what the fault says about the database `path`: kIo for kUnreadable, else kData.
[[noreturn]] void ThrowMapFault(const std::string& path, MapFault fault);

// Handles SIGSEGV and SIGBUS from now on, for all threads. A fault inside a TryMapped ends that
// call. Any other fault in a MappedRange, or while a FaultContext lives on the thread, makes a line
// "error: <database>: ..." for `end`, which must end the process with the code and may call only
// what a signal handler may. So does a SIGBUS elsewhere, with the name of the file that is mapped
// there. A SIGSEGV elsewhere does what it did before. Called once, at the start.
using EndOnFault = void (*)(const char* line, size_t bytes, ErrorCode code);
void InstallFaultHandler(EndOnFault end);

// A map of a database's file, `bytes` from `start`, while it lives: names the database, `path`, in
// faults of whoever reads its records. Any thread. `fd` is the file's descriptor, which stays open:
// the handler asks it for the size of the file.
class MappedRange {
 public:
  MappedRange(const std::string& path, const void* start, size_t bytes, int fd);
  ~MappedRange();
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

 private:
  struct Slot* slot_;
};

// Each thread has its own objects of these classes, and they nest.
struct FaultFrame {
  sigjmp_buf jump;
  bool jumps = false;
  const char* text = nullptr;  // the database, where it does not jump
  volatile MapFault fault = MapFault::kNone;
  FaultFrame* outer = nullptr;

  FaultFrame();
  ~FaultFrame();
  FaultFrame(const FaultFrame&) = delete;
  FaultFrame& operator=(const FaultFrame&) = delete;
};

// While it lives, a fault on this thread is one of this database: for calls that may not be left
// half done. `name` is the database for messages, without control bytes, and outlives the object.
class FaultContext {
 public:
  explicit FaultContext(const std::string& name) { frame_.text = name.c_str(); }

 private:
  FaultFrame frame_;
};

// Runs `call`. Returns kNone, or the fault that ended it. A fault ends the call without unwinding,
// so it must hold no lock and no object with a destructor. Exceptions pass through.
template <class Call>
[[gnu::noinline]] MapFault TryMapped(const Call& call) {
  FaultFrame frame;
  if (sigsetjmp(frame.jump, 0) != 0) return frame.fault;
  frame.jumps = true;
  call();
  return MapFault::kNone;
}

}  // namespace trainer
