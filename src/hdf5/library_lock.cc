#include "library_lock.h"

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::recursive_mutex& LibraryMutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

herr_t TakeFirst(unsigned, const H5E_error2_t* entry, void* text) {
  auto* reason = static_cast<std::string*>(text);
  if (reason->empty() && entry->desc != nullptr) *reason = entry->desc;
  return 0;
}

}  // namespace

Hdf5Lock::Hdf5Lock() : lock_(LibraryMutex()) {
  static const bool ready = H5open() >= 0 && H5PLset_loading_state(0) >= 0;
  if (!ready) throw Error(ErrorCode::kInternal, "the HDF5 library could not be started");
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

std::string Hdf5Reason() {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, TakeFirst, &reason);
  return EscapeControl(reason.empty() ? "unknown reason" : reason);
}

void ThrowHdf5(ErrorCode code, const std::string& path, const std::string& what,
               const std::string& advice) {
  const std::string reason = Hdf5Reason();
  throw Error(code, {path}, Join(what, ": ", reason, "; ", advice));
}

}  // namespace trainer
