#include "picture_flags.h"

#include <charconv>
#include <cmath>
#include <sstream>

#include "trainer/base/error.h"
#include "trainer/base/file.h"
#include "trainer/base/text.h"
#include "trainer/base/text_file.h"

namespace trainer {
namespace {

template <class T>
T FlagNumber(const Flags& flags, const char* flag, const std::string& word, const char* kind) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc() && end == word.data() + word.size() && std::isfinite(value))
    return value;
  throw Error(ErrorCode::kUsage,
              Join("--", flag, "=", flags.Text(flag), ": '", word, "' is not ", kind));
}

float Float(const Flags& flags, const char* flag) {
  return FlagNumber<float>(flags, flag, flags.Text(flag), "a number");
}

// "256" or "256,320"
void ReadSize(const Flags& flags, PictureOptions* options) {
  constexpr int kMost = 1 << 16;
  std::vector<int> sides;
  for (const std::string& word : flags.List("resize")) {
    sides.push_back(FlagNumber<int>(flags, "resize", word, "a number of pixels"));
    if (sides.back() < 1 || sides.back() > kMost) {
      throw Error(ErrorCode::kUsage,
                  Join("--resize=", flags.Text("resize"), ": a side has 1 to ", kMost, " pixels"));
    }
  }
  if (sides.empty() || sides.size() > 2) {
    throw Error(ErrorCode::kUsage, Join("--resize=", flags.Text("resize"),
                                        ": write a height and a width, as --resize=256,256"));
  }
  options->height = sides.front();
  options->width = sides.back();
}

// A line without the label after its path.
std::string PathIn(const std::string& line) {
  const size_t blank = line.find_last_of(" \t");
  if (blank == std::string::npos || Exists(line)) return line;
  const bool number = line.find_first_not_of("-0123456789", blank + 1) == std::string::npos;
  if (!number) return line;
  return line.substr(0, line.find_last_not_of(" \t", blank) + 1);
}

}  // namespace

std::vector<Flag> PictureFlags() {
  return {{.name = "list", .value = "FILE", .help = "more images, a path in each line"},
          {.name = "resize",
           .value = "H,W",
           .help = "resize images to this, then cut out the middle as large as the net's "
                   "input; default: resize to the input, with --oversample to 256,256"},
          {.name = "oversample",
           .kind = FlagKind::kSwitch,
           .help = "show corners and middle, also mirrored, and take the mean of the ten answers"},
          {.name = "mean",
           .value = "FILE",
           .help = "a binaryproto file to subtract; of another size than the images, the means "
                   "of its channels"},
          {.name = "mean_value",
           .value = "LIST",
           .help = "one number to subtract, or one for each channel: blue, green, red"},
          {.name = "raw_scale",
           .value = "X",
           .fallback = "255",
           .help = "what white is before the mean is subtracted; 1 for nets trained on 0 to 1"},
          {.name = "scale",
           .value = "X",
           .fallback = "1",
           .help = "factor after the mean, transform_param's scale"}};
}

PictureOptions PictureOptionsOf(const Flags& flags) {
  PictureOptions options;
  if (flags.Has("resize")) {
    ReadSize(flags, &options);
  } else if (flags.Switch("oversample")) {
    options.height = options.width = 256;
  }
  options.oversample = flags.Switch("oversample");
  options.mean_file = flags.Text("mean");
  for (const std::string& word : flags.List("mean_value")) {
    options.mean_values.push_back(FlagNumber<float>(flags, "mean_value", word, "a number"));
  }
  options.raw_scale = Float(flags, "raw_scale");
  options.scale = Float(flags, "scale");
  return options;
}

std::vector<std::string> PicturesOf(const Flags& flags) {
  constexpr uint64_t kMaxBytes = uint64_t{1} << 30;
  std::vector<std::string> paths = flags.words();
  if (!flags.Has("list")) return paths;
  const size_t before = paths.size();
  std::istringstream lines(ReadListFile(flags.Text("list"), kMaxBytes));
  for (std::string line; std::getline(lines, line);) {
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) paths.push_back(PathIn(line));
  }
  if (paths.size() > before) return paths;
  throw Error(ErrorCode::kData, {flags.Text("list")},
              "the list names no images; write one path per line");
}

}  // namespace trainer
