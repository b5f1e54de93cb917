#pragma once
// A verb: what `trainer <verb>` does. One file in tools/verbs defines and registers it, and
// tools/help/<verb>.txt is its page of help.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/cli/flag_set.h"

namespace trainer {

// The headings of `trainer help`, in its order.
enum class VerbTask { kTrain, kLook, kData, kSettings, kUse, kCluster };

// A page of help.
struct VerbPage {
  VerbTask task = VerbTask::kTrain;
  std::string summary;   // one sentence without a full stop, for the list of verbs
  std::string usage;     // "trainer train --solver=FILE [flags]"
  std::string text;      // a line for each paragraph
  std::string examples;  // a line for each command
};

// Reads a help file: lines "task: train", "summary: ..." and "usage: ...", a blank line, paragraphs
// between blank lines, and the commands below a line "examples:". Throws kInternal for another
// form.
VerbPage ParseVerbPage(const std::string& name, std::string_view file);

// Results go to std::cout, messages to the log. Errors are thrown. Declare is called once, before
// Run; the set and the variables that it binds have their values in Run, and the set lives as long.
// Run returns the exit code.
class Verb {
 public:
  virtual ~Verb() = default;
  virtual void Declare(FlagSet& flags) = 0;
  virtual int Run() = 0;
};

struct VerbInfo {
  std::string name;  // "train", or "dataset pack": a task of the group "dataset"
  std::vector<std::string> aliases;
  std::function<std::unique_ptr<Verb>()> make;
};

// All verbs. Filled before main() by one thread, then read only.
class VerbRegistry {
 public:
  // The help file of a verb, by its name with '_' for blanks; "" if there is none.
  using HelpFiles = std::string_view (*)(std::string_view name);

  static VerbRegistry& Get();
  // Registers a verb. Throws kInternal if the name or an alias is taken, because two files then
  // define one verb.
  void Add(VerbInfo info);
  void SetHelpFiles(HelpFiles files) { help_files_ = files; }

  // Returns the verb with this name or alias, also "dataset pack"; null for a group and for any
  // other name.
  const VerbInfo* Find(const std::string& name) const;
  // Sorted by name; tasks and groups included.
  const std::map<std::string, VerbInfo>& all() const { return verbs_; }
  // Returns the names of all verbs without tasks, and of the groups; sorted.
  std::vector<std::string> Names() const;
  // Returns the tasks of a group, such as "pack" of "dataset"; none for any other name.
  std::vector<std::string> TasksOf(const std::string& group) const;

  // Parses the help file of a verb, a task or a group. Throws kInternal if it is missing or not
  // complete.
  VerbPage PageOf(const std::string& name) const;

 private:
  std::map<std::string, VerbInfo> verbs_;
  std::map<std::string, std::string> names_;  // of aliases
  HelpFiles help_files_ = nullptr;
};

// Registers the class of a verb from its own file: const RegisterVerb<Train> kTrain("train");
template <class T>
struct RegisterVerb {
  explicit RegisterVerb(const char* name, std::vector<std::string> aliases = {}) {
    VerbRegistry::Get().Add(
        {name, std::move(aliases), [] { return std::unique_ptr<Verb>(new T()); }});
  }
};

// A new verb that has declared its flags.
struct DeclaredVerb {
  explicit DeclaredVerb(const VerbInfo& info);
  std::unique_ptr<Verb> verb;
  FlagSet flags;
};

// A command line as understood. `verb` is null when help or the version was asked for; then `print`
// is the text for stdout.
struct Command {
  std::string name;
  std::unique_ptr<Verb> verb;
  std::unique_ptr<FlagSet> flags;
  std::string print;
};

// Parses `arguments` (without the program's name) and sets the verb's variables. Flags may come
// before the verb. Throws kUsage naming what is wrong and the nearest verb or flag.
Command ParseCommand(const std::vector<std::string>& arguments);

// Runs another verb in this process, as the command line would. Returns its exit code. `arguments`
// must not ask for help or the version.
int RunVerb(const std::vector<std::string>& arguments);

}  // namespace trainer
