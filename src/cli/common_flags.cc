#include "trainer/cli/common_flags.h"

#include <gflags/gflags.h>

#include <string>
#include <vector>

#include "trainer/base/error/error.h"
#include "trainer/base/log/terminal.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::vector<Flag> MakeCommonFlags() {
  return {
      {.name = "minloglevel",
       .kind = FlagKind::kWhole,
       .value = "N",
       .help = "lowest level to log: 0 information, 1 warnings, 2 errors",
       .max = 4},
      {.name = "v", .kind = FlagKind::kWhole, .value = "N", .help = "log details up to this level"},
      {.name = "vmodule",
       .value = "LIST",
       .help = "log details for single source files: name=N,..."},
      {.name = "log_dir", .value = "DIR", .help = "also write the log to a file in DIR"},
      {.name = "logtostderr", .kind = FlagKind::kSwitch, .help = "write the log to stderr only"},
      {.name = "alsologtostderr",
       .kind = FlagKind::kSwitch,
       .help = "also write the log to stderr"},
      {.name = "color",
       .value = "WHEN",
       .fallback = "auto",
       .help = "color errors, warnings and best values: auto, always or never; auto: on a "
               "terminal, unless NO_COLOR is set",
       .choices = "auto|always|never"},
      {.name = "flagfile", .value = "FILE", .help = "read flags from FILE, one per line"},
      {.name = "fromenv",
       .value = "NAMES",
       .help = "take these flags from the environment: --fromenv=gpu reads FLAGS_gpu"},
      {.name = "tryfromenv",
       .value = "NAMES",
       .help = "the same, without an error if a variable is not set"}};
}

}  // namespace

std::span<const Flag> CommonFlags() {
  static const std::vector<Flag> flags = MakeCommonFlags();
  return flags;
}

void ApplyCommonFlags(const Flags& flags) {
  const std::string& color = flags.Text("color");
  SetColorChoice(color == "always"  ? ColorChoice::kAlways
                 : color == "never" ? ColorChoice::kNever
                                    : ColorChoice::kAuto);
  SetShowsLogLines(flags.Switch("logtostderr") || flags.Switch("alsologtostderr") ||
                   flags.Whole("v") > 0);
  for (const char* const name :
       {"minloglevel", "v", "vmodule", "log_dir", "logtostderr", "alsologtostderr"}) {
    const std::string& value = flags.Text(name);
    if (value.empty()) continue;
    if (gflags::SetCommandLineOption(name, value.c_str()).empty()) {
      throw Error(ErrorCode::kUsage, Join("--", name, "=", value, ": glog rejects this value"));
    }
  }
}

}  // namespace trainer
