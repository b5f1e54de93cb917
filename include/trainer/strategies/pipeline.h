#pragma once
// Model parallelism in a pipeline: each rank has one stage of every net.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "trainer/net/partition.h"
#include "trainer/optim/objective.h"
#include "trainer/strategies/pipeline_plan.h"
#include "trainer/strategies/strategy.h"

namespace trainer {

class StageChannel;

// Computes one stage of the net for all micro-batches, by the schedule 1F1B. Net 0 is the training
// net, net i + 1 the i-th test net.
class Pipeline final : public Strategy, public PassSchedule {
 public:
  explicit Pipeline(const SolverSpec& spec);
  ~Pipeline() override;

  Pipeline* pipeline() override { return this; }
  bool ReducesGradients(int) const override { return false; }
  std::string Describe() const override;

  // Cuts the nets and returns the solver with this rank's stages as its nets. Called before
  // Prepare. Throws kConfig at the layer where a net cannot be cut. `spec` and `device` must
  // outlive the strategy.
  const SolverSpec& Partition(const SolverSpec& spec, const Device& device, const Rank& rank);
  // Returns how net `net` was cut: the layers of all stages and what passes between them.
  const NetPartition& WholeNet(int net) const { return plan_.nets[Index(net)]; }
  // Sets what this rank's stage of net `net` needs to be built, such as the values at its boundary.
  void SetOptions(int net, NetOptions* options) const;
  // Runs a forward pass of this rank's stage of a test net and returns the stage's loss. All ranks
  // call it equally often.
  float ForwardTest(Net& part, int net);
  // On rank 0, calls take(bytes) with the `own` of each other rank, in the order of the ranks.
  void Collect(const std::string& own, const std::function<void(const std::string& bytes)>& take);

  float Run(int passes) override;
  float RunForward() override;
  float SumOverStages(float own) override;

 private:
  struct Crossing;
  struct NetTraffic;

  static size_t Index(int i) { return static_cast<size_t>(i); }
  SharedWindow& window() const { return *context().window; }
  void Connect() override;
  // Returns the channel by which Collect sends the bytes of a rank to rank 0.
  StageChannel* CollectedFrom(int rank);
  template <class Visit>
  void VisitChannels(const Visit& visit) const;
  void OpenChannels();
  int RegisterDelivery();
  void MakeChannels(std::byte* memory, int kind);
  float Forward(Net& net, int number, int slot);
  void Backward(Net& net, int slot);
  void Send(StageChannel* channel, const Tensor& value) const;
  void Receive(const StageChannel& channel, const Tensor& value) const;

  int rank_ = 0;
  PipelinePlan plan_;
  std::optional<SolverSpec> own_;
  std::vector<StageChannel> channels_;  // for values, then from each rank to rank 0
  std::vector<NetTraffic> traffic_;     // by net
  std::vector<int64_t> forwards_;       // by net: passes so far
  int64_t backwards_ = 0;
  int passes_ = 0;  // per iteration
};

}  // namespace trainer
