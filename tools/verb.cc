#include "verb.h"

#include <algorithm>

#include "other_names.h"
#include "trainer/base/file/file.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

[[noreturn]] void RefuseWords(const std::string& message) {
  throw Error(ErrorCode::kUsage, message);
}

const Flag* FindAnyFlag(const std::string& name, std::vector<std::string>* all) {
  // The tables that the pointer leads into.
  static const std::vector<Flag> flags = [] {
    std::vector<Flag> found(LogFlags().begin(), LogFlags().end());
    for (const std::string& verb : VerbRegistry::Get().Names()) {
      const VerbDoc doc = VerbRegistry::Get().Make(verb)->Doc();
      found.insert(found.end(), doc.flags.begin(), doc.flags.end());
    }
    return found;
  }();
  for (const Flag& flag : flags) {
    if (!flag.hidden) all->emplace_back(flag.name);
  }
  return FindFlag(flags, name);
}

bool IsHelp(const FlagText& flag) {
  return (flag.name == "help" || flag.name == "h") && !flag.has_value;
}

// Where the verb stands, or the end. Throws for an unknown flag before it, which might have a value
// or not.
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

// What was meant by a file in the place of a verb.
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

void CheckVerb(const std::string& name) {
  if (VerbRegistry::Get().Has(name)) return;
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
  std::vector<std::string> names = VerbRegistry::Get().Names();
  names.emplace_back("help");
  RefuseWords(Join("trainer has no verb '", name, "'.", DidYouMean(name, names),
                   " 'trainer help' lists the verbs"));
}

bool WantsHelp(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    FlagText text;
    if (argument == "--") return false;
    if (SplitFlag(argument, &text) && IsHelp(text)) return true;
  }
  return false;
}

bool WantsVersion(const std::vector<std::string>& arguments) {
  return !arguments.empty() && (arguments[0] == "--version" || arguments[0] == "-version");
}

// The flag that a word was meant for: "--solver=s.prototxt". "" for another kind of file, and
// where the flag is given.
std::string FlagForWord(const VerbDoc& doc, const Flags& flags, const std::string& word) {
  const auto takes = [&](std::string_view name) {
    return std::ranges::any_of(doc.flags, [&](const Flag& flag) { return flag.name == name; });
  };
  std::string_view name;
  if (word.ends_with(".prototxt")) {
    const bool solver = !takes("model") || word.find("solver") != std::string::npos;
    name = takes("solver") && solver ? "solver" : "model";
  }
  if (word.ends_with(".solverstate")) name = "snapshot";
  if (word.ends_with(".caffemodel")) name = "weights";
  return takes(name) && !flags.Has(name) ? Join("--", name, "=", word) : "";
}

void CheckRequired(const std::string& name, const VerbDoc& doc, const Flags& flags) {
  for (const std::string& word : flags.words()) {
    const std::string meant = FlagForWord(doc, flags, word);
    if (meant.empty()) continue;
    RefuseWords(
        Join("'trainer ", name, "': unexpected argument '", word, "'. Did you mean ", meant, "?"));
  }
  for (const Flag& flag : doc.flags) {
    if (flag.required && !flags.Has(flag.name)) {
      RefuseWords(Join("'trainer ", name, "' needs --", flag.name, "=", flag.value,
                       ". Usage: ", doc.usage));
    }
  }
  const auto limit = static_cast<size_t>(doc.max_words);
  if (flags.words().size() > limit) {
    RefuseWords(Join("'trainer ", name, "': unexpected argument '", flags.words()[limit],
                     "'. Usage: ", doc.usage));
  }
}

std::string HelpFor(const std::vector<std::string>& topics) {
  if (topics.empty()) return ProgramHelp();
  if (topics[0] == "help") return ProgramHelp();
  CheckVerb(topics[0]);
  if (topics.size() == 1) return VerbHelp(topics[0]);
  const std::vector<std::string> tasks = VerbRegistry::Get().Make(topics[0])->Tasks();
  if (tasks.empty() || topics.size() > 2) RefuseWords("'trainer help' needs one verb");
  if (std::ranges::find(tasks, topics[1]) == tasks.end()) {
    RefuseWords(Join("'trainer ", topics[0], "' has no task '", topics[1],
                     "'; it has: ", JoinList(tasks), ".", DidYouMean(topics[1], tasks)));
  }
  return VerbHelp(topics[0], topics[1]);
}

// The first argument, where it is one of the verb's tasks; or "".
std::string TaskOf(const std::string& name, const std::vector<std::string>& arguments) {
  const std::vector<std::string> tasks = VerbRegistry::Get().Make(name)->Tasks();
  const bool found = !arguments.empty() && std::ranges::find(tasks, arguments[0]) != tasks.end();
  return found ? arguments[0] : "";
}

}  // namespace

Command ParseCommand(const std::vector<std::string>& arguments) {
  Command command;
  if (WantsVersion(arguments)) {
    command.print = "trainer " TRAINER_VERSION "\n";
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
    std::erase_if(rest, [](const std::string& word) { return WantsHelp({word}); });
    command.print = HelpFor(rest);
    return command;
  }
  CheckVerb(command.name);
  if (WantsHelp(rest)) {
    command.print = VerbHelp(command.name, TaskOf(command.name, rest));
    return command;
  }
  std::unique_ptr<Verb> verb = VerbRegistry::Get().Make(command.name);
  const VerbDoc doc = verb->Doc();
  std::vector<Flag> table = doc.flags;
  table.insert(table.end(), LogFlags().begin(), LogFlags().end());
  command.flags = ParseFlags(command.name, table, rest);
  CheckRequired(command.name, doc, command.flags);
  command.verb = std::move(verb);
  return command;
}

int RunVerb(const std::vector<std::string>& arguments) {
  const Command command = ParseCommand(arguments);
  return command.verb->Run(command.flags);
}

}  // namespace trainer
