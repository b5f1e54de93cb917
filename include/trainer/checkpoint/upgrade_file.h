#pragma once

#include <string>

namespace trainer {

// Rewrites a net, a solver or weights in the current format: text stays text, binary stays binary.
// `out` is written completely or not at all, and may be `in`. Returns, for the user, a line for
// each change and each warning, and a last line that names `out`. Throws kCannotCreate if `out`
// exists and `replace` is not set; otherwise throws as UpgradeText, ReadModelAsWritten and
// WriteModel do.
std::string UpgradeFile(const std::string& in, const std::string& out, bool replace);

}  // namespace trainer
