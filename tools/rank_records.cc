// One reader of a LevelDB for all ranks of a machine.

#include <unistd.h>

#include <random>

#include "rank_flags.h"
#include "trainer/base/text/text.h"
#include "trainer/data/record_host.h"
#include "trainer/parallel/agreement.h"

namespace trainer {

std::unique_ptr<RecordHost> ShareDatabases(World& world, const Flags& flags) {
  const RankSeat seat = world.seat();
  std::random_device random;
  const std::string run =
      TextOfRank0(world.group(), Join(getpid(), "-", std::hex, random(), random()));
  const std::string name = Join("trainer-", run, "-", seat.machine);
  std::unique_ptr<RecordHost> host;
  if (seat.local == 0 && seat.locals > 1) host = std::make_unique<RecordHost>(name);
  float one = 1;
  world.group().Sum({&one, 1});  // before the others look for it
  if (seat.local > 0) {
    ReadThroughHost(name, std::chrono::seconds(flags.Whole("peer_timeout")));
  }
  return host;
}

}  // namespace trainer
