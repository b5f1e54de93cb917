// The GPUs of several ranks.

#include <glog/logging.h>

#include <algorithm>

#include "rank_flags.h"
#include "trainer/backend/gpu_group.h"
#include "trainer/base/error.h"
#include "trainer/base/text.h"

namespace trainer {
namespace {

// "0000:1b:00.0", or "GPU 0" where it has no address.
std::string AddressOf(int gpu) {
  const std::vector<std::string> all = ListGpus();
  const auto index = static_cast<size_t>(gpu);
  return index < all.size() && !all[index].empty() ? all[index] : Join("GPU ", gpu);
}

// Of rank 0: whether two ranks have one GPU, each told as machine, a line end and its address.
bool FindShared(const World& world, const std::vector<std::string>& gpus, bool allowed) {
  bool shared = false;
  for (size_t rank = 0; rank < gpus.size(); ++rank) {
    const std::string address = gpus[rank].substr(gpus[rank].find('\n') + 1);
    LOG(INFO) << "  " << world.names()[rank] << ": " << EscapeControl(address);
    const auto before = static_cast<size_t>(std::ranges::find(gpus, gpus[rank]) - gpus.begin());
    if (before == rank) continue;
    shared = true;
    if (allowed) continue;
    throw Error(
        ErrorCode::kUsage,
        Join(world.names()[before], " and ", world.names()[rank], " would compute on one GPU, ",
             EscapeControl(address),
             ": name one for each (--gpu=0,1 or --gpu=all), have the batch system give each its "
             "own (srun --gpus-per-task=1), or let them share it with --share_gpu"));
  }
  return shared;
}

}  // namespace

bool RequireOwnGpus(const Flags& flags, World& world, const DeviceChoice& choice) {
  ReplicaGroup& group = world.group();
  const std::vector<std::string> gpus =
      group.Gather(Join(world.locals().machine, "\n", AddressOf(choice.gpu.id)));
  float shared = 0;
  if (group.replica().rank == 0) {
    shared = FindShared(world, gpus, flags.Switch("share_gpu")) ? 1.0f : 0.0f;
  }
  group.Broadcast({&shared, 1});
  return shared > 0;
}

std::unique_ptr<ReplicaGroup> MakeGpuGroup(const Flags& flags, World& world, const Device& device,
                                           WireType wire, bool shared) {
  const GpuGroupOptions options = {&world.group(), [&world] { world.Poll(); },
                                   world.bucket_floats()};
  const std::string& way = flags.Text("exchange");
  const bool rounds = wire != WireType::kF32 && !world.DescribeSent().empty();
  std::string why = way == "host" ? "as --exchange=host asks"
                    : shared      ? "as ranks share a GPU"
                    : rounds      ? Join("as gradients travel as ", NameOf(wire))
                                  : "";
  std::unique_ptr<ReplicaGroup> group;
  if (why.empty()) group = MakeNcclGroup(device, options, &why);
  if (group != nullptr) {
    LOG(INFO) << "Gradients of the GPUs are summed by NCCL (" << EscapeControl(why) << ")";
    return group;
  }
  if (way == "nccl") throw Error(ErrorCode::kUnavailable, "--exchange=nccl: not possible " + why);
  LOG(INFO) << "Gradients of the GPUs are summed by the host: " << EscapeControl(why);
  return MakeStagedGroup(device, options);
}

}  // namespace trainer
