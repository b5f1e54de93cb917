#include "trainer/analysis/input/input_advice.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trainer/base/text/text.h"

namespace trainer {
namespace {

constexpr uint64_t kLargeFile = uint64_t{1} << 30;
constexpr double kWorthwhile = 1.02;  // smaller gains are within the noise of measurements

// Returns the smaller rate; a rate of 0 is unknown and does not limit.
double SlowerRate(double a, double b) { return a > 0 && b > 0 ? std::min(a, b) : std::max(a, b); }

// Returns whether the file cache can hold the whole set; true if the free memory is unknown.
bool FitsMemory(const InputProfile& profile, const HostResources& host) {
  return host.memory == 0 || profile.bytes <= host.memory;
}

// Returns the records per second that the source supplies with `threads` decoding threads. A set
// that does not fit into memory, or is on a network file system, is read at the cold rate.
double SuppliedRate(const InputProfile& profile, const HostResources& host, int threads) {
  const double read = FitsMemory(profile, host) && profile.warm > 0 &&
                              profile.where.kind != FileSystemKind::kNetwork
                          ? profile.warm
                          : profile.cold;
  return SlowerRate(read, profile.decoded * threads);
}

// Returns the records per second of training, limited by the net or by the source.
double ConsumedRate(const InputProfile& profile, double supplied) {
  return SlowerRate(profile.consumed, supplied);
}

// Returns " (up to 1.5 times faster)"; "" for a gain that is within the noise of measurements.
std::string GainText(double gain) {
  return gain > kWorthwhile ? Join(" (up to ", std::round(gain * 10) / 10, " times faster)") : "";
}

// Appends the advice on one source. Each piece compares the speed of training now with the speed
// for a changed copy of the source's profile.
class InputAdvisor {
 public:
  InputAdvisor(const InputProfile& profile, const HostResources& host,
               std::vector<InputAdvice>* all)
      : profile_(profile),
        host_(host),
        all_(*all),
        now_(ConsumedRate(profile, SuppliedRate(profile, host, profile.threads))) {}

  void Run() {
    AdviseOnLocation();
    AdviseOnFormat();
    AdviseOnThreads();
  }

 private:
  // Returns the speed-up of training if the source were like `changed`; at least 1, and 1 if a rate
  // is unknown.
  double Gain(const InputProfile& changed, int threads) const {
    const double then = ConsumedRate(changed, SuppliedRate(changed, host_, threads));
    return now_ > 0 && then > 0 ? std::max(1.0, then / now_) : 1;
  }
  // Appends a piece of advice with the source's path before it and the gain after it.
  void Add(double gain, const std::string& text) {
    all_.push_back({gain, Join(EscapeControl(profile_.path), ": ", text, GainText(gain))});
  }

  // Advises to copy the set from a network, to stripe a large file on Lustre, and to request more
  // memory.
  void AdviseOnLocation() {
    if (profile_.where.kind == FileSystemKind::kNetwork) {
      InputProfile local = profile_;
      local.cold = profile_.warm;
      const double gain = Gain(local, profile_.threads);
      if (gain > kWorthwhile) {
        Add(gain, Join("it is on ", profile_.where.name,
                       "; copy it to this machine: trainer train --local_copy=auto"));
      }
    }
    if (profile_.where.name == "Lustre" && profile_.stripes == 1 &&
        profile_.largest_file >= kLargeFile) {
      InputProfile striped = profile_;
      striped.cold = std::min(4 * profile_.cold, std::max(profile_.warm, profile_.cold));
      Add(Gain(striped, profile_.threads),
          "its largest file is on one Lustre server (one stripe); distribute it: lfs migrate -c 4 "
          "FILE. For new sets, set the stripes of the folder first: lfs setstripe -S 1m -c 8 "
          "FOLDER");
    }
    if (!FitsMemory(profile_, host_) && profile_.cold > 0 && profile_.cold < profile_.consumed) {
      InputProfile held = profile_;
      held.bytes = 0;
      Add(Gain(held, profile_.threads),
          Join("its ", profile_.bytes >> 20, " MiB do not fit into the ", host_.memory >> 20,
               " MiB of free memory, so every epoch reads it from the disk again; request more "
               "memory, or make the records smaller"));
    }
  }

  // Advises to pack single image files. The gain is not measured.
  void AdviseOnFormat() {
    if (profile_.kind == "files") {
      const bool network = profile_.where.kind == FileSystemKind::kNetwork;
      Add(1, Join("each image is a separate file", network ? Join(" on ", profile_.where.name) : "",
                  "; pack them: trainer dataset pack ROOT LIST SET"));
    }
  }

  // Advises more decoding threads or, if the cores do not suffice, records that are faster to
  // decode.
  void AdviseOnThreads() {
    if (!(profile_.decoded > 0)) return;
    const double wanted = profile_.consumed / profile_.decoded;
    if (wanted <= profile_.threads) return;
    const int useful = std::min(static_cast<int>(std::ceil(wanted)), host_.cores);
    if (useful > profile_.threads) {
      Add(Gain(profile_, useful),
          Join("decoding needs ", std::round(wanted * 10) / 10, " threads, but it has ",
               profile_.threads, "; set data_param.threads: ", useful));
    }
    if (wanted > host_.cores) {
      InputProfile raw = profile_;
      raw.decoded = 0;
      Add(Gain(raw, profile_.threads),
          Join("decoding needs ", std::round(wanted * 10) / 10, " cores of ", host_.cores,
               "; store smaller images, or pixels: trainer dataset images --resize_height "
               "--resize_width"));
    }
  }

  const InputProfile& profile_;
  const HostResources& host_;
  std::vector<InputAdvice>& all_;
  double now_;
};

// Advises to use all granted cores, or to request more if the machine has more.
void AdviseOnCores(const HostResources& host, std::vector<InputAdvice>* all) {
  if (host.cores < host.granted) {
    const double gain = static_cast<double>(host.granted) / host.cores;
    all->push_back(
        {gain, Join("the run uses ", host.cores, " of the ", host.granted,
                    " cores that it may use: raise OMP_NUM_THREADS, or unset it", GainText(gain))});
  }
  if (host.granted < host.machine) {
    all->push_back({1, Join("the job may use ", host.granted, " of the machine's ", host.machine,
                            " cores; request more in Slurm with --cpus-per-task")});
  }
}

}  // namespace

std::vector<InputAdvice> AdviseInput(const std::vector<InputProfile>& profiles,
                                     const HostResources& host) {
  std::vector<InputAdvice> all;
  for (const InputProfile& one : profiles) InputAdvisor(one, host, &all).Run();
  AdviseOnCores(host, &all);
  std::ranges::stable_sort(all, std::ranges::greater(), &InputAdvice::gain);
  return all;
}

}  // namespace trainer
