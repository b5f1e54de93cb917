#include "completion.h"

#include <memory>
#include <set>

#include "trainer/base/text/text.h"
#include "trainer/cli/common_flags.h"
#include "trainer/cli/verb.h"

namespace trainer {
namespace {

// Returns the flags of a verb for the script: "--solver= --json ..."; a flag that needs a value
// ends in '='. A group has the flags of all its tasks.
std::string FlagWords(const std::string& name) {
  std::set<std::string> words;
  const auto add = [&](std::span<const Flag> flags) {
    for (const Flag& flag : flags) {
      const bool alone = flag.kind == FlagKind::kSwitch || !flag.bare.empty();
      if (!flag.hidden) words.insert(Join("--", flag.name, alone ? "" : "="));
    }
  };
  for (const auto& [full_name, info] : VerbRegistry::Get().all()) {
    if (full_name != name && !full_name.starts_with(name + " ")) continue;
    add(DeclaredVerb(info).flags.flags());
  }
  add(CommonFlags());
  return JoinList(std::vector<std::string>(words.begin(), words.end()), " ");
}

constexpr char kStart[] = R"(# Completes the verbs and flags of trainer in bash.
_trainer() {
  local word=${COMP_WORDS[COMP_CWORD]} flags=""
  COMPREPLY=()
  if ((COMP_CWORD == 1)) && [[ $word != -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$_trainer_verbs" -- "$word")
    return
  fi
  case ${COMP_WORDS[1]} in
)";

constexpr char kEnd[] =
    R"(    help) mapfile -t COMPREPLY < <(compgen -W "$_trainer_verbs" -- "$word"); return ;;
  esac
  if [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$flags" -- "$word")
    [[ ${#COMPREPLY[@]} != 1 || ${COMPREPLY[0]} != *= ]] || compopt -o nospace 2>/dev/null
  else
    compopt -o filenames 2>/dev/null
    mapfile -t COMPREPLY < <(compgen -f -- "${word#=}")
  fi
}
complete -F _trainer trainer
)";

}  // namespace

std::string CompletionScript() {
  std::string verbs = "help", cases;
  for (const std::string& name : VerbRegistry::Get().Names()) {
    verbs += " " + name;
    cases += Join("    ", name, ") flags=\"", FlagWords(name), "\" ;;\n");
  }
  return Join("_trainer_verbs=\"", verbs, "\"\n", kStart, cases, kEnd);
}

}  // namespace trainer
