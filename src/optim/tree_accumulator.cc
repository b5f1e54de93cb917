#include "tree_accumulator.h"

#include <algorithm>
#include <bit>

#include "trainer/backend/loops/map.h"
#include "trainer/optim/objective.h"

namespace trainer {
namespace {

struct AddBefore {
  HD void operator()(float sum, float& number) const { number = sum + number; }
};

// Adds the sums of earlier virtual ranks to `numbers`.
void AddSumsBefore(const Device& device, const float* before, std::span<float> numbers) {
  Update(device, AddBefore{}, static_cast<int64_t>(numbers.size()), before, numbers.data());
}

}  // namespace

float TreeSum(std::span<const float> values) {
  if (values.size() == 1) return values[0];
  const size_t half = std::bit_ceil(values.size()) / 2;
  return TreeSum(values.first(half)) + TreeSum(values.subspan(half));
}

TreeAccumulator::TreeAccumulator(const Device& device, const Graph& graph, ParamStore& params,
                                 int iter_size, Communicator* group)
    : device_(device),
      graph_(graph),
      params_(params),
      iter_size_(iter_size),
      group_(group),
      own_(params.RunningStats()),
      averages_(device, Adds() ? own_.size() * Index(virtual_ranks() + 1) : 0),
      exchanged_(1 + (total() > 1 ? own_.size() : 0)) {
  for (int i = 0; i < ExtraGradients(virtual_ranks(), iter_size); ++i) {
    levels_.emplace_back(device, params.Gradients().size());
  }
}

void TreeAccumulator::Copy(const float* from, float* to, size_t count) const {
  if (count == 0) return;
  device_.Copy(BlockCopy(sizeof(float), 1, static_cast<int64_t>(count), 0, 0), from, to);
}

// Each virtual rank continues from its own running statistics of the previous pass; in pass 0 all
// start from the same ones.
void TreeAccumulator::BeginForward(int pass, int virtual_rank) {
  if (!Adds()) return;
  float* const common = RunningStats(virtual_ranks());
  if (pass > 0) return Copy(RunningStats(virtual_rank), own_.data(), own_.size());
  if (virtual_rank > 0) return Copy(common, own_.data(), own_.size());
  Copy(own_.data(), common, own_.size());
}

void TreeAccumulator::EndForward(int virtual_rank) {
  if (Adds()) Copy(own_.data(), RunningStats(virtual_rank), own_.size());
}

void TreeAccumulator::Begin(int pass, int virtual_rank) {
  BeginForward(pass, virtual_rank);
  const std::span<float> gradients = params_.Gradients();
  if (pass > 0) Copy(levels_[Index(virtual_rank)].data(), gradients.data(), gradients.size());
}

// Adds like a binary counter: the sum of 2^k virtual ranks waits at level k for the next 2^k ranks'
// sum. A level <= virtual_rank is free in the last pass, because that virtual rank's own gradient,
// which was stored there, has already been read.
void TreeAccumulator::End(int pass, int virtual_rank) {
  EndForward(virtual_rank);
  const bool last_pass = pass + 1 == iter_size_;
  if (last_pass && virtual_rank + 1 == virtual_ranks()) return;  // OnGradientReady adds it
  const std::span<float> gradients = params_.Gradients();
  const int level = last_pass ? std::countr_one(static_cast<unsigned>(virtual_rank)) : virtual_rank;
  if (last_pass) Carry(level, gradients);
  Copy(gradients.data(), levels_[Index(level)].data(), gradients.size());
  if (pass == 0 && virtual_rank + 1 < virtual_ranks()) params_.ClearGradients();
}

// Adds the sums that wait at the first `levels` levels.
void TreeAccumulator::Carry(int levels, std::span<float> gradients) const {
  const std::ptrdiff_t begin = gradients.data() - params_.Gradients().data();
  for (int level = 0; level < levels; ++level) {
    AddSumsBefore(device_, levels_[Index(level)].data() + begin, gradients);
  }
}

void TreeAccumulator::OnGradientReady(int slice, std::span<float> values) {
  Carry(std::countr_one(static_cast<unsigned>(virtual_ranks() - 1)), values);
  if (group_ != nullptr) group_->OnGradientReady(slice, values);
}

float TreeAccumulator::Finish(std::span<const float> losses) {
  for (int step = 1; step < virtual_ranks(); step *= 2) {
    for (int virtual_rank = 0; virtual_rank + step < virtual_ranks(); virtual_rank += 2 * step) {
      AddSumsBefore(device_, RunningStats(virtual_rank + step),
                    {RunningStats(virtual_rank), own_.size()});
    }
  }
  if (Adds()) Copy(RunningStats(0), own_.data(), own_.size());
  exchanged_[0] = TreeSum(losses);
  device_.CopyToHost(exchanged_.data() + 1, own_.data(), own_.size_bytes());
  if (group_ != nullptr) group_->AllReduce(exchanged_);
  for (float& number : exchanged_) number /= static_cast<float>(total());
  device_.CopyToDevice(own_.data(), exchanged_.data() + 1, own_.size_bytes());
  return exchanged_[0];
}

}  // namespace trainer
