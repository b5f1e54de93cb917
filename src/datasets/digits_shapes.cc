#include "digits_shapes.h"

#include <array>

namespace trainer {
namespace {

// Points in hundredths of the square.
template <int... kValues>
struct Line {
  static constexpr std::array<int, sizeof...(kValues)> kHundredths{kValues...};
  static constexpr auto Make() {
    std::array<PenPoint, sizeof...(kValues) / 2> points{};
    for (size_t i = 0; i < points.size(); ++i) {
      points[i] = {kHundredths[2 * i] / 100.0, kHundredths[2 * i + 1] / 100.0};
    }
    return points;
  }
  static constexpr auto kPoints = Make();
};

template <class... Lines>
struct Shape {
  static constexpr std::array<PenStroke, sizeof...(Lines)> kStrokes{PenStroke{Lines::kPoints}...};
};

template <class... Shapes>
struct Ways {
  static constexpr std::array<DigitShape, sizeof...(Shapes)> kAll{DigitShape{Shapes::kStrokes}...};
};

using Zero = Ways<Shape<Line<50, 0, 15, 18, 8, 50, 18, 84, 50, 100, 83, 82, 92, 50, 84, 17, 50, 0>>,
                  Shape<Line<64, 4, 32, 14, 16, 50, 26, 90, 55, 97, 80, 70, 82, 28, 60, 3, 40, 12>>,
                  Shape<Line<56, 2, 20, 12, 5, 50, 25, 92, 66, 95, 94, 60, 84, 15, 46, 0, 30, 6>>,
                  Shape<Line<40, 4, 20, 40, 26, 84, 55, 98, 74, 60, 70, 16, 36, 2>>>;

using One = Ways<
    Shape<Line<50, 0, 50, 50, 50, 100>>,
    Shape<Line<28, 26, 44, 14, 56, 0>, Line<56, 0, 52, 50, 50, 100>>,
    Shape<Line<26, 24, 44, 12, 54, 0>, Line<54, 0, 52, 50, 52, 100>, Line<24, 99, 52, 100, 80, 98>>,
    Shape<Line<66, 0, 54, 48, 38, 100>>, Shape<Line<34, 8, 50, 2, 56, 20, 54, 60, 58, 100>>>;

using Two = Ways<
    Shape<Line<10, 26, 32, 3, 74, 7, 82, 34, 52, 68, 10, 99>, Line<10, 99, 50, 96, 92, 97>>,
    Shape<Line<15, 22, 48, 0, 82, 20, 66, 56, 28, 91, 12, 90, 22, 78, 50, 88, 94, 98>>,
    Shape<Line<12, 8, 50, 1, 86, 10>, Line<86, 10, 48, 52, 10, 98>, Line<10, 98, 50, 94, 90, 95>>,
    Shape<Line<18, 30, 30, 6, 66, 2, 80, 24, 70, 52, 40, 80, 14, 96, 40, 92, 70, 98, 92, 90>>>;

using Three =
    Ways<Shape<Line<12, 15, 44, 0, 82, 14, 72, 40, 40, 48>,
               Line<40, 48, 78, 56, 88, 80, 52, 100, 10, 88>>,
         Shape<Line<12, 4, 50, 2, 86, 4>, Line<86, 4, 64, 24, 42, 42>,
               Line<42, 42, 84, 54, 86, 84, 46, 100, 10, 87>>,
         Shape<Line<20, 12, 56, 1, 80, 22, 62, 44, 38, 48, 66, 52, 86, 74, 62, 97, 16, 92>>,
         Shape<Line<16, 4, 62, 6, 70, 30, 46, 44>, Line<46, 44, 76, 60, 66, 88, 36, 99, 8, 92>>>;

using Four = Ways<
    Shape<Line<20, 0, 16, 30, 12, 56>, Line<12, 56, 50, 54, 92, 52>, Line<70, 4, 68, 50, 68, 100>>,
    Shape<Line<68, 0, 40, 32, 8, 66>, Line<8, 66, 50, 66, 96, 64>, Line<68, 0, 67, 50, 66, 100>>,
    Shape<Line<15, 4, 12, 38, 36, 56, 76, 45>, Line<84, 0, 76, 45, 70, 100>>,
    Shape<Line<30, 0, 22, 28, 8, 60>, Line<8, 60, 48, 62, 90, 56>, Line<62, 26, 58, 60, 50, 100>>>;

using Five =
    Ways<Shape<Line<84, 2, 54, 3, 25, 4>, Line<25, 4, 22, 24, 19, 46>,
               Line<19, 46, 56, 35, 88, 62, 66, 95, 12, 91>>,
         Shape<Line<86, 5, 42, 4, 22, 28, 50, 46, 86, 68, 60, 97, 12, 90>>,
         Shape<Line<30, 10, 24, 44, 62, 40, 86, 70, 50, 100, 12, 88>, Line<30, 10, 60, 5, 92, 0>>,
         Shape<Line<80, 0, 50, 4, 34, 2>, Line<34, 2, 28, 20, 24, 42>,
               Line<24, 42, 60, 44, 78, 66, 60, 90, 30, 99, 6, 92>>>;

using Six =
    Ways<Shape<Line<72, 0, 30, 25, 10, 65, 30, 97, 70, 95, 86, 70, 60, 50, 26, 60, 13, 76>>,
         Shape<Line<56, 0, 36, 28, 18, 62, 18, 88, 50, 100, 82, 82, 66, 58, 38, 60, 18, 76>>,
         Shape<Line<82, 10, 50, 2, 20, 34, 12, 74, 44, 100, 80, 82, 62, 54, 24, 66>>,
         Shape<Line<44, 0, 28, 40, 24, 80, 46, 100, 68, 86, 62, 64, 40, 64, 26, 80>>>;

using Seven = Ways<
    Shape<Line<8, 5, 50, 5, 92, 3>, Line<92, 3, 62, 45, 40, 100>>,
    Shape<Line<8, 8, 50, 4, 88, 4>, Line<88, 4, 60, 50, 46, 100>, Line<28, 50, 54, 48, 80, 46>>,
    Shape<Line<12, 22, 12, 12, 12, 3>, Line<12, 3, 50, 6, 90, 5>, Line<90, 5, 66, 50, 44, 100>>,
    Shape<Line<8, 14, 40, 2, 86, 8, 84, 24, 60, 54, 52, 100>>>;

using Eight =
    Ways<Shape<Line<76, 10, 46, 0, 20, 20, 46, 45, 82, 72, 56, 100, 18, 80, 45, 50, 80, 24, 70, 7>>,
         Shape<Line<50, 0, 22, 12, 25, 38, 50, 46, 77, 36, 77, 10, 50, 0>,
               Line<50, 46, 16, 62, 16, 88, 50, 100, 86, 88, 86, 60, 50, 46>>,
         Shape<Line<66, 2, 34, 8, 32, 30, 56, 46, 74, 70, 60, 97, 34, 94, 32, 70, 58, 42, 74, 18,
                    58, 0>>,
         Shape<Line<80, 6, 48, 2, 26, 18, 48, 42, 66, 66, 54, 96, 30, 94, 28, 72, 60, 44, 84, 20>>>;

using Nine =
    Ways<Shape<Line<82, 20, 52, 0, 18, 20, 26, 48, 60, 50, 82, 20>, Line<82, 20, 78, 60, 66, 100>>,
         Shape<Line<80, 10, 46, 2, 16, 24, 30, 50, 64, 44, 80, 10>, Line<80, 10, 80, 55, 80, 100>>,
         Shape<Line<82, 22, 54, 0, 20, 18, 24, 46, 58, 52, 82, 22>,
               Line<82, 22, 88, 60, 66, 95, 24, 92>>,
         Shape<Line<74, 16, 50, 2, 26, 16, 30, 40, 56, 44, 74, 16, 66, 60, 46, 100>>>;

}  // namespace

std::span<const DigitShape> ShapesOf(int digit) {
  static constexpr std::array<std::span<const DigitShape>, 10> kDigits{
      Zero::kAll, One::kAll, Two::kAll,   Three::kAll, Four::kAll,
      Five::kAll, Six::kAll, Seven::kAll, Eight::kAll, Nine::kAll};
  return kDigits[static_cast<size_t>(digit)];
}

}  // namespace trainer
