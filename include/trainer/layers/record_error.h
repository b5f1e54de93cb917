#pragma once

#include <cstdint>

#include "trainer/base/error/error.h"

namespace trainer {

// An Error that one item of a batch caused: item `item` of a layer's input `input`. The net adds
// the name of the record to the message.
class RecordError : public Error {
 public:
  RecordError(const Error& error, int input, int64_t item)
      : Error(error), input_(input), item_(item) {}

  int input() const { return input_; }
  int64_t item() const { return item_; }

 private:
  int input_;
  int64_t item_;
};

}  // namespace trainer
