#include "trainer/layers/filler.h"

#include <cmath>
#include <numbers>

#include "trainer/backend/loops/parallel_for.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr std::string_view kPrefix = "filler: ";

// Selects the random numbers of a fill: fills with the same key and pass draw the same ones.
struct Draw {
  PhiloxKey key;
  uint32_t pass;
};

// Calls fill_block(random words, values, count) for each block of four values.
template <class FillBlock>
void ForBlocks(const Draw& draw, std::span<float> values, const FillBlock& fill_block) {
  const auto n = static_cast<int64_t>(values.size());
  ParallelRanges((n + 3) / 4, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const Philox4 words = PhiloxBlock(draw.key, draw.pass, static_cast<uint64_t>(b));
      fill_block(words, values.data() + 4 * b, std::min<int64_t>(4, n - 4 * b));
    }
  });
}

// Draws each value uniformly from [min, max).
void FillUniform(const Draw& draw, float min, float max, std::span<float> values) {
  ForBlocks(draw, values, [=](const Philox4& words, float* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = min + (max - min) * UniformFloat(words.x[i]);
  });
}

// Draws normal values by the method of Box and Muller: two uniform numbers give two independent
// normal ones. The first is taken from (0, 1], which keeps the logarithm finite.
void FillGaussian(const Draw& draw, float mean, float std, std::span<float> values) {
  ForBlocks(draw, values, [=](const Philox4& words, float* to, int64_t n) {
    for (int64_t i = 0; i < n; i += 2) {
      const float u = 1 - UniformFloat(words.x[i]);
      const float angle = 2 * std::numbers::pi_v<float> * UniformFloat(words.x[i + 1]);
      const float radius = std * std::sqrt(-2 * std::log(u));
      to[i] = mean + radius * std::cos(angle);
      if (i + 1 < n) to[i + 1] = mean + radius * std::sin(angle);
    }
  });
}

// Keeps each value with probability `keep`, else sets it to zero. It uses the words after the ones
// from which the values were drawn.
void ZeroAtRandom(const Draw& draw, double keep, std::span<float> values) {
  const uint64_t first = (values.size() + 3) / 4 * 4;
  for (size_t i = 0; i < values.size(); ++i) {
    if (UniformFloat(PhiloxWord(draw.key, draw.pass, first + i)) >= keep) values[i] = 0;
  }
}

// Draws positive values whose sum is 1 in each row along the first axis (Caffe's
// positive_unitball).
void FillUnitBall(const Draw& draw, const Shape& shape, std::span<float> values) {
  FillUniform(draw, 0, 1, values);
  const auto length = static_cast<size_t>(shape.Count() / (shape.Rank() > 0 ? shape[0] : 1));
  for (size_t start = 0; start < values.size(); start += length) {
    const std::span<float> row = values.subspan(start, std::min(length, values.size() - start));
    double sum = 0;
    for (const float v : row) sum += v;
    for (float& v : row) v = static_cast<float>(v / sum);
  }
}

// Computes the kernels of a deconvolution that enlarges an image by ceil(width / 2) with bilinear
// interpolation; all kernels are equal. Throws kConfig unless the blob has square kernels.
void FillBilinear(const LayerSpec& layer, const Shape& shape, std::span<float> values) {
  if (shape.Rank() != 4 || shape[2] != shape[3]) {
    layer.Fail(Join(kPrefix, "bilinear needs a 4-D blob with square kernels, but this blob is ",
                    shape.ToString(), "; use kernel_size, or another filler"));
  }
  const int64_t width = shape[3];
  const double factor = std::ceil(static_cast<double>(width) / 2);
  const double centre = static_cast<double>(width - 1) / (2 * factor);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(static_cast<int64_t>(i) % width);
    const auto y = static_cast<double>(static_cast<int64_t>(i) / width % width);
    values[i] = static_cast<float>((1 - std::fabs(x / factor - centre)) *
                                   (1 - std::fabs(y / factor - centre)));
  }
}

// Returns the count n by which xavier (variance 1 / n) and msra (2 / n) scale: fan_in, fan_out or
// their mean, as variance_norm says.
double FanCount(const caffe::FillerParameter& filler, const Shape& shape) {
  const auto count = static_cast<double>(shape.Count());
  const double in = shape.Rank() > 0 ? count / static_cast<double>(shape[0]) : 1;
  const double out = shape.Rank() > 1 ? count / static_cast<double>(shape[1]) : count;
  switch (filler.variance_norm()) {
    case caffe::FillerParameter::FAN_OUT:
      return out;
    case caffe::FillerParameter::AVERAGE:
      return (in + out) / 2;
    default:
      return in;
  }
}

// Throws kConfig for fields that contradict the type or each other: see Fill.
void CheckFields(const caffe::FillerParameter& filler, const LayerSpec& layer) {
  if (filler.sparse() != -1 && filler.type() != "gaussian") {
    layer.Fail(Join(kPrefix, "sparse works with type \"gaussian\", not with \"", filler.type(),
                    "\"; remove it"));
  }
  if (filler.sparse() < -1) {
    layer.Fail(Join(
        kPrefix, "sparse is ", filler.sparse(),
        "; it is the number of non-zero output weights per input, so it must not be negative"));
  }
  if (filler.type() == "gaussian" && !(filler.std() >= 0)) {
    layer.Fail(Join(kPrefix, "std is ", filler.std(), "; it must be 0 or more"));
  }
  if (filler.type() == "uniform" && !(filler.min() <= filler.max())) {
    layer.Fail(Join(kPrefix, "min ", filler.min(), " is above max ", filler.max()));
  }
  for (const float value :
       {filler.value(), filler.min(), filler.max(), filler.mean(), filler.std()}) {
    if (!std::isfinite(value)) layer.Fail(Join(kPrefix, value, " is not a finite number"));
  }
}

// Throws kConfig for an unknown type, with the nearest name and the list of known ones.
[[noreturn]] void RefuseFillerType(const caffe::FillerParameter& filler, const LayerSpec& layer) {
  const std::string known[] = {"constant", "uniform", "gaussian", "positive_unitball",
                               "xavier",   "msra",    "bilinear"};
  layer.Fail(Join(kPrefix, "unknown type '", EscapeControl(filler.type()), "'.",
                  DidYouMean(filler.type(), known), " Known types: ", JoinList(known)));
}

}  // namespace

void Fill(const caffe::FillerParameter& filler, const Shape& shape, const PhiloxKey& key,
          uint32_t pass, const LayerSpec& layer, std::span<float> values) {
  CheckFields(filler, layer);
  const Draw draw{key, pass};
  const std::string& type = filler.type();
  if (type == "constant") {
    std::ranges::fill(values, filler.value());
  } else if (type == "uniform") {
    FillUniform(draw, filler.min(), filler.max(), values);
  } else if (type == "gaussian") {
    FillGaussian(draw, filler.mean(), filler.std(), values);
    if (filler.sparse() >= 0) {
      const auto outputs = static_cast<double>(shape.Rank() > 0 ? shape[0] : 1);
      ZeroAtRandom(draw, filler.sparse() / outputs, values);
    }
  } else if (type == "positive_unitball") {
    FillUnitBall(draw, shape, values);
  } else if (type == "xavier") {
    const auto bound = static_cast<float>(std::sqrt(3 / FanCount(filler, shape)));
    FillUniform(draw, -bound, bound, values);
  } else if (type == "msra") {
    FillGaussian(draw, 0, static_cast<float>(std::sqrt(2 / FanCount(filler, shape))), values);
  } else if (type == "bilinear") {
    FillBilinear(layer, shape, values);
  } else {
    RefuseFillerType(filler, layer);
  }
}

}  // namespace trainer
