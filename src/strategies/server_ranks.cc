#include "server_ranks.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "packet.h"
#include "param_shares.h"

namespace trainer {
namespace {

constexpr std::chrono::microseconds kServerRanksPause{50};

// A part of a gradient.
struct LetterPart {
  UpdateRates rates;
  int64_t begin;
  int64_t is_last;
};

}  // namespace

void MixAverages(std::span<const float> all, int ranks, std::span<float> own) {
  for (size_t i = 0; i < own.size(); ++i) {
    own[i] = all[i] + (own[i] - all[i]) / static_cast<float>(ranks);
  }
}

ServerRanks::ServerRanks(const StrategySeat& seat, const RankNumbers& numbers, int workers,
                         int servers, std::function<void()> look_around)
    : seat_(seat),
      peers_(*seat.peers),
      numbers_(numbers),
      rank_(seat.group.replica().rank),
      workers_(workers),
      servers_(servers),
      look_around_(std::move(look_around)),
      own_params_(ParamsOf(rank_ - workers)) {
  FindMachines();
  letter_.resize(seat.objective.Gradients().size() + numbers.weights() - numbers.first_average());
  for (Machine& machine : machines_) {
    const bool here = peers_.IsNear(machine.first);
    if (here) own_ = &machine;
    machine.weights = std::make_unique<SharedWeights>(seat, numbers, machine.first, servers);
    machine.mail =
        std::make_unique<GradientMail>(peers_, workers, machine.servers, here ? letter_.size() : 0);
    machine.handed_in.resize(static_cast<size_t>(workers));
    if (peers_.post() == nullptr) continue;
    machine.hand_in = peers_.post()->Serve(
        [this, &machine](int from, std::span<const std::byte> request, Rpc::Bytes*) {
          return TakeLetter(&machine, from, request);
        });
  }
}

std::vector<bool> ServerRanks::ParamsOf(int server) const {
  const std::vector<Param*>& params = seat_.objective.params();
  std::vector<bool> own = OwnParams(params, {server, servers_});
  for (size_t i = 0; i < params.size(); ++i) own[i] = own[i] && !params[i]->is_running_stat;
  return own;
}

void ServerRanks::FindMachines() {
  std::vector<int> numbers;
  for (int server = 0; server < servers_; ++server) {
    const int number = peers_.MachineOf(workers_ + server);
    const auto at = static_cast<size_t>(std::ranges::find(numbers, number) - numbers.begin());
    if (at == numbers.size()) {
      numbers.push_back(number);
      machines_.emplace_back();
      machines_.back().first = workers_ + server;
      machines_.back().params.resize(own_params_.size());
    }
    Machine& machine = machines_[at];
    machine.servers.push_back(server);
    const std::vector<bool> own = ParamsOf(server);
    for (size_t i = 0; i < own.size(); ++i) {
      const bool averages = server == 0 && seat_.objective.params()[i]->is_running_stat;
      machine.params[i] = machine.params[i] || own[i] || averages;
    }
  }
}

int64_t ServerRanks::Version() {
  SharedWeights& weights = *machines_.front().weights;
  if (!weights.is_here()) weights.Look(0);
  return weights.version();
}

void ServerRanks::Send(const UpdateRates& rates, std::span<const float> averages, float scale) {
  const std::span<float> gradients = seat_.objective.Gradients();
  const bool all_here = own_ != nullptr && machines_.size() == 1;
  const std::span<float> letter = all_here ? own_->mail->Place(rank_) : std::span(letter_);
  seat_.device.CopyToHost(letter.data(), gradients.data(), gradients.size_bytes());
  if (scale != 1) {
    for (float& gradient : letter.first(gradients.size())) gradient /= scale;
  }
  std::ranges::copy(averages, letter.subspan(gradients.size()).begin());
  for (Machine& machine : machines_) {
    if (&machine != own_) {
      SendTo(&machine, rates);
      continue;
    }
    if (!all_here) std::ranges::copy(letter_, own_->mail->Place(rank_).begin());
    own_->mail->Send(rank_, rates);
  }
}

void ServerRanks::SendTo(Machine* machine, const UpdateRates& rates) {
  VisitMessages(letter_.size(), [&](size_t begin, size_t end) {
    Packet packet;
    packet.Put(LetterPart{rates, static_cast<int64_t>(begin), end == letter_.size()});
    std::ranges::copy(std::span(letter_).subspan(begin, end - begin),
                      packet.Floats(end - begin).begin());
    tickets_.push_back(peers_.post()->Begin(machine->first, machine->hand_in, packet.Take()));
  });
}

// Of the machine's first server, which keeps the last part's reply back until all have applied it.
bool ServerRanks::TakeLetter(Machine* machine, int from, std::span<const std::byte> request) {
  const auto worker = static_cast<size_t>(from);
  if (!machine->handed_in[worker]) {
    PacketReader sent(request);
    const auto part = sent.Get<LetterPart>();
    std::ranges::copy(sent.Floats(), machine->mail->Place(from).begin() + part.begin);
    if (part.is_last == 0) return true;
    machine->mail->Send(from, part.rates);
    machine->handed_in[worker] = true;
  }
  if (!machine->mail->IsAnswered(from)) return false;
  machine->handed_in[worker] = false;
  return true;
}

void ServerRanks::AwaitUpdate() {
  for (const uint64_t ticket : std::exchange(tickets_, {})) peers_.post()->Await(ticket);
  while (own_ != nullptr && !own_->mail->IsAnswered(rank_)) {
    look_around_();
    std::this_thread::sleep_for(kServerRanksPause);
  }
}

// Of this machine first: those of others are not up to date there.
int64_t ServerRanks::TakeWeights(bool with_states) {
  if (own_ != nullptr) {
    own_->weights->Take();
    own_->weights->Release();
  }
  const size_t count = with_states ? numbers_.all() : numbers_.weights();
  for (Machine& machine : machines_) {
    if (&machine == own_) continue;
    machine.weights->Look(count);
    numbers_.WriteParams(machine.params, machine.weights->floats().first(count));
  }
  return machines_.front().weights->version();
}

bool ServerRanks::ApplyAll() {
  bool any = false;
  for (int worker = 0; worker < workers_; ++worker) {
    if (!own_->mail->HasMail(worker, rank_ - workers_)) continue;
    any = true;
    Apply(worker);
    own_->mail->Answer(worker, rank_ - workers_);
  }
  return any;
}

// Running averages are the first server's.
void ServerRanks::Apply(int worker) {
  const int server = rank_ - workers_;
  const std::span<float> gradients = seat_.objective.Gradients();
  const std::span<float> place = own_->mail->Place(worker);
  seat_.device.CopyToDevice(gradients.data(), place.data(), gradients.size_bytes());
  seat_.rule.ApplyGradients(seat_.objective, own_->mail->RatesOf(worker));
  const SharedLockScope lock(own_->weights->lock(server), rank_, peers_);
  numbers_.ReadParams(own_params_, own_->weights->floats());
  if (server != 0) return;
  const std::span<float> averages = place.subspan(gradients.size());
  const std::span<float> all =
      own_->weights->floats().subspan(numbers_.first_average(), averages.size());
  MixAverages(all, workers_, averages);
  std::ranges::copy(averages, all.begin());
  own_->weights->NoteUpdate();
}

}  // namespace trainer
