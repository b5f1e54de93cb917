#pragma once
// Provides image convolutions for tests.

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <tuple>

#include "trainer/backend/primitives/conv.h"

namespace trainer {

inline ConvDesc ImageConv(int64_t n, int64_t c, int64_t h, int64_t w, int64_t m, int64_t kernel,
                          int64_t stride = 1, int64_t pad = 0, int64_t group = 1,
                          int64_t dilation = 1) {
  return {.batch = n,
          .in_channels = c,
          .out_channels = m,
          .group = group,
          .in = {h, w},
          .kernel = {kernel, kernel},
          .stride = {stride, stride},
          .pad = {pad, pad},
          .dilation = {dilation, dilation}};
}

inline ConvDesc WithoutBias(ConvDesc desc) {
  desc.bias = false;
  return desc;
}

struct ConvCase {
  const char* name;
  ConvDesc desc;
};
inline void PrintTo(const ConvCase& c, std::ostream* out) { *out << c.name; }

// Returns the test name suffix of a parameter.
inline std::string NameOfCase(const testing::TestParamInfo<std::tuple<ConvCase, DType>>& info) {
  return std::get<0>(info.param).name + std::string(NameOf(std::get<1>(info.param)));
}

}  // namespace trainer
