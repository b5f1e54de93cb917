#include "given_flags.h"

#include "trainer/base/text/text.h"

namespace trainer {

std::vector<std::string> GivenFlags(std::span<const Flag> table, const Flags& flags) {
  std::vector<std::string> words;
  for (const Flag& flag : table) {
    const std::string& value = flags.Text(flag.name);
    const bool usual = flag.kind == FlagKind::kSwitch
                           ? (value == "true") == (flag.fallback == "true")
                           : value == flag.fallback;
    if (usual || flag.kind == FlagKind::kEach) continue;
    if (flag.kind == FlagKind::kSwitch) {
      words.push_back(Join(value == "true" ? "--" : "--no", flag.name));
    } else {
      words.push_back(Join("--", flag.name, "=", value));
    }
  }
  return words;
}

}  // namespace trainer
