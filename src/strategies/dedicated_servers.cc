#include "dedicated_servers.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>
#include <utility>

#include "message.h"
#include "param_partition.h"

namespace trainer {
namespace {

constexpr std::chrono::microseconds kServerRanksPause{50};

// Precedes each message with a part of a gradient.
struct PushHeader {
  Hyperparams hyper;
  int64_t begin;
  int64_t is_last;
};

}  // namespace

// The queue of gradients that workers push to the servers of one node. Has one slot per worker for
// a gradient, which every server of the node reads and acknowledges. Ranks 0 to workers - 1 are the
// workers, and the servers follow them.
class DedicatedServers::PushQueue {
 public:
  // `servers` are the servers of the node, and `floats` is the length of a gradient; 0 on other
  // nodes. The constructor is collective.
  PushQueue(SharedWindow& window, int workers, const std::vector<int>& servers, size_t floats)
      : window_(window),
        workers_(workers),
        servers_(servers),
        floats_(floats),
        pushes_(Allocate<Push>(static_cast<size_t>(workers))),
        answered_(
            Allocate<std::atomic<uint32_t>>(static_cast<size_t>(workers * (servers.back() + 1)))),
        gradients_(Allocate<float>(static_cast<size_t>(workers) * floats)) {}

  // Returns the place of a worker's gradient. Empty on nodes without servers of this queue.
  std::span<float> Slot(int worker) const {
    return {gradients_ + static_cast<size_t>(worker) * floats_, floats_};
  }

  // Called by the worker when its slot holds a gradient, for an update with `hyper`. Wakes the
  // servers.
  void Send(int worker, const Hyperparams& hyper) {
    pushes_[worker].hyper = hyper;
    pushes_[worker].sent.fetch_add(1);
    for (const int server : servers_) window_.Notify(workers_ + server);
  }
  // Returns whether all servers have applied the worker's last gradient.
  bool IsAnswered(int worker) const {
    return std::ranges::none_of(servers_, [&](int server) { return HasGradient(worker, server); });
  }

  // Called by a server: returns whether a worker's gradient waits for it.
  bool HasGradient(int worker, int server) const {
    return pushes_[worker].sent.load() != Answered(worker, server).load();
  }
  // Called by a server: returns the hyperparameters for the worker's gradient.
  const Hyperparams& HyperparamsOf(int worker) const { return pushes_[worker].hyper; }
  // Called by a server when it has applied the worker's gradient. Wakes the worker.
  void Answer(int worker, int server) {
    Answered(worker, server).fetch_add(1);
    window_.Notify(worker);
  }

 private:
  struct alignas(64) Push {
    std::atomic<uint32_t> sent;
    Hyperparams hyper;
  };
  // Allocates an array that the ranks of this node share, at least one element, all zeros.
  template <class T>
  T* Allocate(size_t count) {
    return reinterpret_cast<T*>(window_.Allocate(std::max<size_t>(1, count) * sizeof(T)));
  }
  // Returns the counter of the worker's gradients that the server has applied.
  std::atomic<uint32_t>& Answered(int worker, int server) const {
    return answered_[server * workers_ + worker];
  }

  SharedWindow& window_;
  int workers_;
  std::vector<int> servers_;
  size_t floats_;
  Push* pushes_;                     // by worker
  std::atomic<uint32_t>* answered_;  // by server, then worker
  float* gradients_;
};

void MixRunningStats(std::span<const float> all, int ranks, std::span<float> own) {
  for (size_t i = 0; i < own.size(); ++i) {
    own[i] = all[i] + (own[i] - all[i]) / static_cast<float>(ranks);
  }
}

DedicatedServers::DedicatedServers(const StrategyContext& context, const FlatState& numbers,
                                   int workers, int servers, std::function<void()> poll_peers)
    : context_(context),
      window_(*context.window),
      state_(numbers),
      rank_(context.group.rank().rank),
      workers_(workers),
      servers_(servers),
      poll_peers_(std::move(poll_peers)),
      own_params_(ParamsOf(rank_ - workers)) {
  FindServerNodes();
  push_.resize(context.objective.Gradients().size() + numbers.weights() - numbers.first_average());
  for (ServerNode& node : nodes_) {
    const bool here = window_.IsSameNode(node.first);
    if (here) own_ = &node;
    // One block, because each server's parameters are in several ranges of the array.
    node.weights = std::make_unique<SharedArray>(window_, rank_, node.first, numbers.all(), 1);
    if (rank_ == node.first) numbers.Read(node.weights->floats());
    node.queue =
        std::make_unique<PushQueue>(window_, workers, node.servers, here ? push_.size() : 0);
    node.pending_pushes.resize(static_cast<size_t>(workers));
    if (window_.rpc() == nullptr) continue;
    node.push_method = window_.rpc()->Register(
        [this, &node](int from, std::span<const std::byte> request, Rpc::Bytes*) {
          return TakePush(&node, from, request);
        });
  }
}

DedicatedServers::~DedicatedServers() = default;

std::vector<bool> DedicatedServers::ParamsOf(int server) const {
  const std::vector<Param*>& params = context_.objective.params();
  std::vector<bool> own = OwnedParams(params, {server, servers_});
  for (size_t i = 0; i < params.size(); ++i) own[i] = own[i] && !params[i]->is_running_stat;
  return own;
}

void DedicatedServers::FindServerNodes() {
  std::vector<int> numbers;
  for (int server = 0; server < servers_; ++server) {
    const int number = window_.NodeOf(workers_ + server);
    const auto at = static_cast<size_t>(std::ranges::find(numbers, number) - numbers.begin());
    if (at == numbers.size()) {
      numbers.push_back(number);
      nodes_.emplace_back();
      nodes_.back().first = workers_ + server;
      nodes_.back().params.resize(own_params_.size());
    }
    ServerNode& node = nodes_[at];
    node.servers.push_back(server);
    const std::vector<bool> own = ParamsOf(server);
    for (size_t i = 0; i < own.size(); ++i) {
      const bool averages = server == 0 && context_.objective.params()[i]->is_running_stat;
      node.params[i] = node.params[i] || own[i] || averages;
    }
  }
}

int64_t DedicatedServers::Version() {
  SharedArray& weights = *nodes_.front().weights;
  weights.Read({});
  return weights.version();
}

void DedicatedServers::Send(const Hyperparams& hyper, std::span<const float> averages,
                            float scale) {
  const std::span<float> gradients = context_.objective.Gradients();
  const bool all_here = own_ != nullptr && nodes_.size() == 1;
  const std::span<float> gradient = all_here ? own_->queue->Slot(rank_) : std::span(push_);
  context_.device.CopyToHost(gradient.data(), gradients.data(), gradients.size_bytes());
  if (scale != 1) {
    for (float& value : gradient.first(gradients.size())) value /= scale;
  }
  std::ranges::copy(averages, gradient.subspan(gradients.size()).begin());
  for (ServerNode& node : nodes_) {
    if (&node != own_) {
      SendTo(&node, hyper);
      continue;
    }
    if (!all_here) std::ranges::copy(push_, own_->queue->Slot(rank_).begin());
    own_->queue->Send(rank_, hyper);
  }
}

void DedicatedServers::SendTo(ServerNode* node, const Hyperparams& hyper) {
  VisitMessages(push_.size(), [&](size_t begin, size_t end) {
    MessageWriter message;
    message.Put(PushHeader{hyper, static_cast<int64_t>(begin), end == push_.size()});
    std::ranges::copy(std::span(push_).subspan(begin, end - begin),
                      message.Floats(end - begin).begin());
    calls_.push_back(window_.rpc()->CallAsync(node->first, node->push_method, message.Take()));
  });
}

// Handles a message with a part of a gradient from another node, on the node's first server: copies
// it to the worker's slot. Replies to the last part only after all servers of the node have applied
// the gradient; until then returns false, and is called again.
bool DedicatedServers::TakePush(ServerNode* node, int from, std::span<const std::byte> request) {
  const auto worker = static_cast<size_t>(from);
  if (!node->pending_pushes[worker]) {
    MessageReader sent(request);
    const auto header = sent.Get<PushHeader>();
    std::ranges::copy(sent.Floats(), node->queue->Slot(from).begin() + header.begin);
    if (header.is_last == 0) return true;
    node->queue->Send(from, header.hyper);
    node->pending_pushes[worker] = true;
  }
  if (!node->queue->IsAnswered(from)) return false;
  node->pending_pushes[worker] = false;
  return true;
}

void DedicatedServers::AwaitUpdate() {
  for (const uint64_t call : std::exchange(calls_, {})) window_.rpc()->Wait(call);
  while (own_ != nullptr && !own_->queue->IsAnswered(rank_)) {
    poll_peers_();
    std::this_thread::sleep_for(kServerRanksPause);
  }
}

// Copies this node's array first. It also contains the parameters of other nodes' servers, but with
// outdated values, which the loop then overwrites.
int64_t DedicatedServers::PullWeights(bool with_states) {
  if (own_ != nullptr) {
    own_->weights->Acquire(state_);
    own_->weights->Release();
  }
  const size_t count = with_states ? state_.all() : state_.weights();
  for (ServerNode& node : nodes_) {
    if (&node == own_) continue;
    pulled_.resize(count);
    node.weights->Read(pulled_);
    state_.WriteParams(node.params, pulled_);
  }
  return nodes_.front().weights->version();
}

bool DedicatedServers::ApplyAll() {
  bool any = false;
  for (int worker = 0; worker < workers_; ++worker) {
    if (!own_->queue->HasGradient(worker, rank_ - workers_)) continue;
    any = true;
    Apply(worker);
    own_->queue->Answer(worker, rank_ - workers_);
  }
  return any;
}

// Applies a worker's gradient to this server's parameters. The first server also mixes in the
// worker's running averages.
void DedicatedServers::Apply(int worker) {
  const int server = rank_ - workers_;
  const std::span<float> gradients = context_.objective.Gradients();
  const std::span<float> place = own_->queue->Slot(worker);
  context_.device.CopyToDevice(gradients.data(), place.data(), gradients.size_bytes());
  context_.optimizer.Update(own_->queue->HyperparamsOf(worker));
  const RobustLock lock(own_->weights->lock(0), rank_, window_);
  state_.ReadParams(own_params_, own_->weights->floats());
  if (server != 0) return;
  const std::span<float> averages = place.subspan(gradients.size());
  const std::span<float> all =
      own_->weights->floats().subspan(state_.first_average(), averages.size());
  MixRunningStats(all, workers_, averages);
  std::ranges::copy(averages, all.begin());
  own_->weights->NoteUpdate();
}

}  // namespace trainer
