#include "augment/gaussian_blur.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

namespace trainer {
namespace {

constexpr uint32_t kBlurOne = 1u << 16;  // the sum of the weights

std::vector<uint32_t> BlurWeights(int size, double sigma) {
  std::vector<double> exact(static_cast<size_t>(size));
  for (int i = 0; i < size; ++i) {
    const double distance = (i - size / 2) / sigma;
    exact[static_cast<size_t>(i)] = std::exp(-0.5 * distance * distance);
  }
  const double sum = std::accumulate(exact.begin(), exact.end(), 0.0);
  std::vector<uint32_t> weights;
  for (const double weight : exact) {
    weights.push_back(static_cast<uint32_t>(std::lround(weight / sum * kBlurOne)));
  }
  const auto middle = static_cast<size_t>(size / 2);
  weights[middle] += kBlurOne - std::accumulate(weights.begin(), weights.end(), 0u);
  return weights;
}

// Mirrors a place at the first and the last of `size` elements.
int64_t MirroredPlace(int64_t place, int64_t size) {
  if (place < 0) return -place;
  return place < size ? place : 2 * size - 2 - place;
}

// Writes the blurred row to `to`, with 8 fractional bits. `padded` is overwritten.
void BlurRow(const std::vector<uint32_t>& weights, const uint8_t* from, int64_t width,
             std::vector<uint8_t>* padded, uint16_t* to) {
  const auto half = static_cast<int64_t>(weights.size() / 2);
  padded->resize(static_cast<size_t>(width + 2 * half));
  for (int64_t x = -half; x < width + half; ++x) {
    (*padded)[static_cast<size_t>(x + half)] = from[MirroredPlace(x, width)];
  }
  for (int64_t x = 0; x < width; ++x) {
    const uint8_t* const at = padded->data() + x;
    uint32_t sum = kBlurOne / 512;  // rounds
    for (size_t k = 0; k < weights.size(); ++k) sum += weights[k] * at[k];
    to[x] = static_cast<uint16_t>(sum >> 8);
  }
}

}  // namespace

void GaussianBlur(int kernel_size, double sigma, const PixelSpan& part) {
  thread_local std::vector<uint8_t> padded;
  thread_local std::vector<uint16_t> rows;  // of one channel, blurred along the rows
  thread_local std::vector<uint32_t> sums;
  const std::vector<uint32_t> weights = BlurWeights(kernel_size, sigma);
  const int64_t half = kernel_size / 2, width = part.width;
  rows.resize(static_cast<size_t>(part.height * width));
  sums.resize(static_cast<size_t>(width));
  for (int c = 0; c < part.channels; ++c) {
    for (int64_t y = 0; y < part.height; ++y) {
      BlurRow(weights, part.Row(c, y), width, &padded, rows.data() + y * width);
    }
    for (int64_t y = 0; y < part.height; ++y) {
      std::ranges::fill(sums, 1u << 23);  // rounds
      for (int64_t k = -half; k <= half; ++k) {
        const uint32_t weight = weights[static_cast<size_t>(k + half)];
        const uint16_t* const from = rows.data() + MirroredPlace(y + k, part.height) * width;
        for (int64_t x = 0; x < width; ++x) sums[static_cast<size_t>(x)] += weight * from[x];
      }
      uint8_t* const to = part.Row(c, y);
      for (int64_t x = 0; x < width; ++x) {
        to[x] = static_cast<uint8_t>(sums[static_cast<size_t>(x)] >> 24);
      }
    }
  }
}

}  // namespace trainer
