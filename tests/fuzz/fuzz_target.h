#pragma once
// A fuzz target is a function of bytes that must return, whatever the bytes are. libFuzzer calls it
// (preset fuzz); in every other build replay.cc runs it over the inputs in corpus/.

#include <glog/logging.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trainer/base/error/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace trainer {

// Returns whether a fuzzer generated an HDF5 file. These files are replayed but not fuzzed, because
// HDF5 1.10 leaks and reads out of bounds on damaged files, which hides this project's own bugs.
inline bool IsFuzzedHdf5([[maybe_unused]] const uint8_t* data, [[maybe_unused]] size_t size) {
#ifdef TRAINER_FUZZ
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  return bytes.find("\x89HDF\r\n\x1a\n") != std::string_view::npos;
#else
  return false;
#endif
}

// Runs `body`. An Error is a good outcome, unless its code says that the program is at fault.
// Anything else that is thrown ends the process.
template <class Body>
int ExpectRefusalOrSuccess(const Body& body) {
  FLAGS_minloglevel = google::GLOG_FATAL;
  try {
    body();
  } catch (const Error& e) {
    if (e.code() == ErrorCode::kInternal) throw;
  }
  return 0;
}

}  // namespace trainer
