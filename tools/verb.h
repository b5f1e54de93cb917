#pragma once
// A verb: what `trainer <verb>` does. One file in tools/ defines and registers one; no list is
// edited.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flags.h"
#include "trainer/base/registry.h"

namespace trainer {

// What a user wants who looks for a verb; help lists verbs by it, in this order.
enum class VerbTask { kTrain, kLook, kData, kSettings, kUse, kCluster, kShell };

// What help prints. Lines of at most 80 columns.
struct VerbDoc {
  VerbTask task = VerbTask::kTrain;
  std::string_view summary;   // one sentence without a full stop, for the list of verbs
  std::string_view usage;     // "trainer train --solver=FILE [flags]"
  std::string_view text;      // a few lines about what it does
  std::string_view examples;  // one command per line
  std::vector<Flag> flags;
  int max_words = 0;  // arguments that are no flags
};

// Results go to std::cout, messages to the log. Errors are thrown.
class Verb {
 public:
  virtual ~Verb() = default;
  virtual VerbDoc Doc() const = 0;
  // The names of what the verb does by its first argument, such as "pack" of dataset, and the page
  // of one of them.
  virtual std::vector<std::string> Tasks() const { return {}; }
  virtual VerbDoc TaskDoc(const std::string& /*task*/) const { return Doc(); }
  // Returns the exit code.
  virtual int Run(const Flags& flags) = 0;
};

using VerbRegistry = Registry<Verb>;

// const RegisterVerb<Train> kTrain("train");
template <class T>
struct RegisterVerb {
  explicit RegisterVerb(const char* name) {
    VerbRegistry::Get().Add(name, [] { return std::unique_ptr<Verb>(new T()); });
  }
};

// A command line as understood. `verb` is null when help or the version was asked for; then `print`
// is what to write to stdout.
struct Command {
  std::string name;
  std::unique_ptr<Verb> verb;
  Flags flags;
  std::string print;
};

// Understands `arguments` (without the program's name): flags may stand before the verb. Throws
// kUsage naming what is wrong and the nearest verb or flag.
Command ParseCommand(const std::vector<std::string>& arguments);

// Runs another verb in this process, as the command line would. Returns its exit code.
int RunVerb(const std::vector<std::string>& arguments);

// The list of verbs; the page of one, or of one of its tasks. Lines of at most 80 columns.
std::string ProgramHelp();
std::string VerbHelp(const std::string& name, const std::string& task = "");
// How help writes a flag: "--out=FILE", "--json", "--gpu[=ID]".
std::string FlagSpelling(const Flag& flag);

}  // namespace trainer
