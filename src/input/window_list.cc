#include "trainer/input/window_list.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/file/text_file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// The words of a text, with their lines.
class Words {
 public:
  Words(const std::string& path, std::string_view text) : path_(path), rest_(text) { SkipBlanks(); }

  bool AtEnd() const { return rest_.empty(); }
  int line() const { return line_; }

  std::string_view Take(const char* what) {
    if (AtEnd()) Fail(Join("the list ends, but ", what, " is expected"));
    size_t length = 0;
    while (length < rest_.size() && !IsBlank(rest_[length])) ++length;
    return Cut(length);
  }
  // To the end of the line: a path may hold blanks.
  std::string_view TakeLine(const char* what) {
    if (AtEnd()) Fail(Join("the list ends, but ", what, " is expected"));
    size_t length = std::min(rest_.find('\n'), rest_.size());
    while (length > 0 && IsBlank(rest_[length - 1])) --length;
    return Cut(length);
  }
  template <class T>
  T TakeNumber(const char* what) {
    const int line = line_;
    const std::string_view word = Take(what);
    const std::optional<T> value = ParseNumber<T>(word);
    if (value) return *value;
    line_ = line;
    Fail(Join("found '", EscapeControl(word.substr(0, 80)), "', but ", what,
              " (a number) is expected"));
  }
  [[noreturn]] void Fail(const std::string& message) const {
    throw Error(ErrorCode::kData, {path_, line_}, message);
  }

 private:
  static bool IsBlank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
  std::string_view Cut(size_t length) {
    const std::string_view word = rest_.substr(0, length);
    rest_.remove_prefix(length);
    SkipBlanks();
    return word;
  }
  void SkipBlanks() {
    while (!rest_.empty() && IsBlank(rest_.front())) {
      line_ += rest_.front() == '\n';
      rest_.remove_prefix(1);
    }
  }

  const std::string& path_;
  std::string_view rest_;
  int line_ = 1;
};

Window ReadWindow(Words& words, size_t image) {
  Window window;
  window.image = image;
  window.line = words.line();
  window.label = words.TakeNumber<int32_t>("a window's class");
  window.overlap = words.TakeNumber<float>("a window's overlap");
  window.x1 = words.TakeNumber<int>("a window's x1");
  window.y1 = words.TakeNumber<int>("a window's y1");
  window.x2 = words.TakeNumber<int>("a window's x2");
  window.y2 = words.TakeNumber<int>("a window's y2");
  return window;
}

void CheckWindow(const std::string& path, const Window& window) {
  constexpr int kMost = 1 << 24;
  const auto [low, high] = std::minmax({window.x1, window.y1, window.x2, window.y2});
  if (window.x2 >= window.x1 && window.y2 >= window.y1 && low > -kMost && high < kMost &&
      std::isfinite(window.overlap)) {
    return;
  }
  throw Error(ErrorCode::kData, {path, window.line},
              Join("the window ", window.BoxText(), " of overlap ", window.overlap,
                   " is not a valid box: it needs x1 <= x2 and y1 <= y2, all below ", kMost,
                   ", and a finite overlap"));
}

void ReadBlock(const std::string& path, Words& words, WindowList* list) {
  if (words.Take("'# index'") != "#") words.Fail("the block of an image must begin with '# index'");
  words.TakeNumber<int64_t>("the image's index");
  const int line = words.line();
  list->images.push_back(
      {std::string(words.TakeLine("the image's path")), 0, line, list->images.size()});
  for (const char* what : {"the number of channels", "the height", "the width"}) {
    const int at = words.line();
    if (words.TakeNumber<int64_t>(what) >= 1) continue;
    throw Error(ErrorCode::kData, {path, at}, Join(what, " is below 1"));
  }
  const auto windows = words.TakeNumber<int64_t>("the number of windows");
  for (int64_t i = 0; i < windows; ++i) {
    list->windows.push_back(ReadWindow(words, list->images.size() - 1));
    CheckWindow(path, list->windows.back());
  }
}

// One axis of FitWindow. The box is widened to `centre` +- `half`; `size` is the result's side.
struct AxisFit {
  int from = 0, length = 0;             // in the picture
  int before = 0, after = 0, side = 0;  // in the result: cut off, cut off, what is left
};

AxisFit FitAxis(double centre, double half, int64_t extent, int size) {
  const int64_t low = std::llround(centre - half), high = std::llround(centre + half);
  const int64_t cut_low = std::max(int64_t{0}, -low);
  const int64_t cut_high = std::max(int64_t{0}, high - extent + 1);
  const int64_t length = std::max(int64_t{0}, high - cut_high - (low + cut_low) + 1);
  const auto scaled = [scale = static_cast<double>(size) /
                               static_cast<double>(high - low + 1)](int64_t pixels) {
    return static_cast<int>(std::llround(static_cast<double>(pixels) * scale));
  };
  return {static_cast<int>(low + cut_low), static_cast<int>(length), scaled(cut_low),
          scaled(cut_high), scaled(length)};
}

}  // namespace

std::string Window::BoxText() const { return Join(x1, " ", y1, " ", x2, " ", y2); }

WindowList ReadWindowList(const std::string& path) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  const std::string content = ReadListFile(path, kMaxBytes);
  WindowList list;
  Words words(path, content);
  while (!words.AtEnd()) ReadBlock(path, words, &list);
  if (list.windows.empty()) throw Error(ErrorCode::kData, {path}, "the list has no windows");
  return list;
}

WindowRegion FitWindow(const Window& window, int image_height, int image_width,
                       const WindowCrop& crop, bool mirror) {
  WindowRegion region;
  if (crop.context_pad == 0 && !crop.square) {
    region.from = {window.x1, window.y1, window.x2 - window.x1 + 1, window.y2 - window.y1 + 1};
    region.width = region.height = crop.size;
    return region;
  }
  double half_height = (window.y2 - window.y1 + 1) / 2.0;
  double half_width = (window.x2 - window.x1 + 1) / 2.0;
  const double centre_x = window.x1 + half_width, centre_y = window.y1 + half_height;
  if (crop.square) half_width = half_height = std::max(half_width, half_height);
  const double factor = static_cast<double>(crop.size) / (crop.size - 2 * crop.context_pad);
  const AxisFit x = FitAxis(centre_x, half_width * factor, image_width, crop.size);
  const AxisFit y = FitAxis(centre_y, half_height * factor, image_height, crop.size);
  region.from = {x.from, y.from, x.length, y.length};
  region.left = mirror ? x.after : x.before;
  region.top = y.before;
  region.width = std::min(x.side, crop.size - region.left);  // rounding may exceed the side
  region.height = std::min(y.side, crop.size - region.top);
  return region;
}

}  // namespace trainer
