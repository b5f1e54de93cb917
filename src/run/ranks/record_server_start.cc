#include "ranks/record_server_start.h"

#include <unistd.h>

#include <random>

#include "trainer/base/text/text.h"
#include "trainer/parallel/agreement.h"
#include "trainer/storage/remote_cursor.h"

namespace trainer {

std::unique_ptr<RecordServer> StartRecordServer(World& world, std::chrono::seconds patience) {
  const RankSeat seat = world.seat();
  std::random_device random;
  const std::string run =
      TextOfRank0(world.group(), Join(getpid(), "-", std::hex, random(), random()));
  const std::string name = Join("trainer-", run, "-", seat.machine);
  std::unique_ptr<RecordServer> host;
  if (seat.local == 0 && seat.locals > 1) host = std::make_unique<RecordServer>(name);
  float one = 1;
  world.group().Sum({&one, 1});  // a barrier: others connect only after this
  if (seat.local > 0) ReadFromServer(name, patience);
  return host;
}

}  // namespace trainer
