#pragma once
// Golden values: inputs and expected outputs from an independent implementation, made by
// scripts/golden/ and kept in tests/golden/.
//
// The files are text: `#` comments, then cases of
//   case NAME         all of the line, blanks too
//   text KEY          any lines up to one that reads `end`: a layer, a solver
//   tensor NAME DIMS... : numbers in row-major order, over as many lines as it takes
//   number NAME VALUE

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace trainer {

struct GoldenTensor {
  std::vector<int64_t> dims;  // (N, C, H, W) for images; none for a scalar
  std::vector<float> values;  // row-major in that order
};

struct GoldenCase {
  std::string name;
  std::map<std::string, std::string> texts;
  std::map<std::string, GoldenTensor> tensors;
  std::map<std::string, double> numbers;

  // Throw kData naming the case when it has no such entry.
  const std::string& Text(const std::string& key) const;
  const GoldenTensor& Tensor(const std::string& key) const;
  double Number(const std::string& key) const;
};

// Reads tests/golden/<file>. Throws kNoInput, or kData with the line.
std::vector<GoldenCase> ReadGolden(const std::string& file);
// The same from memory; `name` is for messages.
std::vector<GoldenCase> ParseGolden(const std::string& name, const std::string& content);

// The numbers that scripts and tests both compute, instead of storing them. Word `index` of stream
// `stream`: the 32-bit finaliser of MurmurHash3, applied to stream and index.
uint32_t HashWord(uint32_t stream, uint32_t index);
// Uniform in [-bound, bound), rounded once to float.
float HashWeight(uint32_t stream, uint32_t index, double bound);
// The label (below `classes`) of made-up image `index`, and its bytes, `pixels` in all: a pattern
// per label plus noise. Byte `pixel` of a made-up mean of such images.
uint32_t HashLabel(uint32_t index, uint32_t classes);
uint8_t HashPixel(uint32_t index, uint32_t label, uint32_t pixel, uint32_t pixels);
uint8_t HashMean(uint32_t pixel);

}  // namespace trainer
