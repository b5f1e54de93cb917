#include "ranks/record_server_start.h"

#include <unistd.h>

#include <random>

#include "trainer/base/text/text.h"
#include "trainer/storage/remote_cursor.h"

namespace trainer {

std::unique_ptr<RecordServer> StartRecordServer(World& world, std::chrono::seconds patience) {
  const Topology topology = world.topology();
  std::random_device random;
  const std::string run =
      world.group().BroadcastString(Join(getpid(), "-", std::hex, random(), random()));
  const std::string name = Join("trainer-", run, "-", topology.node);
  std::unique_ptr<RecordServer> host;
  if (topology.local_rank == 0 && topology.local_size > 1)
    host = std::make_unique<RecordServer>(name);
  world.group().Barrier();  // others connect only after this
  if (topology.local_rank > 0) ReadFromServer(name, patience);
  return host;
}

}  // namespace trainer
