#include <algorithm>
#include <cmath>

#include "trainer/image/image.h"

namespace trainer {
namespace {

constexpr int kBits = 11;  // of a weight's fraction: two products and their sum fit 32 bits

// Output i is (2^kBits - weight) parts of element `low` and `weight` parts of `high`.
struct Tap {
  int low = 0, high = 0, weight = 0;
};

// The centre of output i is at (i + 0.5) * from / to - 0.5; outside the first and last centre the
// border's own value counts.
std::vector<Tap> Taps(int from, int to) {
  std::vector<Tap> taps(static_cast<size_t>(to));
  const double step = static_cast<double>(from) / to;
  for (int i = 0; i < to; ++i) {
    const double at = std::clamp((i + 0.5) * step - 0.5, 0.0, static_cast<double>(from - 1));
    Tap& tap = taps[static_cast<size_t>(i)];
    tap.low = static_cast<int>(at);
    tap.high = std::min(tap.low + 1, from - 1);
    tap.weight = static_cast<int>(std::lround((at - tap.low) * (1 << kBits)));
  }
  return taps;
}

int Blend(int low, int high, int weight) { return (low << kBits) + (high - low) * weight; }

void ResizeLinear(const ImageView& from, const Box& box, int height, int width, Image* to) {
  const std::vector<Tap> rows = Taps(box.height, height), columns = Taps(box.width, width);
  uint8_t* out = to->pixels.data();
  for (int c = 0; c < from.channels; ++c) {
    const uint8_t* corner =
        from.pixels + c * from.Plane() + int64_t{box.top} * from.width + box.left;
    for (const Tap& row : rows) {
      const uint8_t* low = corner + int64_t{row.low} * from.width;
      const uint8_t* high = corner + int64_t{row.high} * from.width;
      for (const Tap& column : columns) {
        const int64_t above = Blend(low[column.low], low[column.high], column.weight);
        const int64_t below = Blend(high[column.low], high[column.high], column.weight);
        const int64_t sum = (above << kBits) + (below - above) * row.weight;
        *out++ = static_cast<uint8_t>((sum + (1 << (2 * kBits - 1))) >> (2 * kBits));
      }
    }
  }
}

// Parts of several elements of a row or column, one list per output.
struct Parts {
  struct Part {
    int at;
    float weight;
  };
  std::vector<Part> parts;
  std::vector<size_t> end;  // of each output's list

  size_t Begin(size_t i) const { return i == 0 ? 0 : end[i - 1]; }
  void Add(int at, double weight) { parts.push_back({at, static_cast<float>(weight)}); }
};

// Keys' cubic with the slope -0.75 at 1: the weight of an element at distance t.
double CubicWeight(double t) {
  constexpr double a = -0.75;
  t = std::fabs(t);
  if (t <= 1) return ((a + 2) * t - (a + 3)) * t * t + 1;
  return t < 2 ? ((a * t - 5 * a) * t + 8 * a) * t - 4 * a : 0;
}

// Elements beyond the border count as the border's own.
void AddCubic(int i, int from, double step, Parts* list) {
  const double at = (i + 0.5) * step - 0.5;
  const int low = static_cast<int>(std::floor(at));
  for (int k = low - 1; k <= low + 2; ++k) {
    list->Add(std::clamp(k, 0, from - 1), CubicWeight(at - k));
  }
}

// What output i covers of each element.
void AddArea(int i, int from, double step, Parts* list) {
  const double begin = i * step, end = std::min((i + 1) * step, static_cast<double>(from));
  for (int k = static_cast<int>(begin); k < from && k < end; ++k) {
    const double covered = std::min<double>(k + 1, end) - std::max<double>(k, begin);
    if (covered > 1e-9) list->Add(k, covered / (end - begin));
  }
}

// OpenCV's area where a side grows: steps with short slopes between them.
void AddGrownArea(int i, int from, int to, double step, Parts* list) {
  const int low = std::min(static_cast<int>(i * step), from - 1);
  const double past = (i + 1) - (low + 1) * static_cast<double>(to) / from;
  const double weight = past <= 0 ? 0 : past - std::floor(past);
  list->Add(low, 1 - weight);
  list->Add(std::min(low + 1, from - 1), weight);
}

Parts PartsOf(Interpolation how, int from, int to, bool shrinks) {
  Parts list;
  const double step = static_cast<double>(from) / to;
  for (int i = 0; i < to; ++i) {
    if (how == Interpolation::kNearest) {
      list.Add(std::min(static_cast<int>(i * step), from - 1), 1);
    } else if (how == Interpolation::kCubic) {
      AddCubic(i, from, step, &list);
    } else if (shrinks) {
      AddArea(i, from, step, &list);
    } else {
      AddGrownArea(i, from, to, step, &list);
    }
    list.end.push_back(list.parts.size());
  }
  return list;
}

// First rows are joined, then the columns of that one row.
void ResizeByParts(const ImageView& from, const Box& box, int height, int width, Image* to,
                   Interpolation how) {
  const bool shrinks = box.height >= height && box.width >= width;
  const Parts rows = PartsOf(how, box.height, height, shrinks);
  const Parts columns = PartsOf(how, box.width, width, shrinks);
  std::vector<float> joined(static_cast<size_t>(box.width));
  uint8_t* out = to->pixels.data();
  for (int c = 0; c < from.channels; ++c) {
    const uint8_t* corner =
        from.pixels + c * from.Plane() + int64_t{box.top} * from.width + box.left;
    for (size_t i = 0; i < rows.end.size(); ++i) {
      std::fill(joined.begin(), joined.end(), 0.0f);
      for (size_t k = rows.Begin(i); k < rows.end[i]; ++k) {
        const uint8_t* row = corner + int64_t{rows.parts[k].at} * from.width;
        for (size_t w = 0; w < joined.size(); ++w) joined[w] += rows.parts[k].weight * row[w];
      }
      for (size_t j = 0; j < columns.end.size(); ++j) {
        float sum = 0.5f;
        for (size_t k = columns.Begin(j); k < columns.end[j]; ++k) {
          sum += columns.parts[k].weight * joined[static_cast<size_t>(columns.parts[k].at)];
        }
        *out++ = static_cast<uint8_t>(std::clamp(sum, 0.0f, 255.0f));
      }
    }
  }
}

}  // namespace

void ResizeImage(const ImageView& from, const Box& box, int height, int width, Image* to,
                 Interpolation how) {
  to->channels = from.channels;
  to->height = height;
  to->width = width;
  to->pixels.resize(static_cast<size_t>(from.channels) * static_cast<size_t>(to->Plane()));
  if (how == Interpolation::kLinear) return ResizeLinear(from, box, height, width, to);
  ResizeByParts(from, box, height, width, to, how);
}

}  // namespace trainer
