#pragma once
// Ranks that hold the weights for those that make steps.

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "gradient_mail.h"
#include "rank_numbers.h"
#include "shared_weights.h"
#include "trainer/steps/weight_update.h"

namespace trainer {

// The last ranks are servers, each with a part of the weights and the rule's state, by parameter.
// A worker sends its gradient once to each machine that has servers, in whose memory all of them
// find it and leave the new weights.
class ServerRanks {
 public:
  // All ranks make one at the same point, with equal numbers. `look_around` is called where this
  // rank waits, and throws where the run has failed. The arguments must outlive it.
  ServerRanks(const StrategySeat& seat, const RankNumbers& numbers, int workers, int servers,
              std::function<void()> look_around);

  // Of server `server`: which parameters it updates, by their order. Running averages are of none.
  std::vector<bool> ParamsOf(int server) const;

  // Of a worker. Updates that all have made so far.
  int64_t Version();
  // Sends the gradients of the objective, divided by `scale`, and the running averages, for an
  // update by `rates`.
  void Send(const UpdateRates& rates, std::span<const float> averages, float scale);
  // Returns when all servers have applied them.
  void AwaitUpdate();
  // The weights of now become this rank's, and with_states the rule's state. Returns their version.
  int64_t TakeWeights(bool with_states);

  // Of a server: applies the gradients that are there. Whether there were any.
  bool ApplyAll();

 private:
  // Of one that has servers.
  struct Machine {
    int first = 0;  // its first server's rank, which other machines ask
    std::vector<int> servers;
    std::vector<bool> params;  // which its servers have, averages included
    std::unique_ptr<SharedWeights> weights;
    std::unique_ptr<GradientMail> mail;
    std::vector<bool> handed_in;  // by worker of another machine: its gradient is not answered
    int hand_in = 0;              // the kind of the question
  };

  void FindMachines();
  bool TakeLetter(Machine* machine, int from, std::span<const std::byte> request);
  void SendTo(Machine* machine, const UpdateRates& rates);
  void Apply(int worker);

  const StrategySeat& seat_;
  SharedWindow& peers_;
  const RankNumbers& numbers_;
  int rank_, workers_, servers_;
  std::function<void()> look_around_;
  std::vector<Machine> machines_;  // the first has server 0
  Machine* own_ = nullptr;         // null where this one has none
  std::vector<bool> own_params_;   // of this server
  std::vector<float> letter_;      // to other machines
  std::vector<uint64_t> tickets_;
};

// Running averages of one rank's batches, of `own` since it had `all`: what they changed becomes a
// part of what all `ranks` ranks have.
void MixAverages(std::span<const float> all, int ranks, std::span<float> own);

}  // namespace trainer
