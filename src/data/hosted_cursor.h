#pragma once
// A database that another process of this machine has open.

#include <memory>
#include <string>

#include "trainer/data/cursor.h"

namespace trainer {

// Whether ReadThroughHost named a host.
bool HasRecordHost();

// A cursor of the host's. Throws what opening and reading throw there; kPeerLost.
std::unique_ptr<Cursor> OpenHostedCursor(const std::string& backend, const std::string& path);

}  // namespace trainer
