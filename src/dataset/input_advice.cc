#include "trainer/dataset/input_advice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr uint64_t kLargeFile = uint64_t{1} << 30;
constexpr double kWorthwhile = 1.02;  // a gain below is within what measurements vary

double Least(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

bool FitsMemory(const InputFacts& facts, const MachineFacts& machine) {
  return machine.memory == 0 || facts.bytes <= machine.memory;
}

// Records per second that reach the net from the source with so many decoding threads. A set that
// does not fit into memory is read at the cold rate.
double SuppliedRate(const InputFacts& facts, const MachineFacts& machine, int threads) {
  const double read =
      FitsMemory(facts, machine) && facts.warm > 0 && facts.where.kind != FileSystemKind::kNetwork
          ? facts.warm
          : facts.cold;
  return Least(read, facts.decoded * threads);
}

// Records per second of an iteration, whatever bounds it.
double Speed(const InputFacts& facts, double supplied) { return Least(facts.consumed, supplied); }

std::string GainText(double gain) {
  return gain > kWorthwhile ? Join(" (up to ", std::round(gain * 10) / 10, " times faster)") : "";
}

class Advising {
 public:
  Advising(const InputFacts& facts, const MachineFacts& machine, std::vector<InputAdvice>* all)
      : facts_(facts),
        machine_(machine),
        all_(*all),
        now_(Speed(facts, SuppliedRate(facts, machine, facts.threads))) {}

  void Run() {
    OnPlace();
    OnForm();
    OnThreads();
  }

 private:
  double Gain(const InputFacts& changed, int threads) const {
    const double then = Speed(changed, SuppliedRate(changed, machine_, threads));
    return now_ > 0 && then > 0 ? std::max(1.0, then / now_) : 1;
  }
  void Add(double gain, const std::string& text) {
    all_.push_back({gain, Join(EscapeControl(facts_.path), ": ", text, GainText(gain))});
  }

  void OnPlace() {
    if (facts_.where.kind == FileSystemKind::kNetwork) {
      InputFacts local = facts_;
      local.cold = facts_.warm;
      const double gain = Gain(local, facts_.threads);
      if (gain > kWorthwhile) {
        Add(gain, Join("it is on ", facts_.where.name,
                       "; copy it to this machine: trainer train --stage_data=auto"));
      }
    }
    if (facts_.where.name == "Lustre" && facts_.stripes == 1 && facts_.largest_file >= kLargeFile) {
      InputFacts striped = facts_;
      striped.cold = std::min(4 * facts_.cold, std::max(facts_.warm, facts_.cold));
      Add(Gain(striped, facts_.threads),
          "its largest file is on one Lustre server (one stripe); distribute it: lfs migrate -c 4 "
          "FILE. For new sets, set the stripes of the folder first: lfs setstripe -S 1m -c 8 "
          "FOLDER");
    }
    if (!FitsMemory(facts_, machine_) && facts_.cold > 0 && facts_.cold < facts_.consumed) {
      InputFacts held = facts_;
      held.bytes = 0;
      Add(Gain(held, facts_.threads),
          Join("its ", facts_.bytes >> 20, " MiB do not fit into the ", machine_.memory >> 20,
               " MiB of free memory, so every epoch reads it from the disk again; request more "
               "memory, or make the records smaller"));
    }
  }

  void OnForm() {
    if (facts_.kind == "files") {
      const bool network = facts_.where.kind == FileSystemKind::kNetwork;
      Add(1, Join("each image is a separate file", network ? Join(" on ", facts_.where.name) : "",
                  "; pack them: trainer dataset pack ROOT LIST SET"));
    }
    if (facts_.kind == "LEVELDB") {
      Add(1,
          "only one process at a time can read a LevelDB; 'trainer dataset convert' converts it to "
          "LMDB");
    }
  }

  void OnThreads() {
    if (!(facts_.decoded > 0)) return;
    const double wanted = facts_.consumed / facts_.decoded;
    if (wanted <= facts_.threads) return;
    const int useful = std::min(static_cast<int>(std::ceil(wanted)), machine_.cores);
    if (useful > facts_.threads) {
      Add(Gain(facts_, useful),
          Join("decoding needs ", std::round(wanted * 10) / 10, " threads, but it has ",
               facts_.threads, "; set data_param.threads: ", useful));
    }
    if (wanted > machine_.cores) {
      InputFacts raw = facts_;
      raw.decoded = 0;
      Add(Gain(raw, facts_.threads),
          Join("decoding needs ", std::round(wanted * 10) / 10, " cores of ", machine_.cores,
               "; store smaller images, or pixels: trainer dataset images --resize_height "
               "--resize_width"));
    }
  }

  const InputFacts& facts_;
  const MachineFacts& machine_;
  std::vector<InputAdvice>& all_;
  double now_;
};

void OnCores(const MachineFacts& machine, std::vector<InputAdvice>* all) {
  if (machine.cores < machine.granted) {
    const double gain = static_cast<double>(machine.granted) / machine.cores;
    all->push_back(
        {gain, Join("the run uses ", machine.cores, " of the ", machine.granted,
                    " cores that it may use: raise OMP_NUM_THREADS, or unset it", GainText(gain))});
  }
  if (machine.granted < machine.machine) {
    all->push_back(
        {1, Join("the job may use ", machine.granted, " of the machine's ", machine.machine,
                 " cores; request more in Slurm with --cpus-per-task")});
  }
}

}  // namespace

std::vector<InputAdvice> AdviseOnInput(const std::vector<InputFacts>& facts,
                                       const MachineFacts& machine) {
  std::vector<InputAdvice> all;
  for (const InputFacts& one : facts) Advising(one, machine, &all).Run();
  OnCores(machine, &all);
  std::ranges::stable_sort(all, std::ranges::greater(), &InputAdvice::gain);
  return all;
}

}  // namespace trainer
