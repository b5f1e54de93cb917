#pragma once
// The nets of models/ on made-up numbers, for tests that count what a step of them does.

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
  // Inner products of more outputs than 1000 get 32: their weights take most of the memory.
  bool small_products = false;
  caffe::Type type = caffe::FLOAT;  // of values
};

inline void PrintTo(const MadeUpModel& model, std::ostream* out) { *out << model.folder; }

// The training net of the folder's train_test.prototxt.
std::string NetText(const MadeUpModel& model);

}  // namespace trainer
