#pragma once

#include <string>

#include "trainer/config/net_spec.h"

namespace trainer {

// The result of UpgradeFile.
struct FileUpgrade {
  std::string kind;  // "weights", "a solver", "a net"
  Upgrades upgrades;
};

// Rewrites a net, a solver or weights in the current format: text stays text, binary stays binary.
// `out` is written completely or not at all, and may be `in`. Throws kCannotCreate if `out` exists
// and `replace` is not set; otherwise throws as UpgradeText, ReadModelAsWritten and WriteModel do.
FileUpgrade UpgradeFile(const std::string& in, const std::string& out, bool replace);

// Returns a line for each change and each warning, and a last line that names `out`, for the user.
std::string ToText(const FileUpgrade& upgrade, const std::string& out);

}  // namespace trainer
