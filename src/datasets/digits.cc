// No cos, exp or log here: libm's last bits differ between machines. Turns use the half-angle
// formulas, bell curves are sums of uniform numbers.

#include "trainer/datasets/digits.h"

#include <algorithm>
#include <cmath>

#include "digits_shapes.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/log/progress.h"
#include "trainer/base/random/permutation.h"
#include "trainer/base/text/text.h"
#include "trainer/storage/database_writer.h"
#include "trainer/storage/datum.h"

namespace trainer {
namespace {

constexpr int kDigitsSide = DigitImage::kSide;
constexpr uint32_t kDigitsStream = 0x0d161700;  // set 0's; one stream per set
constexpr int kSteps = 5;                       // straight pieces per pair of points
constexpr int kGrid = 4;                        // corners of the field that bends the figure

// The numbers of one image, in a fixed order.
class Dice {
 public:
  Dice(uint64_t seed, uint32_t set, uint64_t index)
      : key_{seed, kDigitsStream + set}, block_(index << 16) {}

  uint32_t Word() {
    if (next_ == 4) {
      words_ = PhiloxBlock(key_, 0, block_++);
      next_ = 0;
    }
    return words_.x[next_++];
  }
  int Below(int n) { return UniformBelow(Word(), n); }
  // In [0, 1), [low, high).
  double Uniform() { return Word() * 0x1p-32; }
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }
  // Mean 0, deviation 1, within +-3.5: a sum of four uniform numbers.
  double Bell() {
    const double sum = Uniform() + Uniform() + Uniform() + Uniform();
    return (sum - 2) * 1.7320508075688772;
  }

 private:
  PhiloxKey key_;
  uint64_t block_;
  Philox4 words_{};
  int next_ = 4;
};

// A smooth displacement: random at the corners of a grid over the unit square, blended in between.
class Bend {
 public:
  Bend(Dice& dice, double size) {
    for (auto& row : corners_) {
      for (PenPoint& corner : row) corner = {size * dice.Bell(), size * dice.Bell()};
    }
  }
  PenPoint At(PenPoint p) const {
    const double x = Clamp(p.x), y = Clamp(p.y);
    const int i = static_cast<int>(x), j = static_cast<int>(y);
    const double u = Smooth(x - i), v = Smooth(y - j);
    const auto blend = [&](double PenPoint::*axis) {
      const double above = (1 - u) * (corners_[j][i].*axis) + u * (corners_[j][i + 1].*axis);
      const double below =
          (1 - u) * (corners_[j + 1][i].*axis) + u * (corners_[j + 1][i + 1].*axis);
      return (1 - v) * above + v * below;
    };
    return {p.x + blend(&PenPoint::x), p.y + blend(&PenPoint::y)};
  }

 private:
  static double Clamp(double t) { return std::clamp(t * (kGrid - 1), 0.0, kGrid - 1.001); }
  static double Smooth(double t) { return t * t * (3 - 2 * t); }
  PenPoint corners_[kGrid][kGrid];
};

// From the unit square to pixels: stretched, slanted, rotated, moved.
class AffineMap {
 public:
  explicit AffineMap(Dice& dice) {
    const double height = 19 * dice.Uniform(0.8, 1.1), width = height * dice.Uniform(0.6, 1.0);
    const double slant = 0.08 + 0.2 * dice.Bell();
    const double half = 0.06 * dice.Bell();  // tangent of half the angle
    const double cosine = (1 - half * half) / (1 + half * half);
    const double sine = 2 * half / (1 + half * half);
    xx_ = cosine * width;
    xy_ = -cosine * slant * height - sine * height;
    yx_ = sine * width;
    yy_ = -sine * slant * height + cosine * height;
    x_ = 14 + 1.25 * dice.Bell();
    y_ = 14 + 1.1 * dice.Bell();
  }
  PenPoint operator()(PenPoint p) const {
    const double u = p.x - 0.5, v = p.y - 0.5;
    return {x_ + xx_ * u + xy_ * v, y_ + yx_ * u + yy_ * v};
  }

 private:
  double xx_, xy_, yx_, yy_, x_, y_;
};

// How far inside the ink each pixel's centre is, in pixels.
class Canvas {
 public:
  Canvas() { depth_.fill(-9); }

  // A straight piece of line with round ends.
  void Line(PenPoint a, PenPoint b, double radius) {
    const double reach = radius + 1;
    const int x0 = Pixel(std::min(a.x, b.x) - reach), x1 = Pixel(std::max(a.x, b.x) + reach);
    const int y0 = Pixel(std::min(a.y, b.y) - reach), y1 = Pixel(std::max(a.y, b.y) + reach);
    const double dx = b.x - a.x, dy = b.y - a.y;
    const double length2 = std::max(dx * dx + dy * dy, 1e-12);
    for (int y = y0; y <= y1; ++y) {
      for (int x = x0; x <= x1; ++x) {
        const double px = x + 0.5 - a.x, py = y + 0.5 - a.y;
        const double t = std::clamp((px * dx + py * dy) / length2, 0.0, 1.0);
        const double ex = px - t * dx, ey = py - t * dy;
        double& depth = depth_[static_cast<size_t>(y * kDigitsSide + x)];
        depth = std::max(depth, radius - std::sqrt(ex * ex + ey * ey));
      }
    }
  }

  double Depth(size_t pixel) const { return depth_[pixel]; }

 private:
  static int Pixel(double at) { return std::clamp(static_cast<int>(at), 0, kDigitsSide - 1); }
  std::array<double, kDigitsSide * kDigitsSide> depth_;
};

// The curve of Catmull and Rom between p1 and p2.
PenPoint OnCurve(PenPoint p0, PenPoint p1, PenPoint p2, PenPoint p3, double t) {
  const auto blend = [t](double a, double b, double c, double d) {
    const double linear = c - a, square = 2 * a - 5 * b + 4 * c - d, cube = 3 * b - a - 3 * c + d;
    return b + 0.5 * t * (linear + t * (square + t * cube));
  };
  return {blend(p0.x, p1.x, p2.x, p3.x), blend(p0.y, p1.y, p2.y, p3.y)};
}

struct Pen {
  double radius, swing;  // pixels; how much the pressure varies
};

void DrawStroke(const PenStroke& stroke, const Bend& bend, const AffineMap& to_pixels,
                const Pen& pen, double wobble, Dice& dice, Canvas& canvas) {
  std::array<PenPoint, 16> points;
  const auto count = static_cast<int>(stroke.points.size());
  for (int i = 0; i < count; ++i) {
    const PenPoint p = stroke.points[static_cast<size_t>(i)];
    points[static_cast<size_t>(i)] = {p.x + wobble * dice.Bell(), p.y + wobble * dice.Bell()};
  }
  const auto at = [&](int i) { return points[static_cast<size_t>(std::clamp(i, 0, count - 1))]; };
  PenPoint last = to_pixels(bend.At(at(0)));
  for (int i = 0; i + 1 < count; ++i) {
    const double radius = pen.radius * (1 + pen.swing * dice.Bell());
    for (int step = 1; step <= kSteps; ++step) {
      const double t = static_cast<double>(step) / kSteps;
      const PenPoint next = to_pixels(bend.At(OnCurve(at(i - 1), at(i), at(i + 1), at(i + 2), t)));
      canvas.Line(last, next, radius);
      last = next;
    }
  }
}

// A stray touch of the pen, anywhere.
void DrawSpeck(Dice& dice, Canvas& canvas) {
  const PenPoint from{dice.Uniform(1, kDigitsSide - 1), dice.Uniform(1, kDigitsSide - 1)};
  const PenPoint to{from.x + 2.5 * dice.Bell(), from.y + 2.5 * dice.Bell()};
  canvas.Line(from, to, dice.Uniform(0.3, 0.8));
}

void Ink(const Canvas& canvas, Dice& dice, DigitImage& image) {
  const double level = dice.Uniform(150, 255), softness = dice.Uniform(0.9, 1.8);
  const double grain = dice.Uniform(0, 24);
  for (size_t i = 0; i < image.pixels.size(); ++i) {
    const double cover = std::clamp(canvas.Depth(i) / softness + 0.5, 0.0, 1.0);
    const double noise = grain * (dice.Uniform() - 0.5) * (cover > 0 ? 2 : 0.5);
    image.pixels[i] = static_cast<uint8_t>(std::clamp(level * cover + noise, 0.0, 255.0));
  }
}

void WriteDigitSet(const DigitsOptions& options, const std::string& path, uint32_t set,
                   int64_t count) {
  DatabaseWriter database(options.backend, path);
  caffe::Datum datum = EmptyDatum(1, kDigitsSide, kDigitsSide);
  Progress progress(Join("Writing ", path), "digits", count);
  for (int64_t i = 0; i < count; ++i) {
    const DigitImage image = DrawDigit(options.seed, set, static_cast<uint64_t>(i));
    datum.set_data(image.pixels.data(), image.pixels.size());
    datum.set_label(image.label);
    database.Put(datum);
    progress.Add(1);
  }
  database.Finish();
}

}  // namespace

DigitImage DrawDigit(uint64_t seed, uint32_t set, uint64_t index) {
  Dice dice(seed, set, index);
  DigitImage image;
  image.label = dice.Below(10);
  const auto shapes = ShapesOf(image.label);
  const DigitShape& shape =
      shapes[static_cast<size_t>(dice.Below(static_cast<int>(shapes.size())))];
  const AffineMap to_pixels(dice);
  const Bend bend(dice, 0.05);
  const Pen pen{dice.Uniform(0.65, 1.7), 0.1};
  Canvas canvas;
  for (const PenStroke& stroke : shape.strokes) {
    DrawStroke(stroke, bend, to_pixels, pen, 0.025, dice, canvas);
  }
  for (int specks = dice.Below(8) - 5; specks > 0; --specks) DrawSpeck(dice, canvas);
  Ink(canvas, dice, image);
  return image;
}

DigitsPaths WriteDigits(const DigitsOptions& options) {
  CheckRecordCount("training", options.train);
  CheckRecordCount("test", options.test);
  const NewFolders folders(options.folder);
  const std::string suffix = DatabaseSuffix(options.backend);
  DigitsPaths paths{JoinPath(options.folder, "train" + suffix),
                    JoinPath(options.folder, "test" + suffix)};
  for (const std::string& path : {paths.train, paths.test}) {
    if (Exists(path)) {
      throw Error(
          ErrorCode::kCannotCreate, {path},
          "the folder already exists and is not overwritten; remove it or choose another folder");
    }
  }
  WriteDigitSet(options, paths.train, 0, options.train);
  WriteDigitSet(options, paths.test, 1, options.test);
  return paths;
}

}  // namespace trainer
