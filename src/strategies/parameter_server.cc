// Asynchronous parameter server: weights and optimizer state are in the memory of rank 0's node, in
// `servers` blocks with a lock each. A rank computes a gradient at the weights that it last read,
// applies it to the present weights and reads the result. Ranks of other nodes get weights and
// state by remote calls, apply their gradient and send both back.
//
// With `dedicated_servers` the last `servers` ranks each hold some of the parameters. They make no
// steps but apply the gradients that the other ranks send.
//
// Sources: J. Dean and others, "Large Scale Distributed Deep Networks", NIPS 2012 (Downpour SGD);
// for the bound `staleness`, Q. Ho and others, "More Effective Distributed ML via a Stale
// Synchronous Parallel Parameter Server", NIPS 2013.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <thread>

#include "async_strategy.h"
#include "dedicated_servers.h"
#include "field_checks.h"
#include "shared_array.h"

namespace trainer {
namespace {

// Implements strategy parameter_server: each rank applies its gradient to shared weights as soon as
// it has it, or sends it to dedicated servers.
class ParameterServer final : public AsyncStrategy {
 public:
  explicit ParameterServer(const SolverSpec& spec)
      : AsyncStrategy(spec),
        spec_(spec),
        servers_(spec.proto.strategy_param().servers()),
        bound_(spec.proto.strategy_param().staleness()),
        late_(spec.proto.strategy_param().late()),
        dedicated_(spec.proto.strategy_param().dedicated_servers()) {
    RequireAtLeast(spec, "servers", servers_, 1);
    RequireAtLeast(spec, "staleness", bound_, -1);
  }

  // Returns the number of ranks that are not dedicated servers.
  int Workers(int ranks) const override {
    return dedicated_ ? std::max(1, ranks - servers_) : ranks;
  }

  // Finds how stale the gradient is, and drops or scales one that is too late. Without dedicated
  // servers, acquires the shared array, which Exchange commits after the update. With them, sends
  // the gradient.
  void BeforeUpdate(const Hyperparams& hyper) override {
    state().Read(averages_, state().first_average());
    if (shared_) {
      shared_->Acquire(state());
      MixRunningStats(shared_->floats().subspan(state().first_average(), averages_.size()),
                      workers(), averages_);
      state().Write(averages_, state().first_average());
    }
    age_ = (shared_ ? shared_->version() : dedicated_servers_->Version()) - seen_;
    const bool is_late = bound_ >= 0 && age_ > bound_;
    drops_ = is_late && late_ == caffe::StrategyParameter::DROP;
    if (is_late && late_ == caffe::StrategyParameter::SCALE) ScaleGradients();
    if (dedicated_servers_ && !drops_) Send(hyper);
  }

  // Applies gradients until no worker makes steps any more.
  void RunServer(const std::function<bool()>& stops) override {
    context().objective.ReduceOver(nullptr);  // the gradient that is applied is one worker's
    while (AnyActive()) {
      const bool idle = !dedicated_servers_->ApplyAll();
      PollPeers();
      if (stops()) coordinator().RequestStop();
      if (idle) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  // Returns false: the ranks' weights are only copies of the shared ones.
  bool HasLocalState() const override { return false; }

  // Allocates the shared array or assigns the servers. Throws kUsage for more servers than ranks,
  // or if no rank is left to train, and kConfig for an optimizer that evaluates a batch repeatedly.
  void AllocateShared() override {
    if (servers_ > ranks()) {
      throw Error(ErrorCode::kUsage, spec_.Where("strategy_param"),
                  Join("strategy_param.servers is ", servers_, ", but there are ", ranks(),
                       " ranks to store the weights; set it to at most ", ranks()));
    }
    if (context().optimizer.Reevaluates()) {
      spec_.Fail(
          "type",
          Join("strategy 'parameter_server' computes one gradient per batch, but ",
               spec_.proto.type(),
               " evaluates each batch more than once; use another type or another strategy"));
    }
    if (dedicated_ && servers_ == ranks()) {
      throw Error(ErrorCode::kUsage, spec_.Where("strategy_param"),
                  Join("strategy_param.servers is ", servers_,
                       ", but with dedicated_servers none of the ", ranks(),
                       " ranks is left to train; start more ranks, or set it "
                       "to at most ",
                       ranks() - 1));
    }
    averages_.resize(state().weights() - state().first_average());
    if (dedicated_) {
      AssignServers();
    } else {
      shared_.emplace(window(), rank(), 0, state().all(), servers_);
      if (rank() == 0) state().Read(shared_->floats());
    }
  }

  // Sends the gradient without its loss scale. Servers do not know a worker's loss scale or how
  // many updates it skipped. The worker therefore does not send a gradient that is not finite; its
  // own update checks the same norm and counts the skip.
  void Send(Hyperparams hyper) {
    Objective& objective = context().objective;
    const std::optional<LossScaleState> scale = context().optimizer.LossScale();
    if (!scale) return dedicated_servers_->Send(hyper, averages_, 1);
    if (!std::isfinite(objective.Norm(objective.Gradients()))) return;
    hyper.iter -= static_cast<int>(scale->skipped);
    dedicated_servers_->Send(hyper, averages_, scale->factor);
  }

  // Makes each server update its own parameters, and workers none. Throws kConfig for an optimizer
  // that cannot update a part.
  void AssignServers() {
    dedicated_servers_.emplace(context(), state(), workers(), servers_, [this] { PollPeers(); });
    const bool is_server = rank() >= workers();
    if (context().optimizer.UpdateOnly(dedicated_servers_->ParamsOf(rank() - workers()), is_server))
      return;
    spec_.Fail("type", Join("a solver of type ", spec_.proto.type(),
                            " updates all weights in one step, but with dedicated_servers each "
                            "server updates a part; use an update rule such as SGD"));
  }

  // Divides the gradients by their staleness, for strategy_param.late = SCALE.
  void ScaleGradients() {
    const std::span<float> gradients = context().objective.Gradients();
    gradients_.resize(gradients.size());
    context().device.CopyToHost(gradients_.data(), gradients.data(), gradients.size_bytes());
    for (float& gradient : gradients_) gradient /= static_cast<float>(age_);
    context().device.CopyToDevice(gradients.data(), gradients_.data(), gradients.size_bytes());
  }

  // Completes the update that BeforeUpdate began: pulls the servers' weights, or commits the shared
  // array, or undoes the update of a dropped gradient. Then waits for slower ranks.
  void Exchange(int64_t steps) override {
    if (dedicated_servers_) {
      dedicated_servers_->AwaitUpdate();
      seen_ = dedicated_servers_->PullWeights(false);
    } else if (drops_) {
      seen_ = shared_->version();
      state().Write(shared_->floats());
      shared_->Release();
    } else {
      seen_ = shared_->Commit(state());
    }
    stats(rank()).gradients_dropped += drops_ ? 1 : 0;
    CountExchange(BytesOfExchange(), age_);
    AwaitSlowest(steps);
  }

  // Returns the bytes that an exchange moves in both directions: weights and optimizer state if the
  // array is on another node, else weights (with dedicated servers, a gradient and weights).
  int64_t BytesOfExchange() const {
    const bool is_far = shared_ && !shared_->is_local();
    return static_cast<int64_t>(2 * (is_far ? state().all() : state().weights()) * sizeof(float));
  }

  // Waits until this rank is at most `staleness` steps ahead of the slowest active rank.
  void AwaitSlowest(int64_t steps) {
    const auto ahead = [&] {
      int64_t least = steps;
      for (int other = 0; other < workers(); ++other) {
        if (IsActive(other)) least = std::min<int64_t>(least, stats(other).steps);
      }
      return steps - least;
    };
    while (bound_ >= 0 && !coordinator().Stops() && ahead() > bound_) {
      PollPeers();
      std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
  }

  // Reads the present shared weights, which are the consensus; this rank's own ones may be older.
  std::span<const float> Consensus() override {
    if (dedicated_servers_) {
      seen_ = dedicated_servers_->PullWeights(true);
      return {};
    }
    shared_->Acquire(state());
    seen_ = shared_->version();
    shared_->Release();
    return {};
  }

  const SolverSpec& spec_;
  int servers_, bound_;
  caffe::StrategyParameter::Late late_;
  bool dedicated_;
  std::optional<SharedArray> shared_;                  // unless dedicated_
  std::optional<DedicatedServers> dedicated_servers_;  // if dedicated_
  std::vector<float> averages_, gradients_;
  int64_t seen_ = 0;  // the version of this rank's weights
  int64_t age_ = 0;   // staleness of the present gradient, in versions
  bool drops_ = false;
};

const RegisterStrategy<ParameterServer> kParameterServer("parameter_server");

}  // namespace
}  // namespace trainer
