// The command line of the program: which verb, which help page.

#include <algorithm>

#include "aliases.h"
#include "completion.h"
#include "man_page.h"
#include "trainer/base/error/error.h"
#include "trainer/base/file/file.h"
#include "trainer/base/process/program_info.h"
#include "trainer/base/text/text.h"
#include "trainer/cli/common_flags.h"
#include "trainer/cli/help.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

[[noreturn]] void RefuseWords(const std::string& message) {
  throw Error(ErrorCode::kUsage, message);
}

bool IsOneOf(const std::string& name, const std::vector<std::string>& names) {
  return std::ranges::find(names, name) != names.end();
}

// Returns whether `name` is a page for the shell, "man" or "completion", which is not a verb.
bool IsShellPage(const std::string& name) { return name == "man" || name == "completion"; }

// Returns the flag of any verb with this name, or null, and adds the names of all flags to `all`.
const Flag* FindAnyFlag(const std::string& name, std::vector<std::string>* all) {
  static const auto verbs = [] {
    std::vector<std::unique_ptr<DeclaredVerb>> declared;
    for (const auto& [verb_name, info] : VerbRegistry::Get().all()) {
      declared.push_back(std::make_unique<DeclaredVerb>(info));
    }
    return declared;
  }();
  const Flag* found = FindFlag(CommonFlags(), name);
  for (const auto& verb : verbs) {
    for (const Flag& flag : verb->flags.flags()) {
      if (!flag.hidden) all->emplace_back(flag.name);
    }
    if (found == nullptr) found = FindFlag(verb->flags.flags(), name);
  }
  return found;
}

bool IsHelp(const FlagText& flag) {
  return (flag.name == "help" || flag.name == "h") && !flag.has_value;
}

// Returns the position of the verb, or the number of arguments if there is none. Throws kUsage for
// an unknown flag before it, which might have a value or not.
size_t FindVerb(const std::vector<std::string>& arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    FlagText text;
    if (!SplitFlag(arguments[i], &text)) return i;
    if (IsHelp(text) || text.name == "version" || text.has_value) continue;
    std::vector<std::string> names;
    const Flag* flag = FindAnyFlag(text.name, &names);
    if (flag == nullptr) {
      const std::string near = Nearest(text.name, names);
      RefuseWords(Join("no verb of trainer has a flag --", text.name, ".",
                       near.empty() ? std::string(" 'trainer help' lists the verbs")
                                    : Join(" Did you mean --", near, "?")));
    }
    if (flag->kind != FlagKind::kSwitch) ++i;
  }
  return arguments.size();
}

// Returns the commands that a user may have meant who gave a file as the verb.
std::string VerbsForFile(const std::string& path) {
  if (path.ends_with(".caffemodel") || path.ends_with(".h5")) {
    return Join("trainer test --model=NET --weights=", path);
  }
  if (path.ends_with(".solverstate"))
    return Join("trainer train --solver=SOLVER --snapshot=", path);
  if (path.ends_with(".prototxt")) {
    return Join("trainer train --solver=", path, "' for a solver, 'trainer show --model=", path);
  }
  return IsDirectory(path) ? Join("trainer dataset check ", path) : "";
}

// Throws kUsage unless `name` is a verb, an alias or a group. The message names the command for
// another program's verb or for a file's path, else the nearest verb.
void CheckVerb(const std::string& name) {
  const std::vector<std::string> names = VerbRegistry::Get().Names();
  if (VerbRegistry::Get().Find(name) != nullptr || IsOneOf(name, names)) return;
  const std::string command = CommandFor(name);
  if (!command.empty()) {
    RefuseWords(Join("trainer has no verb '", name, "'; the command for it is: ", command,
                     " ('trainer help' lists the verbs)"));
  }
  const std::string meant = VerbsForFile(name);
  if (!meant.empty() && (Exists(name) || name.find('.') != std::string::npos)) {
    RefuseWords(Join("'", name,
                     "' is a path, but a verb is expected here; say what to do with it, as in '",
                     meant, name.ends_with(".prototxt") ? "' for a net" : "'"));
  }
  std::vector<std::string> known = names;
  known.emplace_back("help");
  RefuseWords(Join("trainer has no verb '", name, "'.", DidYouMean(name, known),
                   " 'trainer help' lists the verbs"));
}

// Returns whether --help or -h is among the arguments, before any "--".
bool WantsHelp(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    FlagText text;
    if (argument == "--") return false;
    if (SplitFlag(argument, &text) && IsHelp(text)) return true;
  }
  return false;
}

// Returns whether --version is the first argument.
bool WantsVersion(const std::vector<std::string>& arguments) {
  return !arguments.empty() && (arguments[0] == "--version" || arguments[0] == "-version");
}

// Returns the flag that a word was meant for, by the ending of the file: "--solver=s.prototxt".
// Returns "" for another kind of file, and if the flag is given or the verb does not have it.
std::string FlagForWord(const FlagSet& flags, const std::string& word) {
  const auto has = [&](std::string_view name) {
    return std::ranges::any_of(flags.flags(), [&](const Flag& flag) { return flag.name == name; });
  };
  std::string_view name;
  if (word.ends_with(".prototxt")) {
    const bool solver = !has("model") || word.find("solver") != std::string::npos;
    name = has("solver") && solver ? "solver" : "model";
  }
  if (word.ends_with(".solverstate")) name = "snapshot";
  if (word.ends_with(".caffemodel")) name = "weights";
  return has(name) && !flags.values().Has(name) ? Join("--", name, "=", word) : "";
}

// Throws kUsage for a word that was meant for a flag, for a missing required flag, and for more
// words than the verb takes.
void CheckWords(const FlagSet& flags) {
  const std::vector<std::string>& words = flags.values().words();
  for (const std::string& word : words) {
    const std::string meant = FlagForWord(flags, word);
    if (meant.empty()) continue;
    RefuseWords(Join("'trainer ", flags.verb(), "': unexpected argument '", word,
                     "'. Did you mean ", meant, "?"));
  }
  const std::string usage = VerbRegistry::Get().PageOf(flags.verb()).usage;
  flags.CheckRequired(usage);
  if (words.size() <= flags.most_words()) return;
  RefuseWords(Join("'trainer ", flags.verb(), "': unexpected argument '", words[flags.most_words()],
                   "'. Usage: ", usage));
}

// Throws kUsage for a group without a task (`task` is "") or with an unknown one.
[[noreturn]] void RefuseTask(const std::string& group, const std::string& task) {
  const std::vector<std::string> tasks = VerbRegistry::Get().TasksOf(group);
  if (task.empty()) {
    RefuseWords(Join("'trainer ", group, "' needs one of: ", JoinList(tasks)));
  }
  RefuseWords(Join("'trainer ", group, "' has no task '", task, "'; it has: ", JoinList(tasks), ".",
                   DidYouMean(task, tasks)));
}

// Returns the page for the words after "trainer help". Throws kUsage for an unknown verb or task.
std::string HelpFor(const std::vector<std::string>& topics) {
  if (topics.empty() || topics[0] == "help" || IsShellPage(topics[0])) return ProgramHelp();
  CheckVerb(topics[0]);
  if (topics.size() == 1) return VerbHelp(topics[0]);
  const std::vector<std::string> tasks = VerbRegistry::Get().TasksOf(topics[0]);
  if (tasks.empty() || topics.size() > 2) RefuseWords("'trainer help' needs one verb");
  if (!IsOneOf(topics[1], tasks)) RefuseTask(topics[0], topics[1]);
  return VerbHelp(Join(topics[0], " ", topics[1]));
}

// Returns the manual page for "man", else the completion script. They are reached by "trainer man"
// and by "trainer help --man".
std::string ShellPage(const std::string& name) {
  return name == "man" ? ManPage() : CompletionScript();
}

// Returns the registered name of a verb or alias. For a group, moves the task, such as "pack" of
// "dataset", from the arguments to the name; without a task returns the group's name if help is
// wanted, and else throws kUsage.
std::string FullName(const std::string& name, std::vector<std::string>* arguments) {
  const std::vector<std::string> tasks = VerbRegistry::Get().TasksOf(name);
  if (tasks.empty()) return VerbRegistry::Get().Find(name)->name;
  // A flag with its value may come before the task.
  const auto found = std::ranges::find_if(
      *arguments, [&](const std::string& text) { return IsOneOf(text, tasks); });
  if (found != arguments->end()) {
    std::string full_name = Join(name, " ", *found);
    arguments->erase(found);
    return full_name;
  }
  FlagText ignored;
  const auto word = std::ranges::find_if(
      *arguments, [&](const std::string& text) { return !SplitFlag(text, &ignored); });
  const std::string task = word == arguments->end() ? "" : *word;
  if (!WantsHelp(*arguments)) RefuseTask(name, task);
  return name;
}

}  // namespace

Command ParseCommand(const std::vector<std::string>& arguments) {
  Command command;
  if (WantsVersion(arguments)) {
    command.print = Join("trainer ", ProgramVersion(), "\n");
    return command;
  }
  const size_t at = FindVerb(arguments);
  if (at == arguments.size()) {
    if (!arguments.empty() && !WantsHelp(arguments)) {
      RefuseWords("no verb given. 'trainer help' lists the verbs");
    }
    command.print = ProgramHelp();
    return command;
  }
  command.name = arguments[at];
  std::vector<std::string> rest = arguments;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(at));
  if (command.name == "help") {
    for (const std::string& word : rest) {
      FlagText flag;
      if (!SplitFlag(word, &flag) || !IsShellPage(flag.name)) continue;
      command.print = ShellPage(flag.name);
      return command;
    }
    std::erase_if(rest, [](const std::string& word) { return WantsHelp({word}); });
    command.print = HelpFor(rest);
    return command;
  }
  if (IsShellPage(command.name)) {
    command.print = WantsHelp(rest) ? ProgramHelp() : ShellPage(command.name);
    return command;
  }
  CheckVerb(command.name);
  command.name = FullName(command.name, &rest);
  if (WantsHelp(rest)) {
    command.print = VerbHelp(command.name);
    return command;
  }
  command.verb = VerbRegistry::Get().Find(command.name)->make();
  command.flags = std::make_unique<FlagSet>(command.name);
  command.verb->Declare(*command.flags);
  command.flags->Parse(rest);
  CheckWords(*command.flags);
  return command;
}

int RunVerb(const std::vector<std::string>& arguments) {
  return ParseCommand(arguments).verb->Run();
}

}  // namespace trainer
