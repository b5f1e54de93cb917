#pragma once
// Nets of models/ with generated data, for tests that count what a step does.

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "net.pb.h"

namespace trainer {

struct MadeUpModel {
  const char* folder;          // in models/
  std::vector<int64_t> image;  // (C, H, W)
  int batch = 2;
  // Reduces inner products with more than 1000 outputs to 32, because their weights take most of
  // the memory.
  bool small_products = false;
  caffe::Type type = caffe::FLOAT;  // default_forward_type
};

inline void PrintTo(const MadeUpModel& model, std::ostream* out) { *out << model.folder; }

// Returns the training net of the folder's train_test.prototxt as text.
std::string NetText(const MadeUpModel& model);

}  // namespace trainer
