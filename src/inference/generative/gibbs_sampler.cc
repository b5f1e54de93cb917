#include "generative/gibbs_sampler.h"

#include <algorithm>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr uint32_t kStream = 0x474942;

}  // namespace

GibbsSampler::GibbsSampler(const Device& device, std::vector<RbmModel> rbms, int chains,
                           uint64_t seed)
    : device_(device), chains_(chains), seed_(seed) {
  int64_t most_hidden = 0;
  size_t most_scratch = 0;
  for (RbmModel& rbm : rbms) {
    const BoltzmannUnits units = rbm.units;
    if (!levels_.empty() && Top().rbm.units.hidden != units.visible) {
      throw Error(ErrorCode::kConfig,
                  Join("layer '", rbm.name, "' has ", units.visible, " visible units, but '",
                       Top().rbm.name, "' before it has ", Top().rbm.units.hidden, " hidden ones"));
    }
    levels_.push_back(std::make_unique<Level>(
        Level{std::move(rbm), BoltzmannProducts(device, units, chains),
              DeviceFloats(device, static_cast<size_t>(chains * units.visible))}));
    most_hidden = std::max(most_hidden, units.hidden);
    most_scratch = std::max(most_scratch, Top().products.ScratchBytes());
  }
  hidden_ = std::make_unique<DeviceFloats>(device, static_cast<size_t>(chains * most_hidden));
  scratch_ = std::make_unique<DeviceFloats>(device, most_scratch / sizeof(float) + 1);
  pass_ = std::make_unique<DeviceFloats>(device, 1);
  const bool gaussian = Top().rbm.units.gaussian;
  const std::vector<float> means(Top().visible.size(), gaussian ? 0.0f : 0.5f);
  device.CopyToDevice(Top().visible.data(), means.data(), means.size() * sizeof(float));
  DrawUnits(device, gaussian, NextDraw(), Top().visible.data(), Top().visible.data(),
            static_cast<int64_t>(means.size()));
}

// Adds the higher bits of the count to the seed, because the random generator takes a draw index of
// 32 bits.
UnitDraw GibbsSampler::NextDraw() {
  const uint64_t draw = ++draws_;
  return {{seed_ + (draw >> 32), kStream},
          reinterpret_cast<const uint32_t*>(pass_->data()),
          static_cast<uint32_t>(draw)};
}

std::span<std::byte> GibbsSampler::Scratch() {
  return {reinterpret_cast<std::byte*>(scratch_->data()), scratch_->size() * sizeof(float)};
}

void GibbsSampler::Up(Level& level) {
  const int64_t count = chains_ * level.rbm.units.hidden;
  float* const hidden = hidden_->data();
  level.products.HiddenInputs(level.rbm.weights, level.visible.data(), hidden, Scratch());
  UnitMeans(device_, false, hidden, count);
  DrawUnits(device_, false, NextDraw(), hidden, hidden, count);
}

void GibbsSampler::Down(Level& level, bool draw) {
  const bool gaussian = level.rbm.units.gaussian;
  const auto count = static_cast<int64_t>(level.visible.size());
  float* const visible = level.visible.data();
  level.products.VisibleInputs(level.rbm.weights, hidden_->data(), visible, Scratch());
  UnitMeans(device_, gaussian, visible, count);
  if (draw) DrawUnits(device_, gaussian, NextDraw(), visible, visible, count);
}

// Samples the hidden units of each RBM on the way up; they are the visible units of the next one.
void GibbsSampler::StartAt(std::span<const float> visible) {
  Level& first = *levels_.front();
  device_.CopyToDevice(first.visible.data(), visible.data(), visible.size_bytes());
  for (size_t i = 0; i + 1 < levels_.size(); ++i) {
    Up(*levels_[i]);
    DeviceFloats& next = levels_[i + 1]->visible;
    device_.Copy(BlockCopy(sizeof(float), 1, static_cast<int64_t>(next.size()), 0, 0),
                 hidden_->data(), next.data());
  }
}

void GibbsSampler::Step() {
  Up(Top());
  Down(Top(), true);
}

// Samples the visible units of each RBM on the way down, and takes the means of the first one's. If
// there is only one RBM, its visible units are the chains' state and must be sampled afterwards.
std::vector<float> GibbsSampler::Means() {
  Up(Top());
  for (size_t i = levels_.size(); i-- > 0;) {
    Down(*levels_[i], i > 0);
    if (i == 0) break;
    const DeviceFloats& visible = levels_[i]->visible;
    device_.Copy(BlockCopy(sizeof(float), 1, static_cast<int64_t>(visible.size()), 0, 0),
                 visible.data(), hidden_->data());
  }
  const DeviceFloats& means = levels_.front()->visible;
  std::vector<float> host(means.size());
  device_.CopyToHost(host.data(), means.data(), host.size() * sizeof(float));
  if (levels_.size() == 1) {  // the chain continues from sampled units
    DrawUnits(device_, Top().rbm.units.gaussian, NextDraw(), means.data(), means.data(),
              static_cast<int64_t>(host.size()));
  }
  return host;
}

}  // namespace trainer
