#include "trainer/inference/predict/image_input_flags.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>
#include <string_view>
#include <utility>

#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/file/memory_file.h"
#include "trainer/base/text/parse_number.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

using TextFlag = std::pair<const char*, std::string ImageInputFlags::*>;
constexpr TextFlag kTextFlags[] = {{"list", &ImageInputFlags::list},
                                   {"resize", &ImageInputFlags::resize},
                                   {"resize_short", &ImageInputFlags::resize_short},
                                   {"mean", &ImageInputFlags::mean},
                                   {"mean_value", &ImageInputFlags::mean_value},
                                   {"raw_scale", &ImageInputFlags::raw_scale},
                                   {"scale", &ImageInputFlags::scale}};

// Parses `word`, a part of the flag's value. Throws kUsage with the message that it is not `kind`.
template <class T>
T ParseImageNumber(const char* flag, const std::string& value, const std::string& word,
                   const char* kind) {
  const std::optional<T> number = ParseNumber<T>(word);
  if (number && std::isfinite(static_cast<double>(*number))) return *number;
  throw Error(ErrorCode::kUsage, Join("--", flag, "=", value, ": '", word, "' is not ", kind));
}

constexpr int kMaxSide = 1 << 16;

// Parses "256" or "256,320".
void ParseResize(const std::string& value, PreprocessOptions* options) {
  std::vector<int> sides;
  for (const std::string& word : SplitList(value)) {
    sides.push_back(ParseImageNumber<int>("resize", value, word, "a number of pixels"));
    if (sides.back() < 1 || sides.back() > kMaxSide) {
      throw Error(ErrorCode::kUsage, Join("--resize=", value, ": height and width must be 1 to ",
                                          kMaxSide, " pixels"));
    }
  }
  if (sides.empty() || sides.size() > 2) {
    throw Error(ErrorCode::kUsage,
                Join("--resize=", value, ": give a height and a width, such as --resize=256,256"));
  }
  options->height = sides.front();
  options->width = sides.back();
}

}  // namespace

PreprocessOptions ParseImageFlags(const ImageInputFlags& flags) {
  PreprocessOptions options;
  if (!flags.resize_short.empty()) {
    options.short_side = ParseImageNumber<int>("resize_short", flags.resize_short,
                                               flags.resize_short, "a number of pixels");
    if (options.short_side < 1 || options.short_side > kMaxSide) {
      throw Error(ErrorCode::kUsage, Join("--resize_short=", flags.resize_short,
                                          ": the shorter side must be 1 to ", kMaxSide, " pixels"));
    }
  }
  if (!flags.resize.empty()) {
    ParseResize(flags.resize, &options);
  } else if (flags.oversample && options.short_side == 0) {
    options.height = options.width = 256;
  }
  options.oversample = flags.oversample;
  options.mean_file = flags.mean;
  for (const std::string& word : SplitList(flags.mean_value)) {
    options.mean_values.push_back(
        ParseImageNumber<float>("mean_value", flags.mean_value, word, "a number"));
  }
  const auto parse = [](const char* flag, const std::string& value, float* number) {
    if (!value.empty()) *number = ParseImageNumber<float>(flag, value, value, "a number");
  };
  parse("raw_scale", flags.raw_scale, &options.raw_scale);
  parse("scale", flags.scale, &options.scale);
  if (options.raw_scale == 0 || options.scale == 0) {
    throw Error(ErrorCode::kUsage,
                "--scale and --raw_scale must not be 0: all images would be equal");
  }
  return options;
}

namespace {

// Sets the flag in `text`, e.g. "--scale=0.5". Throws kUsage, with the nearest flag, for an unknown
// flag.
void SetImageFlag(const std::string& text, ImageInputFlags* flags) {
  const size_t equals = text.find('=');
  const std::string name = text.substr(0, equals).substr(std::min<size_t>(2, text.size()));
  const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
  if (name == "oversample") {
    flags->oversample = value.empty() || value == "true" || value == "1";
    return;
  }
  std::vector<std::string> names;
  for (const auto& [known, member] : kTextFlags) {
    if (name == known) {
      flags->*member = value;
      return;
    }
    names.emplace_back(known);
  }
  throw Error(ErrorCode::kUsage,
              Join("'trainer predict' has no flag --", name, ".", DidYouMean(name, names)));
}

// Returns whether any flag is given.
bool HasImageFlags(const ImageInputFlags& flags) {
  return flags.oversample || std::ranges::any_of(kTextFlags, [&](const TextFlag& flag) {
           return !(flags.*flag.second).empty();
         });
}

// Returns whether `flags` has the flag in `text`, or a flag that replaces it: --mean and
// --mean_value replace each other, and so do --resize and --resize_short.
bool HasSameFlag(const ImageInputFlags& flags, const std::string& text) {
  const std::string name = text.substr(0, text.find('='));
  if (name.starts_with("--mean")) return !flags.mean.empty() || !flags.mean_value.empty();
  if (name.starts_with("--resize")) return !flags.resize.empty() || !flags.resize_short.empty();
  if (name == "--oversample") return flags.oversample;
  for (const auto& [known, member] : kTextFlags) {
    if (name.substr(std::min<size_t>(2, name.size())) == known) return !(flags.*member).empty();
  }
  return false;
}

// Holds the comment in a deploy file that says how to preprocess images.
struct PreprocessComment {
  bool found = false;
  int line = 0;
  std::vector<std::string> flags;  // flags with values, e.g. "--scale=0.5"
};

// Splits the flags of a comment. Values may contain blanks, so a value ends at the next " --".
std::vector<std::string> SplitCommentFlags(std::string text) {
  if (text.ends_with(kUnknownSizeNote)) text.resize(text.size() - std::strlen(kUnknownSizeNote));
  std::vector<std::string> flags;
  for (size_t at = 0; at < text.size();) {
    const size_t next = std::min(text.find(" --", at), text.size());
    flags.push_back(text.substr(at, next - at));
    at = next + 1;
  }
  return flags;
}

// Searches the comment lines at the beginning of the net's file.
PreprocessComment FindComment(const NetSpec& net) {
  PreprocessComment comment;
  if (net.text == nullptr) return comment;
  std::istringstream lines(net.text->content);
  for (std::string line; std::getline(lines, line) && line.starts_with('#');) {
    ++comment.line;
    line.erase(line.find_last_not_of(" \t\r") + 1);
    const std::string_view text = std::string_view(line).substr(std::min<size_t>(2, line.size()));
    comment.found = text == kRawPixelsComment;
    for (const std::string_view start : {kPreprocessComment, kOldPreprocessComment}) {
      if (!text.starts_with(start)) continue;
      comment.found = true;
      comment.flags = SplitCommentFlags(std::string(text.substr(start.size())));
    }
    if (comment.found) break;
  }
  return comment;
}

// Logs the flags that the comment gives. If neither a comment nor flags are given, logs that pixels
// are used unchanged.
void LogPreprocessing(const NetSpec& net, const PreprocessComment& comment,
                      const std::vector<std::string>& used, bool flags_given) {
  if (!used.empty()) {
    LOG(INFO) << EscapeControl(Join("Images are prepared as ", net.file, " says: ",
                                    JoinList(used, " "), "; command-line flags override it"));
  } else if (!comment.found && !flags_given) {
    LOG(INFO) << EscapeControl(
        Join("Images are used as pixels from 0 to 255, because no flag and no comment in ",
             net.file, " says how to prepare them"));
  }
}

// Adds the flags `used` in the comment to `flags`. A mean file that does not exist in the working
// folder is looked up in the folder of the net's file, because users copy the two together. The
// mean file of a pack is only looked up there. Throws at the comment's line if a value is wrong, or
// if the comment says that the size of the images is unknown.
ImageInputFlags AddCommentFlags(ImageInputFlags flags, const NetSpec& net, int line,
                                const std::vector<std::string>& used) {
  const SourceRef where{net.file, line};
  ImageInputFlags of_comment;
  if (std::ranges::find(used, "--resize=H,W") != used.end()) {
    throw Error(ErrorCode::kUsage, where,
                "the comment does not give the size of the images before the crop; give that size "
                "with --resize=H,W, or with --resize_short=PIXELS to keep the proportions");
  }
  try {
    for (const std::string& flag : used) SetImageFlag(flag, &of_comment);
    static_cast<void>(ParseImageFlags(of_comment));
  } catch (const Error& error) {
    throw Error(ErrorCode::kConfig, where,
                Join("the comment that says how to prepare images is wrong: ", error.what()));
  }
  for (const std::string& flag : used) SetImageFlag(flag, &flags);
  if (of_comment.mean.empty()) return flags;
  const std::string neighbour = JoinPath(FolderOf(net.file), of_comment.mean);
  const bool is_in_pack = IsMemoryFile(neighbour);
  if (is_in_pack || (!Exists(of_comment.mean) && Exists(neighbour))) flags.mean = neighbour;
  return flags;
}

}  // namespace

ImageInputFlags MergeImageFlags(const ImageInputFlags& flags, const NetSpec& net) {
  const PreprocessComment comment = FindComment(net);
  std::vector<std::string> used;
  for (const std::string& flag : comment.flags) {
    if (!HasSameFlag(flags, flag)) used.push_back(flag);
  }
  LogPreprocessing(net, comment, used, HasImageFlags(flags));
  return AddCommentFlags(flags, net, comment.line, used);
}

PreprocessOptions ResolvePreprocessOptions(const ImageInputFlags& flags, const NetSpec& net) {
  return ParseImageFlags(MergeImageFlags(flags, net));
}

std::string ImageComment(const ImageInputFlags& flags) {
  std::vector<std::string> texts;
  for (const auto& [name, member] : kTextFlags) {
    const bool is_list = member == &ImageInputFlags::list;  // --list does not prepare images
    if (!is_list && !(flags.*member).empty()) texts.push_back(Join("--", name, "=", flags.*member));
  }
  if (flags.oversample) texts.emplace_back("--oversample");
  return texts.empty() ? kRawPixelsComment : Join(kPreprocessComment, JoinList(texts, " "));
}

}  // namespace trainer
