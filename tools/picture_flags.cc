#include "picture_flags.h"

#include <glog/logging.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <sstream>
#include <string_view>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/text_file.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/flag_set.h"

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
void ReadSize(const Flags& flags, PreprocessOptions* options) {
  constexpr int kMost = 1 << 16;
  std::vector<int> sides;
  for (const std::string& word : flags.List("resize")) {
    sides.push_back(FlagNumber<int>(flags, "resize", word, "a number of pixels"));
    if (sides.back() < 1 || sides.back() > kMost) {
      throw Error(ErrorCode::kUsage, Join("--resize=", flags.Text("resize"),
                                          ": height and width must be 1 to ", kMost, " pixels"));
    }
  }
  if (sides.empty() || sides.size() > 2) {
    throw Error(ErrorCode::kUsage, Join("--resize=", flags.Text("resize"),
                                        ": give a height and a width, such as --resize=256,256"));
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
  return {
      {.name = "list", .value = "FILE", .help = "file with the paths of more images, one per line"},
      {.name = "resize",
       .value = "H,W",
       .help = "resize images to this size, then crop the center to the size of the net's input; "
               "default: resize to the size of the input (with --oversample: to 256,256)"},
      {.name = "oversample",
       .kind = FlagKind::kSwitch,
       .help =
           "classify ten crops (corners and center, plain and mirrored) and average the scores"},
      {.name = "mean",
       .value = "FILE",
       .help = "binaryproto file with the mean image to subtract; if its size differs from the "
               "images, its channel means are subtracted"},
      {.name = "mean_value",
       .value = "LIST",
       .help = "number to subtract, or one number per channel: blue, green, red"},
      {.name = "raw_scale",
       .value = "X",
       .help = "value of white before the mean is subtracted; 1 for nets trained on values from 0 "
               "to 1; default: 255"},
      {.name = "scale",
       .value = "X",
       .help =
           "factor applied after the mean is subtracted (scale of transform_param); default: 1"}};
}

namespace {

// How the file of a net says that images are prepared.
struct Preparation {
  bool known = false;
  int line = 0;
  std::vector<std::string> flags;  // "--scale=0.5"
};

// Values may hold blanks: a flag ends where the next one begins.
std::vector<std::string> FlagsIn(std::string text) {
  if (text.ends_with(kSizeOfTheData)) text.resize(text.size() - std::strlen(kSizeOfTheData));
  std::vector<std::string> flags;
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find(" --", at), text.size());
    flags.push_back(text.substr(at, next - at));
    at = next + 1;
  }
  return flags;
}

Preparation PreparationIn(const NetSpec& net) {
  Preparation found;
  if (net.text == nullptr) return found;
  std::istringstream lines(net.text->content);
  for (std::string line; std::getline(lines, line) && line.starts_with('#');) {
    ++found.line;
    line.erase(line.find_last_not_of(" \t\r") + 1);
    const std::string_view text = std::string_view(line).substr(std::min<size_t>(2, line.size()));
    found.known = text == kImagesAsTheyAre || text.starts_with(kPrepareImages);
    if (text.starts_with(kPrepareImages)) {
      found.flags = FlagsIn(std::string(text.substr(std::strlen(kPrepareImages))));
    }
    if (found.known) break;
  }
  return found;
}

// "--mean" of both --mean and --mean_value, of which one is enough.
std::string_view Purpose(std::string_view flag) {
  const std::string_view name = flag.substr(0, flag.find('='));
  return name.starts_with("--mean") ? name.substr(0, std::strlen("--mean")) : name;
}

void LogPreparation(const NetSpec& net, const Preparation& file,
                    const std::vector<std::string>& used, const std::vector<std::string>& given) {
  if (!used.empty()) {
    std::string text;
    for (const std::string& flag : used) text += " " + flag;
    LOG(INFO) << EscapeControl(Join("Images are prepared as ", net.file, " says:", text,
                                    "; command-line flags override it"));
  } else if (!file.known && given.empty()) {
    LOG(INFO) << EscapeControl(
        Join("Images are used as pixels from 0 to 255, because no flag and no comment in ",
             net.file, " says how to prepare them"));
  }
}

PreprocessOptions OptionsIn(const Flags& flags) {
  PreprocessOptions options;
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
  if (flags.Has("raw_scale")) options.raw_scale = Float(flags, "raw_scale");
  if (flags.Has("scale")) options.scale = Float(flags, "scale");
  return options;
}

// The options that the file's comment alone gives. A mean that is not in the working folder may be
// in the file's, since a deploy file travels with it.
PreprocessOptions OptionsOfFile(const NetSpec& net, const Preparation& file,
                                const std::vector<std::string>& used) {
  const SourceRef place{net.file, file.line};
  for (const std::string& flag : used) {
    if (flag != "--resize=H,W") continue;
    throw Error(ErrorCode::kUsage, place,
                "the comment does not give the size of the images before the crop; give that size "
                "with --resize=H,W");
  }
  try {
    PreprocessOptions options = OptionsIn(ParseFlags("classify", PictureFlags(), used));
    const std::string beside = JoinPath(FolderOf(net.file), options.mean_file);
    if (!options.mean_file.empty() && !Exists(options.mean_file) && Exists(beside)) {
      options.mean_file = beside;
    }
    return options;
  } catch (const Error& error) {
    throw Error(ErrorCode::kConfig, place,
                Join("the comment that says how to prepare images is wrong: ", error.what()));
  }
}

}  // namespace

PreprocessOptions PictureOptionsOf(const Flags& flags, const NetSpec& net) {
  const std::vector<std::string> given = GivenFlags(PictureFlags(), flags);
  const Preparation file = PreparationIn(net);
  std::vector<std::string> used;
  for (const std::string& flag : file.flags) {
    const bool again = std::ranges::any_of(
        given, [&](const std::string& other) { return Purpose(other) == Purpose(flag); });
    if (!again) used.push_back(flag);
  }
  LogPreparation(net, file, used, given);
  const PreprocessOptions of_file = OptionsOfFile(net, file, used);
  std::vector<std::string> all = given;
  for (const std::string& flag : used) {
    all.push_back(Purpose(flag) == "--mean" && !of_file.mean_file.empty()
                      ? Join("--mean=", of_file.mean_file)
                      : flag);
  }
  return OptionsIn(ParseFlags("classify", PictureFlags(), all));
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
