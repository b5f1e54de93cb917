#pragma once
// Dedicated parameter servers: ranks that hold the weights and apply the gradients of the workers.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "flat_state.h"
#include "shared_array.h"
#include "trainer/optim/hyperparams.h"

namespace trainer {

// The last ranks are servers; each holds some parameters with their optimizer state. A worker sends
// its gradient once to each node that has servers, into memory that these servers share and where
// they write the new weights.
class DedicatedServers {
 public:
  // The constructor is collective; all ranks have equal states. `poll_peers` is called while this
  // rank waits, and throws if the run has failed. The arguments must outlive the object.
  DedicatedServers(const StrategyContext& context, const FlatState& numbers, int workers,
                   int servers, std::function<void()> poll_peers);
  ~DedicatedServers();

  // Returns which parameters server `server` updates, by their order. No server updates running
  // averages: they are mixed (MixRunningStats).
  std::vector<bool> ParamsOf(int server) const;

  // Called by a worker: returns the number of updates so far, by all workers.
  int64_t Version();
  // Pushes the gradients of the objective, divided by `scale`, and the running averages, for an
  // update with `hyper`.
  void Send(const Hyperparams& hyper, std::span<const float> averages, float scale);
  // Returns when all servers have applied the last push.
  void AwaitUpdate();
  // Pulls the present weights, and with_states also the optimizer's state. Returns their version.
  int64_t PullWeights(bool with_states);

  // Called by a server: applies the gradients that have arrived and returns whether there were any.
  bool ApplyAll();

 private:
  class PushQueue;
  // A node that has servers.
  struct ServerNode {
    int first = 0;  // the rank of its first server, which other nodes call
    std::vector<int> servers;
    std::vector<bool> params;  // by parameter: whether its servers hold it
    std::unique_ptr<SharedArray> weights;
    std::unique_ptr<PushQueue> queue;
    std::vector<bool> pending_pushes;  // by worker on another node: its last push is unanswered
    int push_method = 0;               // the RPC method of a push
  };

  // Fills nodes_: which servers each node has, and which parameters they hold. The node of server 0
  // also holds the running averages.
  void FindServerNodes();
  bool TakePush(ServerNode* node, int from, std::span<const std::byte> request);
  // Starts to send push_ to the first server of another node; AwaitUpdate waits for the replies.
  void SendTo(ServerNode* node, const Hyperparams& hyper);
  // Applies a worker's gradient, in this node's queue, to this server's parameters.
  void Apply(int worker);

  const StrategyContext& context_;
  SharedWindow& window_;
  const FlatState& state_;
  int rank_, workers_, servers_;
  std::function<void()> poll_peers_;
  std::vector<ServerNode> nodes_;  // the first node has server 0
  ServerNode* own_ = nullptr;      // null if this rank's node has no servers
  std::vector<bool> own_params_;   // by parameter: whether this server updates it
  std::vector<float> push_;        // a gradient for other nodes
  std::vector<float> pulled_;      // the weights of another node, and states if they are pulled
  std::vector<uint64_t> calls_;
};

// Moves `all`, the common running averages, by 1 / ranks of the way to one rank's, `own`, so that
// each rank's batches count 1 / ranks. The result is in `own`.
void MixRunningStats(std::span<const float> all, int ranks, std::span<float> own);

}  // namespace trainer
