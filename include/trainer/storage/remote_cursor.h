#pragma once
// Cursors of a database that another process of this host has open: see record_server.h.

#include <chrono>
#include <memory>
#include <string>

#include "trainer/storage/cursor.h"

namespace trainer {

// From here on OpenCursor opens databases that take one process at a time through the RecordServer
// of this name; with "", as at first, in this process. Call it before threads read. Such cursors
// also throw kPeerLost if the server has ended or sent nothing for `patience`.
void ReadFromServer(const std::string& name, std::chrono::milliseconds patience);

// Whether ReadFromServer named a server.
bool HasRecordServer();

// Opens a cursor on the server. Throws what opening and reading throw there; kPeerLost.
std::unique_ptr<Cursor> OpenRemoteCursor(const std::string& backend, const std::string& path);

}  // namespace trainer
