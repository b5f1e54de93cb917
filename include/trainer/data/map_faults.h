#pragma once
// Faults in reading a memory-mapped database. LMDB trusts its file: a damaged page leads it outside
// the map (SIGSEGV), and a file that became shorter, or a failing disk, takes pages away (SIGBUS).

#include <setjmp.h>

#include <csignal>
#include <cstddef>
#include <string>

namespace trainer {

// Handles SIGSEGV and SIGBUS from now on, for all threads. A fault inside a TryCall ends that call.
// One in a MappedFile, or while a FaultNote lives on the thread, makes a line "error: <database>:
// ..." for `end`, which must end the process with kData and may call only what a signal handler
// may. So does a SIGBUS elsewhere, without a name. Any other fault does what it did before. Called
// once, at the start.
using EndOnFault = void (*)(const char* line, size_t bytes);
void HandleMapFaults(EndOnFault end);

// A map of a database's file, `bytes` from `start`, while it lives: names the database in faults of
// whoever reads its records. Any thread.
class MappedFile {
 public:
  MappedFile(const std::string& path, const void* start, size_t bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

 private:
  struct Slot* slot_;
};

// The parts below are of one thread, and nest.
struct FaultFrame {
  sigjmp_buf jump;
  bool jumps = false;
  const char* text = nullptr;  // the database, where it does not jump
  volatile std::sig_atomic_t signal = 0;
  FaultFrame* outer = nullptr;

  FaultFrame();
  ~FaultFrame();
  FaultFrame(const FaultFrame&) = delete;
  FaultFrame& operator=(const FaultFrame&) = delete;
};

// While it lives, a fault on this thread is one of this database: for calls that may not be left
// half done.
class FaultNote {
 public:
  explicit FaultNote(const std::string& path);

 private:
  std::string text_;
  FaultFrame frame_;
};

// Runs `call`, and returns 0, or the signal of the fault that ended it. A fault leaves it where it
// stands: it must hold no lock and nothing that needs a destructor. Exceptions pass.
template <class Call>
[[gnu::noinline]] int TryCall(const Call& call) {
  FaultFrame frame;
  if (sigsetjmp(frame.jump, 0) != 0) return frame.signal;
  frame.jumps = true;
  call();
  return 0;
}

// What such a signal says about a database.
const char* FaultText(int signal);

}  // namespace trainer
