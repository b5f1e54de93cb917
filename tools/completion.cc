// `trainer completion`: what bash needs to complete verbs and flags, made of what help prints.

#include <iostream>

#include "trainer/base/text/text.h"
#include "verb.h"

namespace trainer {
namespace {

// "--solver= --json ..."; what takes a value ends in '='.
std::string FlagWords(const VerbDoc& doc) {
  std::string words;
  const auto add = [&](std::span<const Flag> flags) {
    for (const Flag& flag : flags) {
      if (flag.hidden) continue;
      const bool alone = flag.kind == FlagKind::kSwitch || !flag.bare.empty();
      words += Join(words.empty() ? "" : " ", "--", flag.name, alone ? "" : "=");
    }
  };
  add(doc.flags);
  add(LogFlags());
  return words;
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

class Completion final : public Verb {
 public:
  VerbDoc Doc() const override {
    return {.task = VerbTask::kShell,
            .summary = "print a bash script that completes verbs and flags",
            .usage = "trainer completion",
            .text = "Source the script in ~/.bashrc, or put it into /etc/bash_completion.d.",
            .examples =
                "trainer completion > ~/.trainer-completion.bash\n"
                "trainer completion > /etc/bash_completion.d/trainer",
            .flags = {}};
  }

  int Run(const Flags&) override {
    std::string verbs = "help", cases;
    for (const std::string& name : VerbRegistry::Get().Names()) {
      verbs += " " + name;
      const VerbDoc doc = VerbRegistry::Get().Make(name)->Doc();
      cases += Join("    ", name, ") flags=\"", FlagWords(doc), "\" ;;\n");
    }
    std::cout << "_trainer_verbs=\"" << verbs << "\"\n" << kStart << cases << kEnd;
    return 0;
  }
};

const RegisterVerb<Completion> kCompletion("completion");

}  // namespace
}  // namespace trainer
