#include "solver_context.h"

#include <glog/logging.h>

#include <random>

#include "trainer/base/file/file.h"

namespace trainer {
namespace {

// Draws a seed. All ranks get rank 0's, which travels as four parts of 16 bits because floats hold
// those exactly.
uint64_t FreshSeed(Communicator* group) {
  std::random_device device;
  constexpr uint64_t kLargest = INT64_MAX;  // the largest value of the field random_seed
  const uint64_t own = ((uint64_t{device()} << 32) | device()) & kLargest;
  if (group == nullptr) return own;
  float parts[4] = {};
  for (int i = 0; i < 4 && group->rank().rank == 0; ++i) {
    parts[i] = static_cast<float>(own >> (16 * i) & 0xffff);
  }
  group->AllReduce(parts);
  uint64_t seed = 0;
  for (int i = 0; i < 4; ++i) seed |= static_cast<uint64_t>(parts[i]) << (16 * i);
  return seed;
}

}  // namespace

std::unique_ptr<SolverContext> MakeContext(const SolverSpec& spec, const SolverOptions& options,
                                           const Device& device, TrainingObserver& observer,
                                           Strategy& strategy) {
  const Rank rank = RankOf(options);
  Pipeline* const pipeline = strategy.pipeline();
  const SolverSpec& own = pipeline == nullptr ? spec : pipeline->Partition(spec, device, rank);
  return std::make_unique<SolverContext>(SolverContext{
      own, own.proto, device, observer, strategy, pipeline, rank, options.group, options.group});
}

void SolverContext::ChooseSeed(const LoadedState* loaded) {
  if (proto.random_seed() >= 0) {
    seed = static_cast<uint64_t>(proto.random_seed());
  } else if (loaded != nullptr && loaded->state.has_random_seed()) {
    seed = loaded->state.random_seed();
  } else {
    seed = FreshSeed(group);
    LOG(INFO) << "Drew the random_seed " << seed
              << "; to repeat this run: --set random_seed=" << seed;
  }
}

NetOptions SolverContext::OptionsOfNet(int net, const SolverOptions& options) const {
  NetOptions net_options;
  if (pipeline != nullptr) pipeline->SetOptions(net, &net_options);
  net_options.seed = seed;
  net_options.decays_bias_and_norm = proto.decay_on_bias_and_norm();
  net_options.memory = options.memory;
  if (options.saves && options.layer_files && (rank.rank == 0 || pipeline != nullptr)) {
    const bool resumes = !options.snapshot.empty() || iter > 0;
    net_options.output_files = resumes ? OutputFiles::kResume : OutputFiles::kCreate;
    net_options.snapshot_folder = FolderOf(proto.snapshot_prefix());
  }
  return net_options;
}

}  // namespace trainer
