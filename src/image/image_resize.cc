#include <algorithm>
#include <cmath>
#include <type_traits>

#include "trainer/image/image.h"

namespace trainer {
namespace {

constexpr int kBits = 11;  // of a weight's fraction: two products and their sum fit 32 bits

// Output i is (2^kBits - weight) parts of element `low` and `weight` parts of `high`.
struct LinearTap {
  int low = 0, high = 0, weight = 0;
};

// A part of a row or column: it begins `offset` past the edge of the first element that it touches.
struct SourceSpan {
  SourceSpan(double begin, double size)
      : first(static_cast<int>(begin)),
        offset(begin - first),
        length(size),
        elements(static_cast<int>(std::ceil(offset + length - kSliver))) {}
  // The fraction of an element below which a part does not reach into it.
  static constexpr double kSliver = 1e-9;

  int first;              // element
  double offset, length;  // in elements
  int elements;           // that it touches
};

// The centre of output i is at (i + 0.5) * length / to - 0.5; outside, the border's value counts.
std::vector<LinearTap> Taps(const SourceSpan& span, int to) {
  std::vector<LinearTap> taps(static_cast<size_t>(to));
  const double step = span.length / to;
  const int last = span.elements - 1;
  for (int i = 0; i < to; ++i) {
    const double at =
        std::clamp(span.offset + (i + 0.5) * step - 0.5, 0.0, static_cast<double>(last));
    LinearTap& tap = taps[static_cast<size_t>(i)];
    tap.low = static_cast<int>(at);
    tap.high = std::min(tap.low + 1, last);
    tap.weight = static_cast<int>(std::lround((at - tap.low) * (1 << kBits)));
  }
  return taps;
}

int Blend(int low, int high, int weight) { return (low << kBits) + (high - low) * weight; }

// The part of a picture that is resized.
struct Spans {
  SourceSpan rows, columns;
  // Its first number of channel c; `numbers` are those of the whole picture.
  template <class T>
  const T* Corner(const T* numbers, const ImageView& from, int c) const {
    return numbers + c * from.Plane() + int64_t{rows.first} * from.width + columns.first;
  }
};

void ResizeLinear(const ImageView& from, const Spans& part, int height, int width, Image* to) {
  const std::vector<LinearTap> rows = Taps(part.rows, height), columns = Taps(part.columns, width);
  uint8_t* out = to->pixels.data();
  for (int c = 0; c < from.channels; ++c) {
    const uint8_t* corner = part.Corner(from.pixels, from, c);
    for (const LinearTap& row : rows) {
      const uint8_t* low = corner + int64_t{row.low} * from.width;
      const uint8_t* high = corner + int64_t{row.high} * from.width;
      for (const LinearTap& column : columns) {
        const int64_t above = Blend(low[column.low], low[column.high], column.weight);
        const int64_t below = Blend(high[column.low], high[column.high], column.weight);
        const int64_t sum = (above << kBits) + (below - above) * row.weight;
        *out++ = static_cast<uint8_t>((sum + (1 << (2 * kBits - 1))) >> (2 * kBits));
      }
    }
  }
}

// FilterWeights of several elements of a row or column, one list per output.
struct FilterWeights {
  struct Part {
    int at;
    float weight;
  };
  std::vector<Part> parts;
  std::vector<size_t> end;  // of each output's list

  size_t Begin(size_t i) const { return i == 0 ? 0 : end[i - 1]; }
  void Add(int at, double weight) { parts.push_back({at, static_cast<float>(weight)}); }
};

void AddLinear(int i, const SourceSpan& span, double step, FilterWeights* list) {
  const int last = span.elements - 1;
  const double at =
      std::clamp(span.offset + (i + 0.5) * step - 0.5, 0.0, static_cast<double>(last));
  const int low = static_cast<int>(at);
  list->Add(low, 1 - (at - low));
  list->Add(std::min(low + 1, last), at - low);
}

// Keys' cubic with the slope -0.75 at 1: the weight of an element at distance t.
double CubicWeight(double t) {
  constexpr double a = -0.75;
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

// Elements beyond the border count as the border's own.
void AddCubic(int i, const SourceSpan& span, double step, FilterWeights* list) {
  const double at = span.offset + (i + 0.5) * step - 0.5;
  const int low = static_cast<int>(std::floor(at));
  for (int k = low - 1; k <= low + 2; ++k) {
    list->Add(std::clamp(k, 0, span.elements - 1), CubicWeight(at - k));
  }
}

// The weights by which output i covers each element.
void AddArea(int i, const SourceSpan& span, double step, FilterWeights* list) {
  const double begin = span.offset + i * step;
  const double end = span.offset + std::min((i + 1) * step, span.length);
  for (int k = static_cast<int>(begin); k < span.elements && k < end; ++k) {
    const double covered = std::min<double>(k + 1, end) - std::max<double>(k, begin);
    if (covered > SourceSpan::kSliver) list->Add(k, covered / (end - begin));
  }
}

// OpenCV's area where a side grows: steps with short slopes between them.
void AddGrownArea(int i, int from, int to, double step, FilterWeights* list) {
  const int low = std::min(static_cast<int>(i * step), from - 1);
  const double past = (i + 1) - (low + 1) * static_cast<double>(to) / from;
  const double weight = past <= 0 ? 0 : past - std::floor(past);
  list->Add(low, 1 - weight);
  list->Add(std::min(low + 1, from - 1), weight);
}

// A triangle around the centre, as wide as two outputs or two elements, within the border.
void AddTriangle(int i, const SourceSpan& span, double step, FilterWeights* list) {
  const double reach = std::max(step, 1.0), centre = span.offset + (i + 0.5) * step;
  const int begin = std::max(static_cast<int>(std::floor(centre - reach)), 0);
  const int end = std::min(static_cast<int>(std::ceil(centre + reach)), span.elements);
  const auto weight = [&](int k) { return std::max(0.0, 1 - std::fabs(k + 0.5 - centre) / reach); };
  double sum = 0;
  for (int k = begin; k < end; ++k) sum += weight(k);
  for (int k = begin; k < end; ++k) {
    if (weight(k) > 0) list->Add(k, weight(k) / sum);
  }
}

FilterWeights PartsOf(Interpolation how, const SourceSpan& span, int to, bool shrinks) {
  FilterWeights list;
  const double step = span.length / to;
  for (int i = 0; i < to; ++i) {
    if (how == Interpolation::kNearest) {
      list.Add(std::min(static_cast<int>(span.offset + i * step), span.elements - 1), 1);
    } else if (how == Interpolation::kLinear) {
      AddLinear(i, span, step, &list);
    } else if (how == Interpolation::kCubic) {
      AddCubic(i, span, step, &list);
    } else if (how == Interpolation::kSmooth) {
      AddTriangle(i, span, step, &list);
    } else if (shrinks) {
      AddArea(i, span, step, &list);
    } else {
      AddGrownArea(i, span.elements, to, step, &list);
    }
    list.end.push_back(list.parts.size());
  }
  return list;
}

// First rows are joined, then the columns of that one row. `in` and `out` are the numbers of `from`
// and of the result, both bytes or both floats.
template <class T>
void ResizeByParts(const ImageView& from, const T* in, const Spans& part, int height, int width,
                   Interpolation how, T* out) {
  constexpr bool kRounds = std::is_same_v<T, uint8_t>;
  const bool shrinks = part.rows.length >= height && part.columns.length >= width;
  const FilterWeights rows = PartsOf(how, part.rows, height, shrinks);
  const FilterWeights columns = PartsOf(how, part.columns, width, shrinks);
  std::vector<float> joined(static_cast<size_t>(part.columns.elements));
  for (int c = 0; c < from.channels; ++c) {
    const T* corner = part.Corner(in, from, c);
    for (size_t i = 0; i < rows.end.size(); ++i) {
      std::fill(joined.begin(), joined.end(), 0.0f);
      for (size_t k = rows.Begin(i); k < rows.end[i]; ++k) {
        const T* row = corner + int64_t{rows.parts[k].at} * from.width;
        for (size_t w = 0; w < joined.size(); ++w) joined[w] += rows.parts[k].weight * row[w];
      }
      for (size_t j = 0; j < columns.end.size(); ++j) {
        float sum = kRounds ? 0.5f : 0;
        for (size_t k = columns.Begin(j); k < columns.end[j]; ++k) {
          sum += columns.parts[k].weight * joined[static_cast<size_t>(columns.parts[k].at)];
        }
        *out++ = kRounds ? static_cast<T>(std::clamp(sum, 0.0f, 255.0f)) : static_cast<T>(sum);
      }
    }
  }
}

}  // namespace

void ResizeRegion(const ImageView& from, const RectF& region, int height, int width, Image* to,
                  Interpolation how) {
  to->channels = from.channels;
  to->height = height;
  to->width = width;
  const size_t count = static_cast<size_t>(from.channels) * static_cast<size_t>(to->Plane());
  const bool floats = from.floats != nullptr;
  to->pixels.resize(floats ? 0 : count);
  to->floats.resize(floats ? count : 0);
  const Spans part{{region.top, region.height}, {region.left, region.width}};
  if (floats) {
    ResizeByParts(from, from.floats, part, height, width, how, to->floats.data());
  } else if (how == Interpolation::kLinear) {
    ResizeLinear(from, part, height, width, to);
  } else {
    ResizeByParts(from, from.pixels, part, height, width, how, to->pixels.data());
  }
}

void ResizeImage(const ImageView& from, const Rect& box, int height, int width, Image* to,
                 Interpolation how) {
  const RectF region{static_cast<double>(box.left), static_cast<double>(box.top),
                     static_cast<double>(box.width), static_cast<double>(box.height)};
  ResizeRegion(from, region, height, width, to, how);
}

}  // namespace trainer
