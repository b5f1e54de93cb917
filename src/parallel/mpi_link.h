#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "mpi_library.h"
#include "node_block.h"
#include "node_link.h"
#include "wire.h"

namespace trainer {

// Sums between machines: each sends every other one the piece that it is to add (all of it, where
// that is little), adds its own piece in the order of the machines, and sends the sum to all.
//
// Gradients may go both ways in 16 bits, with error feedback each way: a machine's own numbers are
// rounded, also those that it adds itself, so that the result does not depend on who adds them;
// they are added as floats; and who added them rounds the sum once, for all. To send sums as floats
// would save that second rounding, and cost half again as many bytes: 6 a number and machine in
// place of 4; error feedback makes up for it (double compression: H. Tang et al., "DoubleSqueeze",
// ICML 2019).
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
  void SumGradients(int lane, std::span<float> values, std::span<const float> block) override;
  bool rounds() const override { return type_ != WireType::kF32; }
  // While no sum is under way, the same on all ranks.
  void SetWire(WireType type) {
    type_ = type;
    sent_bytes_ = plain_bytes_ = 0;
  }
  // While no sum is under way: what rounding has lost so far is lost.
  void ClearResiduals();
  // Of gradients that this rank has sent since SetWire, and what they would have been as floats.
  uint64_t sent_bytes() const { return sent_bytes_; }
  uint64_t plain_bytes() const { return plain_bytes_; }
  // Lets those that may wait for this rank know that its machine is at work. Now and then.
  void Beat();
  // Before MPI is left: no message may be under way.
  void TakeBeats();

 private:
  void SumPart(const std::vector<int>& ranks, std::span<float> values);
  void SumRounded(const std::vector<int>& ranks, std::span<float> values,
                  std::span<const float> block);
  void ExchangePieces(const std::vector<int>& ranks, std::span<const float> values,
                      std::span<const float> block);
  void HandOutSum(const std::vector<int>& ranks, std::span<float> values,
                  std::span<const float> block);
  void Send(std::span<const std::byte> coded, int rank, int tag);
  std::span<std::byte> CodedFor(size_t node, size_t count);
  std::span<std::byte> FromOther(size_t node, size_t count);
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
  WireType type_ = WireType::kF32;
  Residuals own_rest_, sum_rest_;          // of this machine's numbers, and of sums made here
  std::vector<std::byte> coded_, others_;  // what is sent, and what comes: by machine
  size_t stride_ = 0;                      // bytes from one machine's part to the next
  std::atomic<uint64_t> sent_bytes_{0}, plain_bytes_{0};
};

}  // namespace trainer
