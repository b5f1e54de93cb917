#include "verb.h"

#include <algorithm>

#include "trainer/base/text.h"

namespace trainer {
namespace {

[[noreturn]] void Refuse(const std::string& message) { throw Error(ErrorCode::kUsage, message); }

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
      Refuse(Join("no verb of trainer has a flag --", text.name, ".",
                  near.empty() ? std::string(" 'trainer help' lists the verbs")
                               : Join(" Did you mean --", near, "?")));
    }
    if (flag->kind != FlagKind::kSwitch) ++i;
  }
  return arguments.size();
}

void CheckVerb(const std::string& name) {
  if (VerbRegistry::Get().Has(name)) return;
  std::vector<std::string> names = VerbRegistry::Get().Names();
  names.emplace_back("help");
  Refuse(Join("trainer has no verb '", name, "'.", DidYouMean(name, names),
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

void CheckRequired(const std::string& name, const VerbDoc& doc, const Flags& flags) {
  for (const Flag& flag : doc.flags) {
    if (flag.required && !flags.Has(flag.name)) {
      Refuse(Join("'trainer ", name, "' needs --", flag.name, "=", flag.value,
                  ". Usage: ", doc.usage));
    }
  }
  const auto limit = static_cast<size_t>(doc.max_words);
  if (flags.words().size() > limit) {
    Refuse(Join("'trainer ", name, "': unexpected argument '", flags.words()[limit],
                "'. Usage: ", doc.usage));
  }
}

std::string HelpFor(const std::vector<std::string>& topics) {
  if (topics.empty()) return ProgramHelp();
  if (topics.size() > 1) Refuse("'trainer help' takes one verb");
  if (topics[0] == "help") return ProgramHelp();
  CheckVerb(topics[0]);
  return VerbHelp(topics[0]);
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
      Refuse("no verb is given. 'trainer help' lists the verbs");
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
    command.print = VerbHelp(command.name);
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

}  // namespace trainer
