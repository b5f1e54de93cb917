#include "trainer/net/layer_state.h"

#include <algorithm>
#include <exception>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

std::string BytesOf(const Net& net, std::span<const std::byte> memory) {
  std::string bytes(memory.size(), '\0');
  net.device().CopyToHost(bytes.data(), memory.data(), memory.size());
  return bytes;
}

void SetMemory(const Net& net, const Node& node, std::span<std::byte> memory,
               const std::string& bytes) {
  if (bytes.size() == memory.size()) {
    return net.device().CopyToDevice(memory.data(), bytes.data(), bytes.size());
  }
  node.spec.FailWith(ErrorCode::kBadSnapshot,
                     Join("the snapshot has ", bytes.size(),
                          " bytes for the state of this layer, but the layer needs ", memory.size(),
                          ": batch_size or num_output has changed; use the net of the snapshot"));
}

// Restores the state of one layer, of all its virtual ranks.
void RestoreLayer(Net& net, NodeId id, const LayerState& state) {
  const Node& node = net.graph().nodes[id];
  if (net.StateOf(id).empty()) return node.layer->RestoreState(state.bytes);
  const auto others = static_cast<size_t>(net.graph().options.virtual_ranks) - 1;
  if (state.other_virtual_ranks.size() != others) {
    node.spec.FailWith(ErrorCode::kBadSnapshot,
                       Join("the snapshot has the states of ", state.other_virtual_ranks.size() + 1,
                            " virtual ranks for this layer, but this run has ", others + 1,
                            "; use the number of ranks of the snapshot"));
  }
  SetMemory(net, node, net.StateOf(id), state.bytes);
  for (size_t i = 0; i < others; ++i) {
    SetMemory(net, node, net.StateOf(id, static_cast<int>(i) + 1), state.other_virtual_ranks[i]);
  }
}

}  // namespace

std::vector<LayerState> SaveLayerStates(const Net& net) {
  std::vector<LayerState> states;
  for (const NodeId id : net.graph().nodes.Ids()) {
    const Node& node = net.graph().nodes[id];
    LayerState state{node.key, node.layer->SaveState(), !net.StateOf(id).empty(), {}};
    for (int rank = 0; rank < net.graph().options.virtual_ranks && state.per_rank; ++rank) {
      (rank == 0 ? state.bytes : state.other_virtual_ranks.emplace_back()) =
          BytesOf(net, net.StateOf(id, rank));
    }
    if (!state.bytes.empty()) states.push_back(std::move(state));
  }
  return states;
}

std::vector<std::string> Restore(Net& net, uint32_t passes, const std::vector<LayerState>& states) {
  net.SetPasses(passes);
  std::vector<std::string> missing;
  for (const NodeId id : net.graph().nodes.Ids()) {
    const Node& node = net.graph().nodes[id];
    const auto state = std::ranges::find(states, node.key, &LayerState::layer);
    if (state != states.end()) {
      RestoreLayer(net, id, *state);
    } else if (!net.StateOf(id).empty() || !node.layer->SaveState().empty()) {
      missing.push_back(node.key);
    }
  }
  return missing;
}

void WriteLayerFiles(Net& net, int iter) {
  std::exception_ptr failure;
  for (const NodeId id : net.graph().nodes.Ids()) {
    try {
      net.graph().nodes[id].layer->OnSnapshot(net.context(id, Direction::kForward), iter);
    } catch (const Error&) {
      failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace trainer
