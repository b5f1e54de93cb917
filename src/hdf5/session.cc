#include "session.h"

#include <atomic>
#include <chrono>

#include "trainer/base/left_threads.h"
#include "trainer/base/text.h"
#include "trainer/hdf5/held.h"

namespace trainer {
namespace {

std::recursive_timed_mutex& LibraryMutex() {
  static std::recursive_timed_mutex mutex;
  return mutex;
}

std::atomic<bool> held{false};  // for good

// Reads of other threads that hold it come to an end; one of a thread that was left behind does
// not. By the system's clock: ThreadSanitizer of GCC 12 does not know what waits by the steady one
// (pthread_mutex_clocklock), and a turn may be of any length.
std::unique_lock<std::recursive_timed_mutex> LockLibrary() {
  constexpr std::chrono::milliseconds kTurn{100};
  constexpr int kMostTurns = 50;
  std::unique_lock lock(LibraryMutex(), std::defer_lock);
  const auto end_of_turn = [&] {
    return std::chrono::system_clock::now() + (held ? std::chrono::milliseconds(0) : kTurn);
  };
  for (int turns = 0; !lock.try_lock_until(end_of_turn());) {
    if (HasThreadsLeftBehind() && ++turns > kMostTurns) held = true;
    if (held) {
      throw Error(ErrorCode::kIo,
                  "the HDF5 library is held by a read that does not come back: the disk or the "
                  "file server does not answer");
    }
  }
  return lock;
}

herr_t TakeFirst(unsigned, const H5E_error2_t* entry, void* text) {
  auto* reason = static_cast<std::string*>(text);
  if (reason->empty() && entry->desc != nullptr) *reason = entry->desc;
  return 0;
}

}  // namespace

bool Hdf5IsHeld() { return held; }

Hdf5Lock::Hdf5Lock() : lock_(LockLibrary()) {
  static const bool ready = H5open() >= 0 && H5PLset_loading_state(0) >= 0;
  if (!ready) throw Error(ErrorCode::kInternal, "the HDF5 library could not be started");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

bool Hdf5Handle::Close() {
  if (id_ < 0) return true;
  const hid_t id = std::exchange(id_, -1);
  try {
    const Hdf5Lock lock;
    return H5Idec_ref(id) >= 0;
  } catch (const Error&) {  // the process ends, and the handle with it
    return false;
  }
}

std::string Hdf5Reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, TakeFirst, &reason);
  return EscapeControl(reason.empty() ? "the library gives no reason" : reason);
}

void ThrowHdf5(ErrorCode code, const std::string& path, const std::string& what,
               const std::string& advice) {
  const std::string reason = Hdf5Reason();
  throw Error(code, {path}, Join(what, ": ", reason, "; ", advice));
}

}  // namespace trainer
