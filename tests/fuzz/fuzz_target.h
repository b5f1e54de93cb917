#pragma once
// A fuzz target: a function of bytes that must come back, whatever they are. libFuzzer calls it
// (preset fuzz); in every other build replay.cc runs it over the inputs in corpus/.

#include <glog/logging.h>

#include <cstddef>
#include <cstdint>

#include "trainer/base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace trainer {

// Runs `body`. A refusal is a good outcome, but never one that calls itself a fault of the program.
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
