#pragma once
// One reader of a LevelDB for all ranks of a host.

#include <chrono>
#include <memory>

#include "trainer/parallel/world.h"
#include "trainer/storage/record_server.h"

namespace trainer {

// The first rank of each host reads databases that only one process may open, for all ranks of the
// host. Returns its server, which must live until World::Finish; null on other ranks. They throw
// kPeerLost after `patience` without an answer. Call before anything is read.
std::unique_ptr<RecordServer> StartRecordServer(World& world, std::chrono::seconds patience);

}  // namespace trainer
