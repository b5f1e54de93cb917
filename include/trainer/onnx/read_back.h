#pragma once

#include <string>

#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"
#include "trainer/onnx/export_onnx.h"

namespace trainer {

// Holds the result of comparing a model with the net that it was made from.
struct ReadBackResult {
  std::string output;        // the output with the largest difference
  float difference = 0;      // the largest difference between two numbers of this output
  float largest = 0;         // the largest magnitude in this output
  std::string why_not = "";  // why the two were not compared; "" if they were

  float Relative() const { return largest > 0 ? difference / largest : difference; }
};

// Returns the result as a sentence.
std::string ToText(const ReadBackResult& result);

// Reads the model at `path`, converts it to a net by ImportOnnx, and runs that net and the exported
// `net` on the same random numbers. The numbers are in [0, 1], or pixels in [0, 255] if the model
// begins with a preprocessing. Does not compare models with operators that ImportOnnx does not
// know. Throws as ReadOnnx does.
ReadBackResult CompareWithModel(const std::string& path, Net& net,
                                const OnnxExportOptions& options);

}  // namespace trainer
