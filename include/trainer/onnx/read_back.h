#pragma once

#include <string>

#include "trainer/config/net_spec.h"
#include "trainer/net/net.h"
#include "trainer/onnx/export_onnx.h"

namespace trainer {

// The comparison of a model with the net that it was made from.
struct ReadBackResult {
  std::string output;        // the output with the largest difference
  float difference = 0;      // between two numbers of it
  float largest = 0;         // magnitude of a number of this output
  std::string why_not = "";  // why the two were not compared; "" if they were

  float Relative() const { return largest > 0 ? difference / largest : difference; }
};

// Returns the result as a sentence.
std::string ToText(const ReadBackResult& result);

// Reads the model at `path`, converts it to a net by ImportOnnx, and runs it and `net` on the same
// random numbers: from 0 to 1, or with a preprocessing in the model pixels from 0 to 255. `net` is
// the one that was exported. Does not compare models with operators that ImportOnnx does not know.
// Throws as ReadOnnx.
ReadBackResult CompareWithModel(const std::string& path, Net& net,
                                const OnnxExportOptions& options);

}  // namespace trainer
