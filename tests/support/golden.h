#pragma once
// Golden values: inputs and expected outputs from an independent implementation, made by
// scripts/golden/ and kept in tests/golden/.
//
// The files are text: `#` comments, then cases of
//   case NAME         all of the line, including blanks
//   text KEY          any lines up to a line `end`: a layer, a solver
//   tensor NAME DIMS... : numbers in row-major order, over any number of lines
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

  // Throws kData naming the case if it has no such entry.
  const std::string& Text(const std::string& key) const;
  const GoldenTensor& Tensor(const std::string& key) const;
  double Number(const std::string& key) const;
};

// Reads tests/golden/<file>. Throws kNoInput, or kData with the line.
std::vector<GoldenCase> ReadGolden(const std::string& file);
// Reads the same from memory; `name` is for messages.
std::vector<GoldenCase> ParseGolden(const std::string& name, const std::string& content);

// Numbers that scripts and tests both compute, instead of storing them. Returns word `index` of
// stream `stream`: the 32-bit finaliser of MurmurHash3, applied to stream and index.
uint32_t HashWord(uint32_t stream, uint32_t index);
// Returns a number uniform in [-bound, bound), rounded once to float.
float HashWeight(uint32_t stream, uint32_t index, double bound);
// HashLabel returns the label (below `classes`) of synthetic image `index`; HashPixel returns one
// of its `pixels` bytes, a pattern per label plus noise; HashMean returns byte `pixel` of a
// synthetic mean of such images.
uint32_t HashLabel(uint32_t index, uint32_t classes);
uint8_t HashPixel(uint32_t index, uint32_t label, uint32_t pixel, uint32_t pixels);
uint8_t HashMean(uint32_t pixel);

}  // namespace trainer
