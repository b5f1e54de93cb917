#include "generative/parzen_window.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "trainer/backend/loops/map_rows.h"
#include "trainer/backend/loops/math.h"

namespace trainer {
namespace {

// Computes |x|^2 of each row.
struct SquaresRow {
  const float* values;
  float* squares;
  int64_t width;
  template <class Row>
  HD void operator()(const Row& row) const {
    const float* const x = values + row.index * width;
    const float sum = row.Sum([&](int64_t i) { return x[i] * x[i]; });
    row.Once([&] { squares[row.index] = sum; });
  }
};

// Computes log mean_i exp(-scale |x - s_i|^2) of a record, with |x - s|^2 = |x|^2 - 2 x s + |s|^2,
// so that one matrix product gives all distances.
struct DensityRow {
  const float *products, *record_squares, *sample_squares;
  float* densities;
  int64_t samples;
  float scale;
  template <class Row>
  HD void operator()(const Row& row) const {
    const float* const of_record = products + row.index * samples;
    const float square = record_squares[row.index];
    const auto exponent = [&](int64_t i) {
      return -scale * (square - 2 * of_record[i] + sample_squares[i]);
    };
    const float top = row.Max(exponent);
    const float sum = row.Sum([&](int64_t i) { return Exp(exponent(i) - top); });
    row.Once([&] { densities[row.index] = top + logf(sum / static_cast<float>(samples)); });
  }
};

size_t Size(int64_t count) { return static_cast<size_t>(count); }

}  // namespace

ParzenWindow::ParzenWindow(const Device& device, std::span<const float> samples, int64_t width,
                           int64_t rows)
    : device_(device),
      samples_(static_cast<int64_t>(samples.size()) / width),
      width_(width),
      rows_(rows),
      sample_values_(device, samples.size()),
      sample_squares_(device, Size(samples_)),
      records_(device, Size(rows * width)),
      record_squares_(device, Size(rows)),
      products_(device, Size(rows * samples_)),
      densities_(device, Size(rows)),
      product_(device.NewGemm({.m = rows, .n = samples_, .k = width, .trans_b = true})),
      scratch_(device, product_->ScratchBytes() / sizeof(float) + 1) {
  device.CopyToDevice(sample_values_.data(), samples.data(), samples.size_bytes());
  MapRows(device, samples_, width,
          SquaresRow{sample_values_.data(), sample_squares_.data(), width});
}

// Computes the distances of a block of records from all samples once, and uses them for every
// width.
std::vector<double> ParzenWindow::MeanLogDensities(std::span<const float> records,
                                                   std::span<const double> sigmas) {
  std::vector<double> sums(sigmas.size());
  std::vector<float> host(Size(rows_));
  const int64_t count = static_cast<int64_t>(records.size()) / width_;
  for (int64_t first = 0; first < count; first += rows_) {
    const int64_t now = std::min(rows_, count - first);
    device_.CopyToDevice(records_.data(), records.data() + first * width_,
                         Size(now * width_) * sizeof(float));
    MapRows(device_, now, width_, SquaresRow{records_.data(), record_squares_.data(), width_});
    product_->Run(records_.data(), sample_values_.data(), nullptr, products_.data(),
                  {reinterpret_cast<std::byte*>(scratch_.data()), scratch_.size() * sizeof(float)});
    for (size_t s = 0; s < sigmas.size(); ++s) {
      const double variance = sigmas[s] * sigmas[s];
      MapRows(device_, now, samples_,
              DensityRow{products_.data(), record_squares_.data(), sample_squares_.data(),
                         densities_.data(), samples_, static_cast<float>(0.5 / variance)});
      device_.CopyToHost(host.data(), densities_.data(), Size(now) * sizeof(float));
      const double norm =
          0.5 * static_cast<double>(width_) * std::log(2 * std::numbers::pi * variance);
      for (int64_t i = 0; i < now; ++i) sums[s] += host[Size(i)] - norm;
    }
  }
  for (double& sum : sums) sum /= static_cast<double>(count);
  return sums;
}

}  // namespace trainer
