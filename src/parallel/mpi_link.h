#pragma once

#include <functional>
#include <vector>

#include "mpi_library.h"
#include "node_block.h"
#include "node_link.h"

namespace trainer {

// Sums between machines: each sends every other one the piece that it is to add (all of it, where
// that is little), adds its own piece as a tree over the machines, and sends the sum to all.
class MpiLink final : public NodeLink {
 public:
  // partners[lane][node] is a rank of the world; this one is number `local` of machine `node`, and
  // says in its slot of `block` for whom it waits. `may_sleep` tells whether
  // the cores have other work; `check` throws when the run has failed.
  MpiLink(MpiLibrary& mpi, const NodeBlock& block, int local,
          std::vector<std::vector<int>> partners, int node, std::function<bool()> may_sleep,
          std::function<void()> check)
      : mpi_(mpi),
        block_(block),
        local_(local),
        partners_(std::move(partners)),
        node_(node),
        may_sleep_(std::move(may_sleep)),
        check_(std::move(check)) {}

  int nodes() const override { return static_cast<int>(partners_.front().size()); }
  int lanes() const override { return static_cast<int>(partners_.size()); }
  void Sum(int lane, std::span<float> values) override;
  // Lets those that may wait for this rank know that its machine is at work. Now and then.
  void Beat();
  // Before MPI is left: no message may be under way.
  void TakeBeats();

 private:
  void SumPart(const std::vector<int>& ranks, std::span<float> values);
  void AddPiece(std::span<float> own);
  void Wait();
  std::vector<int> Partners() const;

  MpiLibrary& mpi_;
  const NodeBlock& block_;
  int local_;
  uint32_t progress_ = 0;  // of this machine, when the last beat was sent
  int64_t beat_ = 0;       // when
  int64_t heard_ = 0;      // when signs of life were last looked for
  std::vector<std::vector<int>> partners_;
  int node_;
  std::function<bool()> may_sleep_;
  std::function<void()> check_;
  std::vector<float> received_;
  std::vector<const float*> parts_;
};

}  // namespace trainer
