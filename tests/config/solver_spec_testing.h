#pragma once

#include <gtest/gtest.h>

#include <string>

#include "config/config_testing.h"
#include "trainer/config/solver_spec.h"

namespace trainer {

// The fields that every solver needs, except its net.
inline constexpr char kRest[] = "\nbase_lr: 0.1 lr_policy: 'fixed' max_iter: 10\n";

class SolverSpecTest : public testing::Test {
 protected:
  SolverSpecTest() {
    net_ = folder_.Write("net.prototxt", "name: 'n' layer { name: 'd' type: 'T' top: 'x' }");
  }

  SolverSpec Load(const std::string& text, const StateFlags& flags = {}) {
    return LoadSolver(folder_.Write("s.prototxt", text), flags);
  }

  // Returns the message without the folder.
  std::string Refusal(const std::string& text) {
    return CatchConfig([&] { Load(text); }).text.substr(folder_.path().size() + 1);
  }
  std::string RestRefusal(const std::string& text) {
    return Refusal("net: 'net.prototxt'\n" + text);
  }

  TempFolder folder_;
  std::string net_;
};

}  // namespace trainer
