#include "gflags_store.h"

#include <fnmatch.h>
#include <gflags/gflags.h>

#include <cstdlib>
#include <map>
#include <memory>

#include "trainer/base/error/error.h"
#include "trainer/base/file/text_file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

// gflags keeps pointers to the names and values.
struct StoredFlag {
  std::string value, fallback;
  std::unique_ptr<gflags::FlagRegisterer> registerer;
};

// Returns the flags that this program has registered with gflags.
std::map<std::string, StoredFlag, std::less<>>& StoredFlags() {
  static std::map<std::string, StoredFlag, std::less<>> flags;
  return flags;
}

// Replaces flags that name a source of flags, a file or the environment, by the flags from there.
class FlagSourceExpander {
 public:
  std::vector<std::string> Expand(const std::vector<std::string>& arguments) {
    AddExpanded(arguments);
    return std::move(expanded_);
  }

 private:
  // Appends the arguments to the result, with --flagfile, --fromenv and --tryfromenv replaced by
  // the flags that they name. Flag files may name further flag files, at most 100 in all; arguments
  // after -- stay unchanged.
  void AddExpanded(const std::vector<std::string>& arguments) {
    for (size_t i = 0; i < arguments.size(); ++i) {
      FlagText flag;
      if (arguments[i] == "--") {
        expanded_.insert(expanded_.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                         arguments.end());
        break;
      }
      const bool expands =
          SplitFlag(arguments[i], &flag) &&
          (flag.name == "flagfile" || flag.name == "fromenv" || flag.name == "tryfromenv");
      if (expands && !flag.has_value && i + 1 < arguments.size()) flag.value = arguments[++i];
      if (!expands || flag.value.empty()) {
        expanded_.push_back(arguments[i]);  // the parser says that the value is missing
      } else if (flag.name == "flagfile") {
        AddFiles(flag.value);
      } else {
        AddEnvironment(flag);
      }
    }
  }

  // Appends the flags of a comma-separated list of files. Skips flags below a line that names other
  // programs only.
  void AddFiles(const std::string& paths) {
    constexpr int kMostFiles = 100;
    constexpr uint64_t kMostBytes = 1 << 20;
    for (const std::string& path : SplitList(paths)) {
      if (++files_ > kMostFiles) {
        throw Error(ErrorCode::kUsage, {path},
                    "--flagfile: flag files name each other in a circle");
      }
      bool is_ours = true, were_programs = false;
      for (const std::string& line : SplitList(ReadListFile(path, kMostBytes), '\n')) {
        if (line.empty() || line[0] == '#') continue;
        const bool is_flag = line[0] == '-';
        if (!is_flag) {
          if (!were_programs) is_ours = false;
          for (const std::string& program : SplitList(line, ' ')) {
            is_ours = is_ours || fnmatch(program.c_str(), "trainer", 0) == 0;
          }
        } else if (is_ours) {
          AddExpanded({line});
        }
        were_programs = !is_flag;
      }
    }
  }

  // Appends --NAME=VALUE for each listed variable FLAGS_NAME. One that is not set is an error for
  // --fromenv, and is skipped for --tryfromenv.
  void AddEnvironment(const FlagText& flag) {
    for (const std::string& name : SplitList(flag.value)) {
      const std::string variable = "FLAGS_" + name;
      const char* const value = std::getenv(variable.c_str());
      if (value != nullptr) {
        expanded_.push_back(Join("--", name, "=", value));
      } else if (flag.name == "fromenv") {
        throw Error(ErrorCode::kUsage,
                    Join("--fromenv=", EscapeControl(name), ": the environment variable ",
                         EscapeControl(variable), " is not set"));
      }
    }
  }

  std::vector<std::string> expanded_;
  int files_ = 0;
};

}  // namespace

void StoreInGflags(std::span<const Flag> table, const Flags& values) {
  for (const Flag& flag : table) {
    const std::string name(flag.name);
    auto& stored = StoredFlags();
    auto found = stored.find(name);
    if (found == stored.end()) {
      gflags::CommandLineFlagInfo info;
      if (gflags::GetCommandLineFlagInfo(name.c_str(), &info)) continue;
      found = stored
                  .emplace(name, StoredFlag{std::string(flag.fallback), std::string(flag.fallback),
                                            nullptr})
                  .first;
      found->second.registerer = std::make_unique<gflags::FlagRegisterer>(
          found->first.c_str(), "a flag of trainer", "trainer", &found->second.value,
          &found->second.fallback);
    }
    gflags::SetCommandLineOption(name.c_str(), values.Text(name).c_str());
  }
}

std::vector<std::string> ExpandFlagFiles(const std::vector<std::string>& arguments) {
  return FlagSourceExpander().Expand(arguments);
}

}  // namespace trainer
