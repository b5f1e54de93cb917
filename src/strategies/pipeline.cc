// Pipeline parallelism: each rank computes one stage of the net and alone has its weights and
// optimizer state. A batch is cut into micro-batches, which pass through the stages one after the
// other. Stage s of p first runs p - s forward passes and then alternates one forward and one
// backward (1F1B), so at most p - s micro-batches are in flight in it. The weights change only when
// all micro-batches are done (a flush), so the result is the same as with one rank that computes as
// many passes (iter_size). Sources: D. Narayanan et al., "PipeDream: generalized pipeline
// parallelism for DNN training", SOSP 2019 (1F1B); with a flush: "Memory-efficient
// pipeline-parallel DNN training", ICML 2021.

#include "trainer/strategies/pipeline.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "field_checks.h"
#include "message.h"
#include "stage_channel.h"
#include "trainer/base/error/error.h"
#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr size_t kCollected = size_t{1} << 20;  // bytes per message of Collect
constexpr int kCollectedSlots = 2;

}  // namespace

// A value that this rank receives or sends, and the index of the net's edge for it.
struct Pipeline::Crossing {
  const StageTransfer* value;
  size_t edge;
  StageChannel* channel;
};

// The values and gradients that this rank exchanges in the passes of one net.
struct Pipeline::NetTraffic {
  std::vector<Crossing> values_in, values_out;        // forward
  std::vector<Crossing> gradients_in, gradients_out;  // backward
};

Pipeline::Pipeline(const SolverSpec& spec) : Strategy({}) {
  const caffe::StrategyParameter& param = spec.proto.strategy_param();
  RequireAtLeast(spec, "micro_batches", param.micro_batches(), 0);
  RequireField(spec, param.stages().empty() || param.stages() == "auto", "stages",
               "'" + EscapeControl(param.stages()) + "'",
               "\"auto\", or left out if the layers have a `stage`");
  if (OptimizerRegistry::Get().Has(spec.proto.type())) {
    spec.Fail("type", Join("a solver of type ", spec.proto.type(),
                           " needs all weights on one rank, but in a pipeline each rank has only "
                           "the weights of its stage; use an update rule such as SGD"));
  }
}

Pipeline::~Pipeline() = default;

const SolverSpec& Pipeline::Partition(const SolverSpec& spec, const Device& device,
                                      const Rank& rank) {
  rank_ = rank.rank;
  plan_ = PlanPipeline(spec, device, rank.size);
  own_ = SpecOfStage(spec, &plan_, rank_);
  passes_ = own_->proto.iter_size();
  for (int stage = 0; stage < plan_.stages; ++stage) {
    const std::vector<std::string>& layers = WholeNet(0).layers[Index(stage)];
    LOG(INFO) << EscapeControl(
        Join("Stage ", stage, ": layers ", layers.front(), " to ", layers.back(), ", ",
             WholeNet(0).weight_bytes[Index(stage)] / 1024, " KiB of weights"));
  }
  LOG(INFO) << plan_.micro_batches << " micro-batches"
            << (plan_.records > 0 ? Join(" of ", plan_.records, " records") : std::string())
            << "; stages wait (p - 1) / (m + p - 1) = " << 100 * plan_.Bubble(passes_)
            << " % of the time";
  return *own_;
}

// Sets the values that cross the stage's boundary and, for the training net, how many
// micro-batches' activations it keeps.
void Pipeline::SetOptions(int net, NetOptions* options) const {
  options->boundary = WholeNet(net).BoundaryOf(rank_);
  if (net == 0) options->activation_slots = std::min(plan_.UnderWay(rank_), passes_);
}

// Opens the channels and makes the objective run its passes by this schedule. Throws kUnavailable
// for ranks without a shared window.
void Pipeline::Connect() {
  if (context().window == nullptr) {
    throw Error(ErrorCode::kUnavailable,
                "strategy 'pipeline' needs ranks that can send messages to each other, but these "
                "ranks cannot; start them with --ranks or mpirun");
  }
  OpenChannels();
  context().objective.SetSchedule(*this);
}

StageChannel* Pipeline::CollectedFrom(int rank) {
  return &channels_[channels_.size() - Index(plan_.stages) + Index(rank)];
}

// Calls visit(net, value, backward, slots) for each channel of values, in the same order on all
// ranks.
template <class Visit>
void Pipeline::VisitChannels(const Visit& visit) const {
  for (size_t net = 0; net < plan_.nets.size(); ++net) {
    for (const StageTransfer& value : plan_.nets[net].values) {
      for (const bool backward : {false, true}) {
        if (backward && (net > 0 || !value.has_gradient)) continue;
        visit(net, value, backward, plan_.UnderWay(value.from));
      }
    }
  }
}

// Opens all channels. The slots of a channel are in the memory of the receiver's node.
void Pipeline::OpenChannels() {
  size_t bytes = window().IsSameNode(0)
                     ? StageChannel::Bytes(kCollected, kCollectedSlots) * Index(plan_.stages)
                     : 0;
  VisitChannels([&](size_t, const StageTransfer& value, bool backward, int slots) {
    if (!window().IsSameNode(backward ? value.from : value.to)) return;
    bytes += StageChannel::Bytes(value.bytes(), slots);
  });
  std::byte* const memory = window().Allocate(std::max<size_t>(bytes, 1));
  MakeChannels(memory, RegisterDelivery());
  if (window().rpc() != nullptr) SumOverStages(1);  // barrier: all ranks have registered handlers
  size_t next = 0;
  traffic_.resize(plan_.nets.size());
  forwards_.resize(plan_.nets.size());
  std::vector<size_t> taken(plan_.nets.size()), given(plan_.nets.size());
  VisitChannels([&](size_t net, const StageTransfer& value, bool backward, int) {
    StageChannel* const channel = &channels_[next++];
    NetTraffic& traffic = traffic_[net];
    if (value.to == rank_) {
      if (!backward) ++taken[net];
      (backward ? traffic.gradients_out : traffic.values_in)
          .push_back({&value, taken[net] - 1, channel});
    }
    if (value.from == rank_) {
      if (!backward) ++given[net];
      (backward ? traffic.gradients_in : traffic.values_out)
          .push_back({&value, given[net] - 1, channel});
    }
  });
}

// Makes the channels in `memory`, which has room for the receivers of this node. `kind` is the RPC
// method of delivery. Each channel has as many slots as micro-batches can be in flight between its
// two stages, so a sender never waits for a free slot.
void Pipeline::MakeChannels(std::byte* memory, int kind) {
  const auto make = [&](size_t message, int slots, int from, int to) {
    channels_.emplace_back(memory, message, slots, from, to, window(),
                           StageChannel::Address{kind, static_cast<int64_t>(channels_.size())});
    if (window().IsSameNode(to)) memory += StageChannel::Bytes(message, slots);
  };
  VisitChannels([&](size_t, const StageTransfer& value, bool backward, int slots) {
    make(value.bytes(), slots, backward ? value.to : value.from, backward ? value.from : value.to);
  });
  for (int rank = 0; rank < plan_.stages; ++rank) make(kCollected, kCollectedSlots, rank, 0);
}

// Registers the RPC method that delivers messages from other nodes, and returns its number. If the
// ranks have no RPC connection, registers nothing and returns 0.
int Pipeline::RegisterDelivery() {
  if (window().rpc() == nullptr) return 0;
  return window().rpc()->Register([this](int, std::span<const std::byte> request, Rpc::Bytes*) {
    MessageReader sent(request);
    const auto channel = sent.Get<int64_t>();
    const auto remote_number = sent.Get<int64_t>();
    return channels_[static_cast<size_t>(channel)].Deliver(remote_number, sent.Rest());
  });
}

// Sends `value` from the device as the channel's next message. Throws kInternal if the value and
// the channel's messages differ in size.
void Pipeline::Send(StageChannel* channel, const Tensor& value) const {
  if (value.Bytes() != channel->message()) {
    throw Error(ErrorCode::kInternal,
                "a value of another size than planned goes to the next stage");
  }
  channel->Send(
      [&](std::byte* place) { context().device.CopyToHost(place, value.data, value.Bytes()); });
}

// Waits for the next message of `channel` and copies it to `value` on the device. Throws kInternal,
// before it waits, if the value and the channel's messages differ in size.
void Pipeline::Receive(const StageChannel& channel, const Tensor& value) const {
  if (value.Bytes() != channel.message()) {
    throw Error(ErrorCode::kInternal, "a value of another size than planned is expected");
  }
  channel.Receive([&](const std::byte* place) {
    context().device.CopyToDevice(value.data, place, value.Bytes());
  });
}

float Pipeline::Forward(Net& net, int number, int slot) {
  const NetTraffic& traffic = traffic_[Index(number)];
  for (const Crossing& in : traffic.values_in)
    Receive(*in.channel, net.Value(net.graph().boundary_in[in.edge], slot));
  net.Run({.mode = Pass::Mode::kForward, .activation_slot = slot});
  const float loss = net.TakeLoss();
  ++forwards_[Index(number)];
  for (const Crossing& out : traffic.values_out)
    Send(out.channel, net.Value(net.graph().boundary_out[out.edge], slot));
  return loss;
}

void Pipeline::Backward(Net& net, int slot) {
  const NetTraffic& traffic = traffic_[0];
  for (const Crossing& in : traffic.gradients_in)
    Receive(*in.channel, net.Gradient(net.graph().boundary_out[in.edge], slot));
  net.Run({.mode = Pass::Mode::kBackward, .activation_slot = slot});
  ++backwards_;
  for (const Crossing& out : traffic.gradients_out)
    Send(out.channel, net.Gradient(net.graph().boundary_in[out.edge], slot));
}

// Runs forward passes until `under_way` micro-batches are in flight, then alternates one backward
// and one forward. The last pass's outputs are reported.
float Pipeline::Run(int passes) {
  Net& net = context().objective.net();
  const int under_way = std::min(plan_.UnderWay(rank_), passes);
  float loss = 0;
  for (int next = 0, done = 0; done < passes;) {
    if (next < passes && next - done < under_way) {
      loss += Forward(net, 0, next++ % under_way);
    } else {
      Backward(net, done++ % under_way);
    }
  }
  return SumOverStages(loss);
}

// Runs the stage's part of one forward pass and returns the loss, summed over the stages.
float Pipeline::RunForward() { return SumOverStages(Forward(context().objective.net(), 0, 0)); }

// Returns the sum of `own` over all ranks. Collective.
float Pipeline::SumOverStages(float own) {
  context().group.AllReduce({&own, 1});
  return own;
}

float Pipeline::ForwardTest(Net& part, int net) { return Forward(part, net, 0); }

// Sends the length first, then the bytes in messages of kCollected bytes.
void Pipeline::Collect(const std::string& own,
                       const std::function<void(const std::string& bytes)>& take) {
  if (rank_ > 0) {
    StageChannel& channel = *CollectedFrom(rank_);
    const uint64_t length = own.size();
    channel.Send([&](std::byte* place) { std::memcpy(place, &length, sizeof length); });
    for (size_t at = 0; at < own.size(); at += kCollected) {
      channel.Send([&](std::byte* place) {
        std::memcpy(place, own.data() + at, std::min(kCollected, own.size() - at));
      });
    }
    return;
  }
  std::string bytes;
  for (int rank = 1; rank < plan_.stages; ++rank) {
    const StageChannel& channel = *CollectedFrom(rank);
    uint64_t length = 0;
    channel.Receive([&](const std::byte* place) { std::memcpy(&length, place, sizeof length); });
    bytes.resize(length);
    for (size_t at = 0; at < length; at += kCollected) {
      channel.Receive([&](const std::byte* place) {
        std::memcpy(bytes.data() + at, place, std::min<size_t>(kCollected, length - at));
      });
    }
    take(bytes);
  }
}

// This rank knows the passes of all stages, because all make equally many.
std::string Pipeline::Describe() const {
  int64_t bytes = 0;
  for (size_t net = 0; net < plan_.nets.size(); ++net) {
    for (const StageTransfer& value : plan_.nets[net].values) {
      const int64_t passes = forwards_[net] + (net == 0 && value.has_gradient ? backwards_ : 0);
      bytes += passes * static_cast<int64_t>(value.bytes());
    }
  }
  return Join("Strategy pipeline: ", plan_.stages, " stages, ", plan_.micro_batches,
              " micro-batches; ", bytes / 1024, " KiB sent");
}

namespace {

const RegisterStrategy<Pipeline> kPipeline("pipeline");

}  // namespace
}  // namespace trainer
