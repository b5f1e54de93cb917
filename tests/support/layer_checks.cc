#include "support/layer_checks.h"

#include <gtest/gtest.h>

namespace trainer {
namespace {

std::string CurrentTest() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  return test == nullptr ? "" : std::string(test->test_suite_name()) + "." + test->name();
}

}  // namespace

const char* NameOf(LayerCheck check) {
  static const char* const kNames[kLayerChecks] = {"values", "gradient", "in place",
                                                   "images", "refusals", "bf16"};
  return kNames[static_cast<int>(check)];
}

LayerChecks& LayerChecks::Get() {
  static LayerChecks checks;
  return checks;
}

void LayerChecks::Made(const std::string& type, LayerCheck check) {
  rows_[type].done[static_cast<size_t>(check)].insert(CurrentTest());
}

void LayerChecks::Refused(const std::string& type, const std::string& text) {
  Row& row = rows_[type];
  row.done[static_cast<size_t>(LayerCheck::kRefusals)].insert(text);
  if (text.find("cannot get a gradient from this layer") != std::string::npos)
    row.gradient_refused = true;
}

void LayerChecks::NotFor(const std::string& type, LayerCheck check, const std::string& reason) {
  rows_[type].not_for[check] = reason;
}

bool TestExpectsValues() {
  const std::string test = CurrentTest();
  for (const char* part : {".HandValues", ".GoldenValues", ".ImagesEqual"}) {
    if (test.find(part) != std::string::npos) return true;
  }
  return false;
}

std::string TypeIn(const std::string& prototxt) {
  const std::string key = "type: \"";
  const size_t at = prototxt.find(key);
  if (at == std::string::npos) return "";
  const size_t start = at + key.size();
  return prototxt.substr(start, prototxt.find('"', start) - start);
}

}  // namespace trainer
