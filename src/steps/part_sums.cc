#include "trainer/steps/part_sums.h"

#include <algorithm>
#include <bit>

#include "trainer/backend/loops/map.h"

namespace trainer {
namespace {

struct AddBefore {
  HD void operator()(float& sum, float& number) const { number = sum + number; }
};

size_t BytesOf(const Net& net, bool (*counts)(const Param&)) {
  int64_t count = 0;
  for (const Param* param : net.params()) {
    if (counts(*param)) count += ParamStore::PaddedCount(param->count());
  }
  return static_cast<size_t>(count) * sizeof(float);
}

}  // namespace

float TreeSum(std::span<const float> values) {
  if (values.size() == 1) return values[0];
  const size_t half = std::bit_ceil(values.size()) / 2;
  return TreeSum(values.first(half)) + TreeSum(values.subspan(half));
}

// A sum waits at each level of the tree but the last; where parts have several passes, the gradient
// of each waits for its next one.
int ExtraGradients(int parts, int iter_size) {
  if (parts == 1) return 0;
  return iter_size > 1 ? parts : std::bit_width(static_cast<unsigned>(parts)) - 1;
}

size_t GradientBytes(const Net& net) {
  return BytesOf(net, [](const Param& p) { return p.lr_mult != 0; });
}

size_t ExtraPartBytes(const Net& net, int parts, int iter_size) {
  if (parts == 1) return 0;
  const size_t averages = BytesOf(net, [](const Param& p) { return p.is_running_stat; });
  size_t states = 0;
  for (const PlannedBlock& block : net.memory_plan().blocks) {
    if (block.kind == BufferKind::kState) states += block.bytes;
  }
  const auto copies = static_cast<size_t>(ExtraGradients(parts, iter_size));
  const auto count = static_cast<size_t>(parts);
  return GradientBytes(net) * copies + averages * (count + 1) + states * count;
}

PartSums::PartSums(const Device& device, Net& net, ParamStore& params, int iter_size,
                   Communicator* group)
    : device_(device),
      net_(net),
      params_(params),
      iter_size_(iter_size),
      group_(group),
      own_(params.RunningStats()),
      averages_(device, Adds() ? own_.size() * Index(parts() + 1) : 0),
      exchanged_(1 + (total() > 1 ? own_.size() : 0)) {
  for (int i = 0; i < ExtraGradients(parts(), iter_size); ++i) {
    levels_.emplace_back(device, params.Gradients().size());
  }
}

void PartSums::Copy(const float* from, float* to, size_t count) const {
  if (count == 0) return;
  device_.Copy(BlockCopy(sizeof(float), 1, static_cast<int64_t>(count), 0, 0), from, to);
}

// Each part goes on from its own pass before, and all from one and the same average at first.
void PartSums::BeginForward(int pass, int part) {
  net_.ActivateVirtualRank(part);
  if (!Adds()) return;
  float* const common = RunningStats(parts());
  if (pass > 0) return Copy(RunningStats(part), own_.data(), own_.size());
  if (part > 0) return Copy(common, own_.data(), own_.size());
  Copy(own_.data(), common, own_.size());
}

void PartSums::EndForward(int part) {
  if (Adds()) Copy(own_.data(), RunningStats(part), own_.size());
}

void PartSums::Begin(int pass, int part) {
  BeginForward(pass, part);
  const std::span<float> gradients = params_.Gradients();
  if (pass > 0 && Adds()) Copy(levels_[Index(part)].data(), gradients.data(), gradients.size());
}

// The sum of 2^k parts waits at level k for that of the next 2^k, as a binary counter carries. A
// level below the number of parts so far is free for it: those parts' own gradients were read.
void PartSums::End(int pass, int part) {
  EndForward(part);
  if (!Adds()) return;
  const bool last_pass = pass + 1 == iter_size_;
  if (last_pass && part + 1 == parts()) return;  // OnGradientReady has done it
  const std::span<float> gradients = params_.Gradients();
  const int level = last_pass ? std::countr_one(static_cast<unsigned>(part)) : part;
  if (last_pass) Fold(level, gradients);
  Copy(gradients.data(), levels_[Index(level)].data(), gradients.size());
  if (pass == 0 && part + 1 < parts()) params_.ClearGradients();
}

// Adds the sums that wait at the first levels.
void PartSums::Fold(int levels, std::span<float> gradients) const {
  const std::ptrdiff_t begin = gradients.data() - params_.Gradients().data();
  for (int level = 0; level < levels; ++level) {
    Update(device_, AddBefore{}, static_cast<int64_t>(gradients.size()),
           levels_[Index(level)].data() + begin, gradients.data());
  }
}

GradientSink* PartSums::SinkOf(int pass, int part) {
  if (pass + 1 < iter_size_ || part + 1 < parts()) return nullptr;
  return Adds() ? this : static_cast<GradientSink*>(group_);
}

void PartSums::OnGradientReady(int slice, std::span<float> values) {
  Fold(std::countr_one(static_cast<unsigned>(parts() - 1)), values);
  if (group_ != nullptr) group_->OnGradientReady(slice, values);
}

float PartSums::Finish(std::span<const float> losses) {
  const float loss = TreeSum(losses);
  if (total() == 1) return loss;
  for (int step = 1; step < parts(); step *= 2) {
    for (int part = 0; part + step < parts(); part += 2 * step) {
      Update(device_, AddBefore{}, static_cast<int64_t>(own_.size()), RunningStats(part + step),
             RunningStats(part));
    }
  }
  if (Adds()) Copy(RunningStats(0), own_.data(), own_.size());
  exchanged_[0] = loss;
  device_.CopyToHost(exchanged_.data() + 1, own_.data(), own_.size_bytes());
  if (group_ != nullptr) group_->Sum(exchanged_);
  for (float& number : exchanged_) number /= static_cast<float>(total());
  device_.CopyToDevice(own_.data(), exchanged_.data() + 1, own_.size_bytes());
  return exchanged_[0];
}

}  // namespace trainer
