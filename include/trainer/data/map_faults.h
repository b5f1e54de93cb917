#pragma once
// Faults in reading a memory-mapped database. LMDB trusts its file: a damaged page leads it outside
// the map (SIGSEGV); a file that became shorter, a failing disk or a server that went away takes
// pages away (SIGBUS).

#include <setjmp.h>

#include <csignal>
#include <cstddef>
#include <string>

#include "trainer/base/error.h"

namespace trainer {

// Handles SIGSEGV and SIGBUS from now on, for all threads. Pages of a database's map that the
// system could not read are read again until --io_timeout is over (map_mender.h), which the thread
// that met them does not notice. Of what is left a fault inside a TryCall ends that call; on a
// thread with a LostMapScope pages that did not come back read as zeros. Else one in a MappedFile,
// or while a FaultNote lives on the thread, makes a line "error: <database>: ..." for `end`, which
// must end the process with the code and may call only what a signal handler may. So does a SIGBUS
// elsewhere, without a name. Any other fault does what it did before. Called once, at the start.
using EndOnFault = void (*)(const char* line, size_t bytes, ErrorCode code);
void HandleMapFaults(EndOnFault end);

// A map of a database's file, `bytes` from `start`, while it lives: names the database, `path`, in
// faults of whoever reads its records. Any thread.
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

// Of a thread that calls ThrowIfMapLost behind whatever it reads of maps.
class LostMapScope {
 public:
  LostMapScope();
  ~LostMapScope();
  LostMapScope(const LostMapScope&) = delete;
  LostMapScope& operator=(const LostMapScope&) = delete;

 private:
  bool outer_;
};

// Throws kIo where the file of a map that is still there did not come back.
void ThrowIfMapLost();

// What such a signal says about a database.
const char* FaultText(int signal);

}  // namespace trainer
